"""``fairpool diff``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairpool.cli import planview
from fairpool.cli.manifests import Refused, as_data, from_files, of_set, send, written
from fairpool.cli.options import client_of, note

if TYPE_CHECKING:
    from fairpool.wire.manifests.plans import ApplyResult

SAME, DIFFERS, WRONG = 0, 1, 2


@click.command("diff")
@from_files
@of_set
@click.option("--prune", is_flag=True, help="Count also what --prune would delete.")
@as_data
@click.pass_context
def diff(ctx: click.Context, files: tuple[str, ...], set_name: str, form: str, *, prune: bool, overwrite: bool) -> None:
    """Show how the server differs from files. Exits 0 for no difference, 1 for one, 2 or more for an error."""
    from fairpool.client.errors import ClientError

    try:
        documents = written(files)
        plan = send(client_of(ctx), documents, dry_run=True, set=set_name, prune=prune, overwrite=overwrite)
    except ClientError as error:
        error.exit_code = max(WRONG, int(error.exit_code))  # 1 means that something differs
        raise
    except Refused as error:
        raise Refused([error.message], max(WRONG, error.exit_code)) from None
    _show(plan, form)
    ctx.exit(DIFFERS if plan.changes else SAME)


def _show(plan: ApplyResult, form: str) -> None:
    if form != "table":
        from fairpool.cli.render import print_data

        print_data(plan.model_dump(mode="json", exclude_none=True), form)
        return
    for change in plan.changes:
        for line in planview.difference(change):
            click.echo(line)
    for warning in plan.warnings:
        note(f"warning: {warning}")

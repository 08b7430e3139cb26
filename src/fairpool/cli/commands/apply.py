"""``fairpool apply``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from fairpool.cli import planview
from fairpool.cli.manifests import from_files, of_set, planned, send, written
from fairpool.cli.options import confirm, connected, note

if TYPE_CHECKING:
    from fairpool.client.api import Client
    from fairpool.wire.manifests.plans import ApplyResult


@click.command("apply")
@from_files
@of_set
@click.option("--prune", is_flag=True, help="Delete what belongs to the set and is in no document any more.")
@click.option("--prune-kind", "kinds", multiple=True, metavar="KIND", help="Prune only this kind; repeatable.")
@click.option("--adopt", is_flag=True, help="What is as written already belongs to the set from now on.")
@click.option(
    "--on-work",
    type=click.Choice(("refuse", "drain", "let-go")),
    default="refuse",
    show_default=True,
    help="What pruning a pool does about work there.",
)
@planned
@connected
def apply(
    client: Client,
    files: tuple[str, ...],
    set_name: str,
    kinds: tuple[str, ...],
    on_work: str,
    lines: int,
    form: str,
    *,
    prune: bool,
    adopt: bool,
    overwrite: bool,
    dry_run: bool,
    yes: bool,
) -> None:
    """Make pools, policies and the like as files have them: shows the plan, asks, does all of it or nothing.

    A field that a document leaves out is as it would be by itself. What no document speaks of stays as it is, unless
    --prune says otherwise.
    """
    documents = written(files)
    said = {
        "set": set_name,
        "prune": prune or bool(kinds),
        "kinds": list(kinds),
        "adopt": adopt,
        "overwrite": overwrite,
        "on_work": on_work,
    }
    plan = send(client, documents, dry_run=True, **said)
    show(plan, form, most=lines)
    if dry_run or not plan.changes:
        return
    confirm("Apply this?", yes=yes)
    send(client, documents, dry_run=False, expected=plan.expected, **said)
    note("applied")


def show(plan: ApplyResult, form: str, *, most: int) -> None:
    """Print a plan."""
    if form == "table":
        for line in planview.lines(plan, most=most):
            click.echo(line)
    else:
        from fairpool.cli.render import print_data

        print_data(plan.model_dump(mode="json", exclude_none=True), form)
    sys.stdout.flush()  # before the question, which goes elsewhere

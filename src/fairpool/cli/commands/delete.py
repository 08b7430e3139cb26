"""``fairpool delete``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairpool.cli.commands.apply import show
from fairpool.cli.manifests import from_files, of_set, planned, send, written
from fairpool.cli.options import confirm, connected, note

if TYPE_CHECKING:
    from fairpool.client.api import Client


@click.command("delete")
@from_files
@of_set
@click.option("--drain", "on_work", flag_value="drain", help="Pools go when the last work there has ended.")
@click.option("--let-go", "on_work", flag_value="let-go", help="Reject what waits; let run what runs, unaccounted.")
@planned
@connected
def delete(
    client: Client,
    files: tuple[str, ...],
    set_name: str,
    on_work: str | None,
    lines: int,
    form: str,
    *,
    overwrite: bool,
    dry_run: bool,
    yes: bool,
) -> None:
    """Delete what files name: shows what goes, and what goes along with it; asks; all of it or nothing.

    What is gone already is passed over.
    """
    documents = written(files)
    said = {"set": set_name, "delete": True, "overwrite": overwrite, "on_work": on_work or "refuse"}
    plan = send(client, documents, dry_run=True, **said)
    show(plan, form, most=lines)
    if dry_run or not plan.changes:
        return
    confirm("Delete this?", yes=yes)
    send(client, documents, dry_run=False, expected=plan.expected, **said)
    note("deleted")

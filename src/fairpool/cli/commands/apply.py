"""``fairpool apply``."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from fairpool.cli import planview, render
from fairpool.cli.manifests import from_files, of_set, planned, send, written
from fairpool.cli.options import Duration, confirm, connected, note
from fairpool.cli.simulation import DECIDING, documents_of, print_tables, recorded, simulated, written_to

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
@click.option(
    "--replay",
    "replay_s",
    type=Duration(),
    metavar="TIME",
    help="Before asking: replay the demand of the last 30d, say, under the rules as they are and as they would be.",
)
@click.option("--replay-html", type=click.Path(dir_okay=False, writable=True), help="Write that as a page with charts.")
@planned
@connected
def apply(
    client: Client,
    files: tuple[str, ...],
    set_name: str,
    kinds: tuple[str, ...],
    on_work: str,
    replay_s: int | None,
    replay_html: str | None,
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
    if replay_s is not None and plan.changes:
        show_replay(client, plan, replay_s, replay_html)
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


def show_replay(client: Client, plan: ApplyResult, replay_s: int, page: str | None) -> None:
    """Print what the demand of that time would have made of the rules as they are and as they would be. Stopping it
    is no answer to the question that follows: then nothing is applied."""
    now = datetime.now(UTC)
    since = now - timedelta(seconds=replay_s)
    documents = documents_of(client)
    found = simulated(
        {
            "recorded": recorded(client, since.isoformat(), ""),
            "read_at": now,
            "documents": documents,
            "documents_against": after(documents, plan),
            "command": shlex.join(["fairpool", *sys.argv[1:]]),
        }
    )
    note(f"the demand since {render.moment(since)}, under the rules as they are and as they would be:")
    print_tables(found.tables)
    for path in written_to(found, {"html": page}):
        note(f"wrote {path}")
    if found.stopped:
        raise click.Abort


def after(documents: Sequence[dict[str, Any]], plan: ApplyResult) -> list[dict[str, Any]]:
    """The documents as the plan would leave them."""
    from fairpool.wire.manifests.kinds import read_document

    def key(document: dict[str, Any]) -> tuple[str, str]:
        read = read_document(document)
        return read.kind, read.name

    found = {key(document): document for document in documents}
    for along in plan.along:
        if along.action == "delete":
            found.pop((along.kind, along.name), None)
    for change in plan.changes:
        found.pop((change.kind, change.name), None)
        if change.after is not None and change.kind in DECIDING:
            found[change.kind, change.name] = change.after
    return list(found.values())

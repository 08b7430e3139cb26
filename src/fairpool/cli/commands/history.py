"""``fairpool history``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairpool.cli import render
from fairpool.cli.historyview import changes
from fairpool.cli.options import Moment, connected, printed
from fairpool.cli.render import Column, Style

if TYPE_CHECKING:
    from fairpool.client.api import Client

COLUMNS = (
    Column("AT", lambda entry: render.moment(entry.at)),
    Column("ACTOR", lambda entry: entry.actor),
    Column("KIND", lambda entry: entry.kind),
    Column("NAME", lambda entry: entry.name or entry.object),
    Column("WHAT", lambda entry: entry.what),
    Column("CHANGES", changes),
    Column("CAUSE", lambda entry: entry.cause, wide=True),
    Column("FROM", lambda entry: entry.source, wide=True),
    Column("OBJECT", lambda entry: entry.object, wide=True),
    Column("ID", lambda entry: entry.id, wide=True),
)


@click.command("history")
@click.option("--object", "meant", metavar="KIND/NAME", help="Only of this one, such as pool/gpus; or request/ID.")
@click.option("--kind", help="Only of this kind of thing (pool, policy, user, …; request, run, step).")
@click.option("--actor", help="Only what this one did, such as user:alice.")
@click.option("--since", type=Moment(), metavar="TIME", help="Only from then on: 2h ago, or '2026-11-21 08:00'.")
@click.option("--until", type=Moment(), metavar="TIME", help="Only before then.")
@click.option("--all", "everything", is_flag=True, help="Of requests, runs and steps too.")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="How many at most.")
@printed
@connected
def history(
    client: Client,
    meant: str | None,
    kind: str | None,
    actor: str | None,
    since: str | None,
    until: str | None,
    limit: int,
    style: Style,
    *,
    everything: bool,
) -> None:
    """Who changed which rules and rights, when, from where, from what to what; the newest first.

    'fairpool events --follow' goes on with what happens from now on.
    """
    object_id = named = None
    if meant is not None:
        word, slash, name = meant.partition("/")
        if not slash or not name:
            raise click.UsageError(f"--object {meant!r}; possible: KIND/NAME, such as policy/gpus/team:red")
        kind, object_id, named = (word, name, None) if word in ("request", "run", "step") else (word, None, name)
    found = client.history(
        kind=kind,
        object_id=object_id,
        limit=limit,
        named=named,
        rules=kind is None and not everything,
        actor=actor,
        since=since,
        until=until,
    )
    render.print_list(found, COLUMNS, style, name="id")

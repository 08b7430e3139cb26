"""``fairpool events``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairpool.cli import render
from fairpool.cli.historyview import changes
from fairpool.cli.options import connected, printed
from fairpool.cli.render import Column, Style
from fairpool.cli.streaming import print_as_they_come

if TYPE_CHECKING:
    from fairpool.client.api import Client

COLUMNS = (
    Column("ID", lambda entry: entry.id),
    Column("AT", lambda entry: render.moment(entry.at)),
    Column("KIND", lambda entry: entry.kind),
    Column("OBJECT", lambda entry: entry.object),
    Column("NAME", lambda entry: entry.name),
    Column("WHAT", lambda entry: entry.what),
    Column("CAUSE", lambda entry: entry.cause),
    Column("ACTOR", lambda entry: entry.actor, wide=True),
    Column("RUN", lambda entry: entry.run, wide=True),
    Column("CHANGES", changes, wide=True),
)


@click.command("events")
@click.option("--follow", "-f", is_flag=True, help="Go on with what happens, until Ctrl-C.")
@click.option("--kind", help="Only of this kind of thing (request, pool, policy, …).")
@click.option("--object", "object_id", metavar="ID", help="Only of this object.")
@click.option("--after", type=click.IntRange(min=0), metavar="ID", help="Only what came after this event.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=50, show_default=True, help="How many of the past at most."
)
@printed
@connected
def events(
    client: Client,
    kind: str | None,
    object_id: str | None,
    after: int | None,
    limit: int,
    style: Style,
    *,
    follow: bool,
) -> None:
    """What has happened, the newest last; with --follow also what happens from now on.

    While following, JSON is one object a line. The stream goes on by itself when the connection breaks or the server
    restarts: nothing is missed and nothing told twice.
    """
    if not follow:
        found = client.history(kind=kind, object_id=object_id, after=after, limit=limit)
        render.print_list(found if after is not None else found[::-1], COLUMNS, style, name="id")
        return
    print_as_they_come(client.events(after=after, kind=kind, object_id=object_id), COLUMNS, style)

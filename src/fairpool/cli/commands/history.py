"""``fairpool history``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from fairpool.cli import render
from fairpool.cli.historyview import changes
from fairpool.cli.options import Moment, connected, note, printed
from fairpool.cli.render import Column, Style
from fairpool.cli.streaming import print_as_they_come

if TYPE_CHECKING:
    from fairpool.client.api import Client
    from fairpool.wire.events import HistoryEntry

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


WORK = ("request", "run", "step")
"""Kinds of what is done; what happens to all others is the history of rules and rights."""


@click.command("history")
@click.option("--object", "meant", metavar="KIND/NAME", help="Only of this one, such as pool/gpus; or request/ID.")
@click.option("--kind", help="Only of this kind of thing (pool, policy, user, …; request, run, step).")
@click.option("--actor", help="Only what this one did, such as user:alice.")
@click.option("--since", type=Moment(), metavar="TIME", help="Only from then on: 2h ago, or '2026-11-21 08:00'.")
@click.option("--until", type=Moment(), metavar="TIME", help="Only before then.")
@click.option("--follow", is_flag=True, help="Go on with what happens, until Ctrl-C; the newest last then.")
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
    follow: bool,
    everything: bool,
) -> None:
    """Who changed which rules and rights, when, from where, from what to what; the newest first.

    With --follow the newest comes last, and what happens from now on after it; JSON is one object a line then.
    """
    if follow and until is not None:
        raise click.UsageError("--follow and --until say different things; possible: one of the two")
    object_id = named = None
    if meant is not None:
        word, slash, name = meant.partition("/")
        if not slash or not name:
            raise click.UsageError(f"--object {meant!r}; possible: KIND/NAME, such as policy/gpus/team:red")
        kind, object_id, named = (word, name, None) if word in WORK else (word, None, name)
    asked = _Asked(kind=kind, object_id=object_id, named=named, rules=kind is None and not everything, actor=actor)
    if follow:
        print_as_they_come(_followed(client, asked, since, limit), COLUMNS, style)
        return
    found = asked.past(client, limit=limit, since=since, until=until)
    if not found and style.format in ("table", "wide"):
        note(
            "nothing was found" if meant is None else f"nothing was found of {meant}, under that name or an earlier one"
        )
    else:
        render.print_list(found, COLUMNS, style, name="id")


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """Which entries are wanted."""

    kind: str | None
    object_id: str | None
    named: str | None
    rules: bool
    actor: str | None

    def past(self, client: Client, **bounds: Any) -> list[HistoryEntry]:
        """Those that there are, the newest first."""
        return client.history(
            kind=self.kind, object_id=self.object_id, named=self.named, rules=self.rules, actor=self.actor, **bounds
        )

    def includes(self, entry: HistoryEntry, known: set[str]) -> bool:
        """Whether an entry is one of them. known: ids of what has gone by the name before."""
        if self.rules and entry.kind in WORK:
            return False
        if self.actor is not None and entry.actor != self.actor:
            return False
        return self.named is None or entry.name == self.named or entry.object in known


def _followed(client: Client, asked: _Asked, since: str | None, limit: int) -> Iterator[HistoryEntry]:
    """The past, the oldest first, and then what happens, each once: from the last entry on that there was before."""
    newest = client.history(limit=1)
    last = newest[0].id if newest else 0
    past = [entry for entry in asked.past(client, limit=limit, since=since) if entry.id <= last]
    known = {entry.object for entry in past}
    yield from past[::-1]
    for event in client.events(after=last, kind=asked.kind, object_id=asked.object_id):
        if asked.includes(event, known):
            known.add(event.object)
            yield event

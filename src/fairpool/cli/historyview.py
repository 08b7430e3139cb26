"""The last entries of an object's history, below its description."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairpool.cli import render

if TYPE_CHECKING:
    from fairpool.client.api import Client


def print_history(client: Client, kind: str, ref: str) -> None:
    """The last entries of an object's history, the newest first."""
    entries = client.history_of(kind, ref, limit=20)
    if entries:
        click.echo("\n" + click.style("History:", bold=True))
        rows = [
            [render.moment(entry.at), entry.what, entry.cause, entry.actor and f"by {entry.actor}", _changes(entry)]
            for entry in entries
        ]
        render.print_table([], [[f"  {row[0]}", *map(str, row[1:])] for row in rows])


def _changes(entry: object) -> str:
    before: dict[str, object] = getattr(entry, "before", {})
    after: dict[str, object] = getattr(entry, "after", {})
    return ", ".join(f"{key}: {before[key]} → {after.get(key)}" for key in before if key in after)

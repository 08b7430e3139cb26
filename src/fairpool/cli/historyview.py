"""The last entries of an object's history, below its description."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from fairpool.cli import render

if TYPE_CHECKING:
    from fairpool.client.api import Client
    from fairpool.wire.events import HistoryEntry


def print_history(client: Client, kind: str, ref: str) -> None:
    """The last entries of an object's history, the newest first."""
    entries = client.history_of(kind, ref, limit=20)
    if entries:
        click.echo("\n" + click.style("History:", bold=True))
        rows = [
            [render.moment(entry.at), entry.what, entry.cause, entry.actor and f"by {entry.actor}", changes(entry)]
            for entry in entries
        ]
        render.print_table([], [[f"  {row[0]}", *map(str, row[1:])] for row in rows])


def changes(entry: HistoryEntry) -> str:
    """Each field that changed, with its old and new value; of what was made or has gone, nothing."""
    before, after = entry.before, entry.after
    if entry.what.endswith("changed"):
        return changed_fields(before, after)
    return changed_fields(*({key: state[key] for key in before if key in after} for state in (before, after)))


def changed_fields(before: Mapping[str, object], after: Mapping[str, object]) -> str:
    """What differs between two states of one object, as `field old → new`. What a state does not name is none there."""
    return ", ".join(
        f"{_named(key)} {_told(before.get(key), key)} → {_told(after.get(key), key)}"
        for key in {**before, **after}
        if before.get(key) != after.get(key)
    )


def _named(key: str) -> str:
    """A field as the options call it: `min-runtime` for `min_runtime_s`."""
    return key.removesuffix("_s").replace("_", "-")


def _told(value: object, key: str = "") -> str:
    """A value as people write it: amounts by key, words side by side, lengths of time in seconds."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_told(inner)}" for key, inner in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(map(_told, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value in (None, ""):
        return "all" if key == "profiles" else "none"
    return f"{value} s" if key.endswith("_s") else str(value)

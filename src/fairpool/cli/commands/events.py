"""``fairpool events``."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from fairpool.cli import render
from fairpool.cli.historyview import changes
from fairpool.cli.options import connected, printed
from fairpool.cli.render import Column, Style

if TYPE_CHECKING:
    from fairpool.client.api import Client
    from fairpool.wire.events import HistoryEntry

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

_WIDTHS = {"ID": 8, "AT": 23, "KIND": 10, "OBJECT": 19, "NAME": 20, "WHAT": 12, "ACTOR": 20, "RUN": 19}
"""How wide columns are while events come in: nobody knows yet what will be in them."""


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
    _print_as_they_come(client.events(after=after, kind=kind, object_id=object_id), style)


def _print_as_they_come(found: Iterable[HistoryEntry], style: Style) -> None:
    tell = _teller(style)
    sys.stdout.flush()
    for entry in found:
        tell(entry)
        sys.stdout.flush()


def _teller(style: Style) -> Callable[[HistoryEntry], None]:
    """What prints one event in the style; the heading is printed already."""
    if style.format == "json":
        return lambda entry: click.echo(json.dumps(_data(entry), ensure_ascii=False))
    if style.format == "yaml":
        return _tell_yaml
    if style.format == "name":
        return lambda entry: click.echo(entry.id)
    shown = render.chosen(COLUMNS, style)
    tell = _tell_csv if style.format == "csv" else _tell_padded
    if style.headers:
        tell([column.name for column in shown], shown)
    return lambda entry: tell([render.text(column.show(entry)) for column in shown], shown)


def _data(entry: HistoryEntry) -> dict[str, Any]:
    return entry.model_dump(mode="json", exclude_none=True)


def _tell_yaml(entry: HistoryEntry) -> None:
    import yaml

    click.echo(yaml.safe_dump(_data(entry), sort_keys=False, allow_unicode=True, explicit_start=True), nl=False)


def _tell_csv(cells: list[str], columns: list[Column]) -> None:
    csv.writer(sys.stdout, lineterminator="\n").writerow(cells)


def _tell_padded(cells: list[str], columns: list[Column]) -> None:
    padded = (cell.ljust(_WIDTHS.get(column.name, 0)) for cell, column in zip(cells, columns, strict=True))
    click.echo("  ".join(padded).rstrip())

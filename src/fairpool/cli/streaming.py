"""Entries that come one after another, each printed as it comes: nobody knows yet what the next ones will be."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from fairpool.cli import render
from fairpool.cli.render import Column, Style

if TYPE_CHECKING:
    from fairpool.wire.events import HistoryEntry

_WIDTHS = {"ID": 8, "AT": 23, "KIND": 10, "OBJECT": 19, "NAME": 20, "WHAT": 12, "ACTOR": 20, "RUN": 19}
"""How wide columns are while events come in: nobody knows yet what will be in them."""


def print_as_they_come(found: Iterable[HistoryEntry], columns: Sequence[Column], style: Style) -> None:
    """Print entries in the style, each at once. JSON is one object a line."""
    tell = _teller(columns, style)
    sys.stdout.flush()
    for entry in found:
        tell(entry)
        sys.stdout.flush()


def _teller(columns: Sequence[Column], style: Style) -> Callable[[HistoryEntry], None]:
    """What prints one event in the style; the heading is printed already."""
    if style.format == "json":
        return lambda entry: click.echo(json.dumps(_data(entry), ensure_ascii=False))
    if style.format == "yaml":
        return _tell_yaml
    if style.format == "name":
        return lambda entry: click.echo(entry.id)
    shown = render.chosen(columns, style)
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

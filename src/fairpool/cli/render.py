"""What is printed: tables, JSON, YAML, CSV or names, from the models of the API."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from pydantic import BaseModel

FORMATS = ("table", "wide", "json", "yaml", "csv", "name")


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its heading, what it shows, and whether only ``-o wide`` does."""

    name: str
    show: Callable[[Any], object]
    wide: bool = False


@dataclass(frozen=True, slots=True)
class Style:
    """How to print, as the options say."""

    format: str = "table"
    headers: bool = True
    columns: tuple[str, ...] = ()
    sort_by: str = ""


def print_list(items: Sequence[BaseModel], columns: Sequence[Column], style: Style, *, name: str = "name") -> None:
    """Print several objects."""
    if style.format in ("json", "yaml"):
        print_data([item.model_dump(mode="json", exclude_none=True) for item in items], style.format)
        return
    if style.format == "name":
        for item in items:
            click.echo(getattr(item, name))
        return
    print_rows(items, columns, style)


def print_rows(items: Sequence[object], columns: Sequence[Column], style: Style) -> None:
    """Print several things as a table, or as CSV."""
    shown = chosen(columns, style)
    rows = [[text(column.show(item)) for column in shown] for item in items]
    if style.sort_by:
        rows = _sorted(rows, shown, style.sort_by)
    headings = [column.name for column in shown]
    if style.format == "csv":
        import csv

        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerows([headings, *rows] if style.headers else rows)
    else:
        print_table(headings if style.headers else [], rows)


def print_one(item: BaseModel, lines: Iterable[tuple[str, object]], style: Style, *, name: str = "name") -> None:
    """Print one object: as data, its name, or labelled lines."""
    if style.format in ("json", "yaml"):
        print_data(item.model_dump(mode="json", exclude_none=True), style.format)
    elif style.format == "name":
        click.echo(getattr(item, name))
    else:
        pairs = [(label, text(value)) for label, value in lines]
        width = max((len(label) for label, value in pairs if value), default=0)
        for label, value in pairs:
            if value:
                first, *more = value.split("\n")
                click.echo(f"{click.style(label + ':', bold=True)}{' ' * (width - len(label) + 2)}{first}")
                for line in more:
                    click.echo(" " * (width + 3) + line)


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns as wide as they need, two spaces apart; the heading bold on a terminal."""
    everything = [list(headings), *map(list, rows)] if headings else [list(row) for row in rows]
    if not everything:
        return
    widths = [max(len(row[at]) for row in everything) for at in range(len(everything[0]))]
    for number, row in enumerate(everything):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        click.echo(click.style(line, bold=True) if headings and number == 0 else line)


def amounts(vector: Mapping[str, object]) -> str:
    """``gpu 4, mcpu 8000``."""
    return ", ".join(f"{key} {number(value)}" for key, value in vector.items() if value)


def number(value: object) -> str:
    """An amount without needless zeros."""
    return f"{value:f}".rstrip("0").rstrip(".") if "." in str(value) else str(value)


def shares(used: Mapping[str, object], of: Mapping[str, object]) -> str:
    """``gpu 4/8, step_run 1/10``."""
    return ", ".join(f"{key} {number(used.get(key, 0))}/{number(total)}" for key, total in of.items())


def ago(at: datetime | None, *, now: datetime | None = None) -> str:
    """How long ago, in the two largest units: ``3m20s``."""
    if at is None:
        return ""
    return duration(((now or datetime.now(UTC)) - at).total_seconds())


def duration(seconds: float) -> str:
    """A length of time in the two largest units that say something."""
    left = max(0, int(seconds))
    units = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))
    parts: list[str] = []
    for unit, size in units:
        count, left = divmod(left, size)
        if count or (unit == "s" and not parts):
            parts.append(f"{count}{unit}")
    return "".join(parts[:2])


def moment(at: datetime | None) -> str:
    """A moment in local time, to the second, with its zone."""
    return at.astimezone().strftime("%Y-%m-%d %H:%M:%S %Z") if at is not None else ""


def chosen(columns: Sequence[Column], style: Style) -> list[Column]:
    """The columns that the style asks for. Raises UsageError for one that there is not."""
    if style.columns:
        by_name = {column.name.lower(): column for column in columns}
        unknown = [name for name in style.columns if name.lower() not in by_name]
        if unknown:
            possible = ", ".join(column.name for column in columns)
            raise click.UsageError(f"no column {unknown[0]!r}; possible: {possible}")
        return [by_name[name.lower()] for name in style.columns]
    return [column for column in columns if style.format in ("wide", "csv") or not column.wide]


def _sorted(rows: list[list[str]], columns: Sequence[Column], by: str) -> list[list[str]]:
    names = [column.name.lower() for column in columns]
    if by.lower() not in names:
        raise click.UsageError(f"cannot sort by {by!r}; possible: {', '.join(column.name for column in columns)}")
    at = names.index(by.lower())

    def key(row: list[str]) -> tuple[int, float, str]:
        try:
            return (0, float(row[at]), "")
        except ValueError:
            return (1, 0.0, row[at])

    return sorted(rows, key=key)


def text(value: object) -> str:
    """A cell of a table."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return moment(value)
    if isinstance(value, Mapping):
        return amounts(value)
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return str(value)


def print_data(data: object, form: str) -> None:
    if form == "json":
        click.echo(json.dumps(data, indent=2, ensure_ascii=False))
    else:
        import yaml

        click.echo(yaml.safe_dump(data, sort_keys=False, allow_unicode=True), nl=False)

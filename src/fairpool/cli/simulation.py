"""What ``simulate`` and ``apply --replay`` share: a bar, the server's demand and rules, and printing tables."""

from __future__ import annotations

import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from itertools import chain, takewhile
from typing import TYPE_CHECKING, Any

import click

from fairpool.cli import render, serverside

if TYPE_CHECKING:
    from fairpool.client.api import Client
    from fairpool.wire.requests import RequestView

SHOWN_AFTER_S = 1.0
"""What is over sooner needs no bar."""

WIDTH = 30

INDENT = "    "
MIN_ACROSS, MOST_ACROSS = 40, 120
"""Characters across which sentences are told, whatever the terminal's width."""

DECIDING = ("component", "user", "team", "service-account", "pool", "profile", "policy")
"""Kinds of documents that decide what becomes of work, each after those that it names."""


class Bar:
    """How far a simulation is: one line on a terminal, from the second second on; nothing elsewhere."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._is_live = sys.stderr.isatty()
        self._open = False

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def told(self, what: str, of: int, at: int) -> None:
        """So many of so many jobs have arrived under the rules of that name."""
        spent_s = time.monotonic() - self._began
        if not self._is_live or spent_s < SHOWN_AFTER_S:
            return
        done = WIDTH * at // max(1, of)
        line = f"{'█' * done}{'░' * (WIDTH - done)} {at:,} of {of:,} jobs, {what} (Ctrl-C keeps what was reached)"
        columns = shutil.get_terminal_size().columns
        click.echo(f"\r\033[K{line[: columns - 1]}", err=True, nl=False)
        self._open = True

    def close(self) -> None:
        """Take the line away."""
        if self._open:
            click.echo("\r\033[K", err=True, nl=False)
            self._open = False


class Wrong(click.ClickException):
    """What was asked for cannot be simulated."""

    exit_code = 2


def simulated(asked: dict[str, Any]) -> Any:
    """Simulate, with a bar. Raises Wrong with all that is wrong with what was asked for."""
    make = serverside.load("fairpool.admin.simulation", "Asked")
    run = serverside.load("fairpool.admin.simulation", "simulated_or_told")
    with Bar() as bar:
        found = run(make(**asked), bar.told)
    if isinstance(found, str):
        raise Wrong(found)
    return found


def written_to(found: Any, paths: dict[str, str | None]) -> list[str]:
    """Write the report to the files that were named, by kind; the names of all that were written."""
    try:
        return [str(path) for path in serverside.load("fairpool.admin.simulation", "write")(found, paths)]
    except OSError as error:
        raise click.ClickException(f"{error.filename}: {error.strerror}") from None


def recorded(client: Client, since: str, until: str) -> list[RequestView]:
    """The requests that arrived in that time, the newest first; "" for no bound."""
    views: Iterable[RequestView] = client.requests(view="all")
    if since:
        first = datetime.fromisoformat(since)
        views = takewhile(lambda view: view.created_at >= first, views)
    last = datetime.fromisoformat(until) if until else None
    return [view for view in views if last is None or view.created_at < last]


def documents_of(client: Client) -> list[dict[str, Any]]:
    """Everything that decides what becomes of work, as documents."""
    views: dict[str, Callable[[], Iterable[Any]]] = {
        "component": client.components,
        "user": client.users,
        "team": client.teams,
        "service-account": client.service_accounts,
        "pool": client.pools,
        "profile": client.profiles,
        "policy": client.policies,
    }
    return list(chain.from_iterable(_documents(kind, views[kind]()) for kind in DECIDING))


def _documents(kind: str, views: Iterable[Any]) -> Iterable[dict[str, Any]]:
    for view in views:
        shown = view.model_dump(mode="json", exclude_none=True)
        # Of a component the word says what it is, which is a document's kind as well.
        yield shown if kind == "component" else {"kind": kind, **shown}


def print_tables(tables: Sequence[Any]) -> None:
    """The report, table by table."""
    for number, table in enumerate(tables):
        if number:
            click.echo()
        click.echo(click.style(table.title, bold=True))
        widths = [max(map(len, column)) for column in zip(table.headings, *table.rows, strict=True)]
        rows = [
            [cell.rjust(widths[at]) if at in table.numeric else cell for at, cell in enumerate(row)]
            for row in (table.headings, *table.rows)
        ]
        if table.details:
            _print_explained(rows, table.details)
        else:
            render.print_table(rows[0], rows[1:])
        for line in table.note:
            click.echo(line)


def _print_explained(rows: Sequence[Sequence[str]], details: Sequence[Sequence[str]]) -> None:
    """A table with sentences under each row, as wide as the terminal."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    heading, *lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    click.echo(click.style(heading.rstrip(), bold=True))
    across = max(MIN_ACROSS, shutil.get_terminal_size((MOST_ACROSS, 0)).columns)
    for line, sentences in zip(lines, details, strict=True):
        click.echo(line.rstrip())
        for sentence in sentences:
            click.echo(
                textwrap.fill(sentence, min(across, MOST_ACROSS), initial_indent=INDENT, subsequent_indent=INDENT)
            )

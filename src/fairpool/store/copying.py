"""All rows of one database into another, whatever kind each of them is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

from sqlalchemy import Connection, Table, func, select

from fairpool.app.store_errors import StoreUnusable
from fairpool.store import schema
from fairpool.store.databases import TableWriter

_ROWS_AT_ONCE: Final = 5_000

_REPORT: Final = "error"
"""The column of a run and of a step in which earlier versions kept a NUL, where the database did."""

Progress = Callable[[str, int, int], None]
"""Told the table, how many of its rows were copied, and how many there are."""


def copy_all(
    source: Connection, target: Connection, writers: Callable[[Table], TableWriter], progress: Progress
) -> dict[str, int]:
    """Copy the rows of all tables into empty ones; whoever is pointed to goes before who points. Returns how many of
    each there are, which were counted on both sides.

    Nobody leads in the copy: whoever led at the source does so there, and the tokens go on growing (S34).
    Raises StoreUnusable when what arrived is not what was sent.
    """
    counts = {}
    for table in schema.metadata.sorted_tables:
        total = count(source, table)
        copied = 0
        for rows in _chunks(source, table):
            writers(table).insert(target, rows)
            copied += len(rows)
            progress(table.name, copied, total)
        arrived = count(target, table)
        if not total == copied == arrived:
            raise StoreUnusable(
                f"of {total:,} rows of {table.name}, {copied:,} were read and {arrived:,} arrived; nothing was changed"
            )
        counts[table.name] = total
    target.execute(schema.leaders.update().values(until=0))
    return counts


def count(connection: Connection, table: Table) -> int:
    """How many rows a table has."""
    return int(connection.execute(select(func.count()).select_from(table)).scalar_one())


def _chunks(source: Connection, table: Table) -> Iterator[Sequence[dict[str, Any]]]:
    # In the order of their keys, so that the copy's pages are filled in that order.
    everything = select(table).order_by(*table.primary_key.columns)
    rows = source.execution_options(yield_per=_ROWS_AT_ONCE).execute(everything).mappings()
    while chunk := [dict(row) for row in islice(rows, _ROWS_AT_ONCE)]:
        if _REPORT in table.c:
            for row in chunk:
                row[_REPORT] = row[_REPORT].replace("\0", "\ufffd")
        yield chunk

"""Statements that are compiled once and run with many rows, one after the other.

Rows go to the driver as they are, past the layer that looks at the type of each value: all our columns are numbers and
texts that every driver takes.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from sqlalchemy import Connection, Dialect, Executable, Table, bindparam, delete, update
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.compiler import SQLCompiler

from fairpool.store.databases import Rows, Touched


class Statement:
    """One statement for one dialect; its parameters are taken from rows by name."""

    def __init__(self, statement: Executable, dialect: Dialect) -> None:
        compiled = statement.compile(dialect=dialect)  # type: ignore[attr-defined]  # every clause has it
        assert isinstance(compiled, SQLCompiler)
        self.text = compiled.string
        self._names: Sequence[str] | None = compiled.positiontup

    def parameters(self, row: Mapping[str, Any]) -> Any:
        """One row as this driver takes it."""
        return row if self._names is None else tuple([row[name] for name in self._names])

    def of_rows(self, count: int) -> str:
        """The text that inserts so many rows, of one that inserts one."""
        head, values, row = self.text.rpartition(" VALUES ")
        return head + values + ", ".join([row] * count)


def driver(connection: Connection) -> sqlite3.Connection:
    """The driver's own connection: a statement costs a tenth there, and a round runs half a dozen."""
    return cast("sqlite3.Connection", connection.connection.driver_connection)


@contextlib.contextmanager
def _telling(statement: Statement) -> Iterator[None]:
    """Within the block, what the driver raises says which statement it was: that tells what was violated."""
    try:
        yield
    except sqlite3.Error as error:
        raise DBAPIError(statement.text, None, error) from error


ROWS_AT_ONCE: Final = 16
"""Rows in one statement: some versions of SQLite take 999 values at most, and a request has forty."""


def _in_parts(rows: Rows) -> Iterator[Rows]:
    """By powers of two, so that there are few different statements to prepare."""
    at = 0
    while at < len(rows):
        size = min(ROWS_AT_ONCE, 1 << (len(rows) - at).bit_length() - 1)
        yield rows[at : at + size]
        at += size


class Statements:
    """See `databases.TableWriter`: of a table in SQLite. Statements are made when they are first needed."""

    def __init__(self, table: Table, dialect: Dialect) -> None:
        self._table = table
        self._dialect = dialect
        self._made: dict[tuple[str, ...], Statement] = {}

    def insert(self, connection: Connection, rows: Rows) -> None:
        """See `databases.TableWriter`. Many in one statement: between two statements other threads have their turn, and
        the one who writes would wait for its own again after each row."""
        if not rows:
            return
        statement = self._statement(("insert",), rows[0], lambda row: insert(self._table).values(_parameters(row)))
        with _telling(statement):
            for some in _in_parts(rows):
                values = [value for row in some for value in statement.parameters(row)]
                driver(connection).execute(statement.of_rows(len(some)), values)

    def add_missing(self, connection: Connection, rows: Rows) -> None:
        """See `databases.TableWriter`."""

        def make(row: Mapping[str, Any]) -> Executable:
            return insert(self._table).values(_parameters(row)).on_conflict_do_nothing()

        self._run(connection, ("add_missing",), rows, make)

    def put(self, connection: Connection, rows: Rows, *, by: tuple[str, ...], keep: tuple[str, ...] = ()) -> None:
        """See `databases.TableWriter`."""

        def make(row: Mapping[str, Any]) -> Executable:
            adding = insert(self._table).values(_parameters(row))
            changed = {name: adding.excluded[name] for name in row if name not in (*by, *keep)}
            return adding.on_conflict_do_update(index_elements=by, set_=changed)

        self._run(connection, ("put", *by), rows, make)

    def change(self, connection: Connection, rows: Rows, *, by: tuple[str, ...]) -> Touched:
        """See `databases.TableWriter`."""

        def make(row: Mapping[str, Any]) -> Executable:
            conditions = [self._table.c[name] == bindparam(f"by_{name}") for name in by]
            changed = _parameters({name: row[name] for name in row if name not in by and not name.startswith("by_")})
            return update(self._table).where(*conditions).values(changed)

        found_by = [row | {f"by_{name}": row[name] for name in by} for row in map(dict, rows)]
        return self._run(connection, ("change", *by), found_by, make)

    def drop(self, connection: Connection, rows: Rows) -> Touched:
        """See `databases.TableWriter`."""

        def make(row: Mapping[str, Any]) -> Executable:
            return delete(self._table).where(*[self._table.c[name] == bindparam(name) for name in row])

        return self._run(connection, ("drop",), rows, make)

    def _run(
        self, connection: Connection, name: tuple[str, ...], rows: Rows, make: Callable[[Mapping[str, Any]], Executable]
    ) -> Touched:
        if not rows:
            return lambda: 0
        statement = self._statement(name, rows[0], make)
        with _telling(statement):
            touched = driver(connection).executemany(statement.text, map(statement.parameters, rows)).rowcount
        return lambda: touched

    def _statement(
        self, name: tuple[str, ...], row: Mapping[str, Any], make: Callable[[Mapping[str, Any]], Executable]
    ) -> Statement:
        key = (*name, "", *row)
        if key not in self._made:
            self._made[key] = Statement(make(row), self._dialect)
        return self._made[key]


def _parameters(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: bindparam(name) for name in row}

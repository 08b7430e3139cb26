"""Statements that are compiled once and run with many rows.

Rows go to the driver as they are, past the layer that looks at the type of each value: all our columns are numbers and
texts that every driver takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Dialect, Executable, Table, bindparam, delete, insert, update
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.sql.compiler import SQLCompiler

Rows = Sequence[Mapping[str, Any]]


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

    def run(self, connection: Connection, rows: Rows) -> int:
        """Run it for each row. Returns how many rows of the table it touched."""
        if not rows:
            return 0
        return connection.exec_driver_sql(self.text, [self.parameters(row) for row in rows]).rowcount


class Statements:
    """The statements on one table, made when they are first needed."""

    def __init__(self, table: Table, dialect: Dialect) -> None:
        self._table = table
        self._dialect = dialect
        self._made: dict[tuple[str, ...], Statement] = {}

    def insert(self, connection: Connection, rows: Rows) -> None:
        """Add rows; every row has the same columns."""
        self._make(("insert",), rows, lambda row: insert(self._table).values({n: bindparam(n) for n in row})).run(
            connection, rows
        )

    def add_missing(self, connection: Connection, rows: Rows) -> None:
        """Add those rows whose key is not there."""
        self._make(
            ("add_missing",),
            rows,
            lambda row: self._insert().values({n: bindparam(n) for n in row}).on_conflict_do_nothing(),
        ).run(connection, rows)

    def put(self, connection: Connection, rows: Rows, *, by: tuple[str, ...], keep: tuple[str, ...] = ()) -> None:
        """Add rows, or change those with the same values of `by`; an old row keeps its values of `keep`."""

        def make(row: Mapping[str, Any]) -> Executable:
            adding = self._insert().values({name: bindparam(name) for name in row})
            changed = {name: adding.excluded[name] for name in row if name not in (*by, *keep)}
            putting: Executable = adding.on_conflict_do_update(index_elements=by, set_=changed)
            return putting

        self._make(("put", *by), rows, make).run(connection, rows)

    def change(self, connection: Connection, rows: Rows, *, by: tuple[str, ...]) -> int:
        """Change rows that are there, found by `by` (given in the rows as ``by_<column>``). Returns how many were."""

        def make(row: Mapping[str, Any]) -> Executable:
            conditions = [self._table.c[name] == bindparam(f"by_{name}") for name in by]
            columns = [name for name in row if not name.startswith("by_")]
            return update(self._table).where(*conditions).values({name: bindparam(name) for name in columns})

        return self._make(("change", *by), rows, make).run(connection, rows)

    def drop(self, connection: Connection, rows: Rows) -> int:
        """Remove the rows that have these values. Returns how many were there."""
        return self._make(
            ("drop",), rows, lambda row: delete(self._table).where(*[self._table.c[n] == bindparam(n) for n in row])
        ).run(connection, rows)

    def _insert(self) -> Any:
        return (postgresql_insert if self._dialect.name == "postgresql" else sqlite_insert)(self._table)

    def _make(self, name: tuple[str, ...], rows: Rows, make: Any) -> Statement:
        columns = tuple(rows[0]) if rows else ()
        key = (*name, "", *columns)
        if key not in self._made and rows:
            self._made[key] = Statement(make(rows[0]), self._dialect)
        return self._made.get(key, _NOTHING)


class _Nothing(Statement):
    def __init__(self) -> None:
        pass

    def run(self, connection: Connection, rows: Rows) -> int:
        return 0


_NOTHING = _Nothing()

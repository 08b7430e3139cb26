"""Rows of a PostgreSQL table, however many, in one statement.

They travel as one JSON text, and the table itself says of which types they are. One statement for each row would cost
four times as much.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from types import MappingProxyType
from typing import Any, Final, cast

import psycopg
from psycopg.sql import SQL, Identifier
from sqlalchemy import Connection, Table

from fairpool.store.databases import Rows, Touched

_encode = json.JSONEncoder(separators=(",", ":")).encode

_ROWS: Final = SQL("json_populate_recordset(NULL::{table}, %s)")
_TEMPLATES: Final = MappingProxyType(
    {
        "insert": SQL("INSERT INTO {table} ({columns}) SELECT {columns} FROM {rows} new"),
        "add_missing": SQL("INSERT INTO {table} ({columns}) SELECT {columns} FROM {rows} new ON CONFLICT DO NOTHING"),
        "put": SQL(
            "INSERT INTO {table} ({columns}) SELECT {columns} FROM {rows} new "
            "ON CONFLICT ({by}) DO UPDATE SET {changes}"
        ),
        "change": SQL("UPDATE {table} old SET {changes} FROM {rows} new WHERE {same}"),
        "drop": SQL("DELETE FROM {table} old USING {rows} new WHERE {same}"),
    }
)


def driver(connection: Connection) -> psycopg.Connection[Any]:
    """The driver's own connection."""
    return cast("psycopg.Connection[Any]", connection.connection.driver_connection)


class JsonRows:
    """See `databases.TableWriter`. Statements are made when they are first needed."""

    def __init__(self, table: Table) -> None:
        self._table = Identifier(table.name)
        self._made: dict[tuple[object, ...], bytes] = {}

    def insert(self, connection: Connection, rows: Rows) -> None:
        """See `databases.TableWriter`."""
        self._run(connection, "insert", rows)

    def add_missing(self, connection: Connection, rows: Rows) -> None:
        """See `databases.TableWriter`."""
        self._run(connection, "add_missing", rows)

    def put(self, connection: Connection, rows: Rows, *, by: tuple[str, ...], keep: tuple[str, ...] = ()) -> None:
        """See `databases.TableWriter`."""
        self._run(connection, "put", rows, by=by, keep=keep, new="excluded")

    def change(self, connection: Connection, rows: Rows, *, by: tuple[str, ...]) -> Touched:
        """See `databases.TableWriter`."""
        return self._run(connection, "change", rows, by=by)

    def drop(self, connection: Connection, rows: Rows) -> Touched:
        """See `databases.TableWriter`."""
        return self._run(connection, "drop", rows, by=tuple(rows[0]) if rows else ())

    def _run(
        self,
        connection: Connection,
        what: str,
        rows: Rows,
        *,
        by: tuple[str, ...] = (),
        keep: tuple[str, ...] = (),
        new: str = "new",
    ) -> Touched:
        if not rows:
            return lambda: 0
        key = (what, by, keep, *rows[0])
        if key not in self._made:
            self._made[key] = self._make(_TEMPLATES[what], tuple(rows[0]), by, keep, new)
        cursor = driver(connection).execute(self._made[key], [_encode(rows)])
        return lambda: cursor.rowcount

    def _make(self, template: SQL, columns: Iterable[str], by: Iterable[str], keep: Iterable[str], new: str) -> bytes:
        changed = [name for name in columns if name not in (*by, *keep)]
        parts = {
            "table": self._table,
            "rows": _ROWS.format(table=self._table),
            "columns": SQL(", ").join(map(Identifier, columns)),
            "by": SQL(", ").join(map(Identifier, by)),
            "same": SQL(" AND ").join(SQL("old.{name} = new.{name}").format(name=Identifier(name)) for name in by),
            "changes": SQL(", ").join(
                SQL("{name} = {new}.{name}").format(name=Identifier(name), new=Identifier(new)) for name in changed
            ),
        }
        return template.format(**parts).as_bytes(None)

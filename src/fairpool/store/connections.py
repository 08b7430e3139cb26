"""How the readers get at the database: a transaction for an answer of several parts, a shortcut for one row."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, Engine

from fairpool.store.databases import Database
from fairpool.store.statements import Statement


class Reading:
    """Read access to one database. merges: whether it finds each of several alternatives in order (`alternatives`)."""

    def __init__(self, engine: Engine, database: Database) -> None:
        self._engine = engine
        self._database = database
        self.dialect = engine.dialect
        self.merges = engine.dialect.name == "postgresql"

    @contextlib.contextmanager
    def __call__(self) -> Iterator[Connection]:
        """A connection that sees one moment."""
        with self._database.translated(), self._engine.begin() as connection:
            yield connection

    def row(self, statement: Statement, **values: object) -> tuple[Any, ...] | None:
        """The first row that one statement finds: a tenth of the cost, for what is asked a thousand times a second."""
        with self._database.translated():
            connection = self._engine.raw_connection()
            try:
                cursor = connection.cursor()
                cursor.execute(statement.text, statement.parameters(values))
                found: tuple[Any, ...] | None = cursor.fetchone()
                cursor.close()
            except BaseException:
                connection.invalidate()  # who knows in which state it is
                raise
            connection.close()
            return found

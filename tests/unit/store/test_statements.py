"""Rows go into a table of SQLite many at a time, and what the driver refuses is told with its statement."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Column, Connection, Integer, MetaData, Table, Text, create_engine
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.exc import DBAPIError

from fairpool.store import schema
from fairpool.store.statements import ROWS_AT_ONCE, Statements, driver

# In another order than the rows below have.
PAIRS = Table("pairs", MetaData(), Column("value", Text), Column("number", Integer, primary_key=True))


@pytest.fixture
def connection() -> Iterator[Connection]:
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        PAIRS.metadata.create_all(connection)
        yield connection
    engine.dispose()


@pytest.fixture
def pairs() -> Statements:
    return Statements(PAIRS, SQLiteDialect_pysqlite(paramstyle="qmark"))


@pytest.mark.parametrize("count", [0, 1, 7, ROWS_AT_ONCE, ROWS_AT_ONCE + 1, 5 * ROWS_AT_ONCE - 1])
def test_any_number_of_rows_is_inserted(connection: Connection, pairs: Statements, count: int) -> None:
    rows = [{"number": number, "value": f"no. {number}"} for number in range(count)]
    pairs.insert(connection, rows)
    found = connection.execute(PAIRS.select().order_by(PAIRS.c.number)).mappings().all()
    assert [dict(row) for row in found] == rows


def test_as_many_rows_as_go_at_once_take_one_statement(connection: Connection, pairs: Statements) -> None:
    run: list[str] = []
    driver(connection).set_trace_callback(run.append)
    pairs.insert(connection, [{"number": number, "value": ""} for number in range(ROWS_AT_ONCE)])
    assert len([text for text in run if text.startswith("INSERT")]) == 1


def test_one_statement_of_the_widest_table_has_no_more_values_than_any_sqlite_takes() -> None:
    assert max(len(table.columns) for table in schema.metadata.tables.values()) * ROWS_AT_ONCE <= 999


def test_what_is_refused_is_told_with_its_statement(connection: Connection, pairs: Statements) -> None:
    row = {"number": 1, "value": ""}
    with pytest.raises(DBAPIError, match=r"UNIQUE constraint failed: pairs\.number") as caught:
        pairs.insert(connection, [row, row])
    assert caught.value.statement is not None
    assert caught.value.statement.startswith("INSERT INTO pairs")

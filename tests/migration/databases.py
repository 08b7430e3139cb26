"""Databases of earlier schemas, of either kind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from alembic import command
from sqlalchemy import MetaData, text

from fairpool.store import migrating
from fairpool.store.urls import database_of

FROZEN: Final = Path(__file__).parent / "made_by_0001"
"""Rows that the code of schema 0001 wrote, and what it asked of them. Both are kept as they were."""


def at_revision(url: str, revision: str) -> None:
    """Make an empty database as that revision left it."""
    writer = database_of(url).writer()
    with writer.begin() as connection:
        config = migrating._config()
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
    writer.dispose()


def write_rows_of_0001(url: str) -> None:
    """Write what the code of schema 0001 wrote: queued, granted, preempting and finished requests, and all around."""
    writer = database_of(url).writer()
    tables = MetaData()
    with writer.begin() as connection:
        tables.reflect(connection)
        for table, rows in sorted(rows_of_0001().items(), key=lambda of: of[0] == "labels"):  # as that code did, last
            connection.execute(tables.tables[table].insert(), rows)
    writer.dispose()


def rows_of_0001() -> dict[str, list[dict[str, Any]]]:
    """By table, in the order in which they can be written."""
    found: dict[str, list[dict[str, Any]]] = json.loads((FROZEN / "rows.json").read_text("utf-8"))
    return found


def answers_to_0001(url: str) -> list[tuple[str, list[tuple[Any, ...]]]]:
    """What that code's questions are answered with: the question, and its rows."""
    readers = database_of(url).readers()
    with readers.begin() as connection:
        answers = [
            (question, sorted((tuple(row) for row in connection.execute(text(question))), key=repr))
            for question in questions_of_0001()
        ]
    readers.dispose()
    return answers


def questions_of_0001() -> Iterator[str]:
    """The statements."""
    for line in (FROZEN / "reads.sql").read_text("utf-8").splitlines():
        if line and not line.startswith("--"):
            yield line.removesuffix(";").replace(":", r"\:")

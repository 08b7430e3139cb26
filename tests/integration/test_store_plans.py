"""How SQLite finds what the store asks for: by an index or the order of a table, never by sorting or reading it all.

It chooses by rules of thumb, and an index too many can mislead it; that shows only when there is much in the tables.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairpool.store import opening, schema

MINE = "workspace = 'default'"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    opening.migrate(f"sqlite:///{tmp_path / 'fairpool.db'}")
    connection = sqlite3.connect(tmp_path / "fairpool.db")
    yield connection
    connection.close()


@pytest.mark.parametrize(
    ("statement", "found_by"),
    [
        (f"SELECT * FROM requests WHERE {MINE} AND id = 'r'", "sqlite_autoindex_requests_1 (id=? AND workspace=?)"),
        (f"UPDATE requests SET version = 2 WHERE {MINE} AND id = 'r'", "sqlite_autoindex_requests_1"),
        (
            f"SELECT * FROM requests WHERE {MINE} AND id >= 'r' AND id < 's'",
            "sqlite_autoindex_requests_1 (id>? AND id<?)",
        ),
        (f"SELECT * FROM requests WHERE {MINE} AND {schema.LIVE} ORDER BY seq", "ix_requests_live (workspace=?)"),
        (f"SELECT * FROM requests WHERE {MINE} ORDER BY seq DESC LIMIT 100", "SCAN requests"),
        (f"SELECT * FROM requests WHERE {MINE} AND seq < 9 ORDER BY seq DESC", "INTEGER PRIMARY KEY (rowid<?)"),
        (f"SELECT * FROM requests WHERE {MINE} AND pool_id = 'p' ORDER BY seq DESC", "ix_requests_pool_id"),
        (f"SELECT * FROM requests WHERE {MINE} AND run = 'x' ORDER BY seq DESC", "ix_requests_run"),
        ("SELECT max(seq) FROM requests", "SEARCH requests"),
        ("SELECT max(seq) FROM history", "SEARCH history"),
        (f"SELECT * FROM history WHERE {MINE} AND seq > 5 ORDER BY seq", "INTEGER PRIMARY KEY (rowid>?)"),
        (f"SELECT * FROM history WHERE {MINE} AND object_id = 'r' ORDER BY seq", "ix_history_object (object_id=?"),
        (f"SELECT * FROM history WHERE {MINE} AND run = 'r' ORDER BY seq", "ix_history_run (run=?"),
        (
            f"SELECT * FROM history WHERE {MINE} AND {schema.RULES} ORDER BY seq DESC",
            "SCAN history USING INDEX ix_history_rules",
        ),
        (
            f"SELECT * FROM history WHERE {MINE} AND {schema.RULES} AND kind = 'pool' ORDER BY seq DESC",
            "SCAN history USING INDEX ix_history_rules",
        ),
        (f"SELECT * FROM runs WHERE {MINE} ORDER BY seq DESC LIMIT 9", "SCAN runs"),
        (f"SELECT * FROM runs WHERE {MINE} AND name = 'n' ORDER BY seq DESC LIMIT 1", "ix_runs_name (name=?)"),
        (f"SELECT * FROM steps WHERE {MINE} AND run_id = 'n' ORDER BY seq", "ix_steps_run (run_id=?)"),
        (
            f"SELECT sum(share) FROM held_devices WHERE {MINE} AND pool_id = 'p' AND node = '' AND device = 0",
            "PRIMARY KEY (pool_id=? AND node=? AND device=? AND workspace=?)",
        ),
        (f"DELETE FROM held_devices WHERE {MINE} AND request_id = 'r'", "ix_held_devices_request (request_id=? AND"),
        (f"SELECT * FROM idempotency_keys WHERE {MINE} AND kind = 'request' AND key = 'k'", "kind=? AND key=?"),
    ],
)
def test_what_is_asked_often_is_found_without_reading_a_table(
    database: sqlite3.Connection, statement: str, found_by: str
) -> None:
    steps = [row[3] for row in database.execute(f"EXPLAIN QUERY PLAN {statement}")]
    assert any(found_by in step for step in steps), steps
    assert not [step for step in steps if "TEMP B-TREE" in step or (step.startswith("SCAN") and step not in found_by)]

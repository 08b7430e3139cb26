"""The two kinds of databases that crashes are tried on: how to copy one as a killed process leaves it, and read it."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import shutil
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import psycopg
import psycopg.sql

from fairpool.store import opening
from tests.postgres import Cluster
from tests.waiting import wait_until

Row = dict[str, Any]
Dump = dict[str, list[Row]]
"""Everything that a database holds: rows by table, in an order of their own."""

_NOT_OURS: Final = {"alembic_version"}


class Databases(Protocol):
    """Where crashes are tried."""

    kind: str
    tears: bool
    """Whether a killed process could leave the database itself torn, so that each is read through."""

    def new(self) -> str:
        """The URL of an empty database of the current schema."""

    def dump(self, url: str) -> Dump:
        """What is committed there."""

    def keep(self, url: str, dump: Dump) -> Any:
        """The database as it is, for `copy`; nobody is in the middle of anything there. dump: what is committed."""

    def copy(self, kept: Any) -> str:
        """The URL of a new database that is as that one was."""

    def settle(self, url: str) -> None:
        """Wait until nothing of a killed process is under way there."""

    def drop(self, url: str) -> None:
        """Nobody needs that database any more."""

    def forget(self, kept: Any) -> None:
        """Nobody copies from that any more."""


class SqliteDatabases:
    """Files, copied byte by byte: the log of what is not yet in the main file goes along, as after a kill."""

    kind = "SQLite"
    tears = True

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count()

    def new(self) -> str:
        url = self._url(self._place())
        opening.migrate(url)
        return url

    def dump(self, url: str) -> Dump:
        reading = sqlite3.connect(f"file:{url.removeprefix('sqlite:///')}?mode=ro", uri=True)
        with contextlib.closing(reading):
            reading.row_factory = sqlite3.Row
            names = reading.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            # In the order of their keys, which is one of their own.
            return {
                name: [dict(row) for row in reading.execute(f"SELECT * FROM {name}")]
                for (name,) in names
                if _is_ours(name)
            }

    def keep(self, url: str, dump: Dump) -> Path:
        kept = self._place()
        self._copy(Path(url.removeprefix("sqlite:///")).parent, kept)
        return kept

    def copy(self, kept: Path) -> str:
        place = self._place()
        self._copy(kept, place)
        return self._url(place)

    def settle(self, url: str) -> None:
        """A killed process leaves nothing under way."""

    def drop(self, url: str) -> None:
        shutil.rmtree(Path(url.removeprefix("sqlite:///")).parent, ignore_errors=True)

    def forget(self, kept: Path) -> None:
        shutil.rmtree(kept, ignore_errors=True)

    def _copy(self, source: Path, target: Path) -> None:
        for file in source.iterdir():
            shutil.copy2(file, target / file.name)

    def _place(self) -> Path:
        place = self._folder / str(next(self._numbers))
        place.mkdir(parents=True)
        return place

    def _url(self, place: Path) -> str:
        return f"sqlite:///{place / 'fairpool.db'}"


class PostgresDatabases:
    """Databases of one cluster, each used again and again: a copy is filled with the rows of the original."""

    kind = "PostgreSQL"
    tears = False

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._free: list[str] = []
        self._template = ""
        self._everything = b""
        self._connections: dict[tuple[int, str], psycopg.Connection] = {}

    def new(self) -> str:
        if not self._template:
            self._template = self._cluster.new_database()
            opening.migrate(self._template)
        return self._cluster.new_database(f"TEMPLATE {self._template.rpartition('/')[2]}")

    def dump(self, url: str) -> Dump:
        reading = self._connection(url)
        if not self._everything:
            tables = [name for (name,) in reading.execute(_TABLES) if _is_ours(name)]
            each = (f"SELECT '{name}', (SELECT json_agg(rows) FROM {name} rows)" for name in tables)
            self._everything = " UNION ALL ".join(each).encode()
        found = reading.execute(self._everything, prepare=True).fetchall()
        return {name: sorted(rows or [], key=lambda row: repr(list(row.values()))) for name, rows in found}

    def keep(self, url: str, dump: Dump) -> Dump:
        return dump

    def copy(self, kept: Dump) -> str:
        url = self._free.pop() if self._free else self.new()
        said = ["SET session_replication_role = replica"]  # in any order: all of it comes
        said += [f"DELETE FROM {table}" for table in kept]
        said += [
            f"INSERT INTO {table} SELECT * FROM json_populate_recordset(NULL::{table}, {_text(rows)})"
            for table, rows in kept.items()
            if rows
        ]
        self._connection(url).execute("; ".join(said).encode())
        return url

    def settle(self, url: str) -> None:
        """The server notices that its client is gone, and ends what that had begun."""
        database = url.rpartition("/")[2]
        looking, ours = self._connection(self._cluster.superuser), self._connection(url).info.backend_pid

        def is_alone() -> bool:
            return not looking.execute(_OTHERS, [database, ours]).fetchall()

        wait_until(is_alone, what=f"the killed process's sessions in {database} to end")

    def drop(self, url: str) -> None:
        self._free.append(url)

    def _connection(self, url: str) -> psycopg.Connection:
        """This process's own to that database: it has learned what there is, and planned the dump, once."""
        found = self._connections.get((os.getpid(), url))
        if found is None:
            found = self._connections[os.getpid(), url] = psycopg.connect(url, autocommit=True)
        return found

    def forget(self, kept: Dump) -> None:
        """Nothing but rows in memory."""


_TABLES: Final = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename"
_OTHERS: Final = "SELECT pid FROM pg_stat_activity WHERE datname = %s AND pid <> %s AND backend_type = 'client backend'"


def _text(rows: list[Row]) -> str:
    return psycopg.sql.Literal(json.dumps(rows)).as_string()


def _is_ours(table: str) -> bool:
    return table not in _NOT_OURS and not table.startswith("sqlite_")


# ---- comparing -------------------------------------------------------------------------------------------------------

_NUMBER: Final = re.compile(r"\d{9,}")
_WHO_IS_ALIVE: Final = {"lease_until", "lease_length_s"}


Told = dict[str, list[str]]


def without_time(dump: Dump) -> Told:
    """What there is to compare between two days of which one was interrupted: everything but moments, who leads, and
    how long owners are believed to be alive; the history of each object in its order."""
    told: Told = {}
    for table, kept in dump.items():
        if table == "leaders":
            continue
        rows = kept
        if table == "history":
            # That a workspace is about to be removed is said again by whoever goes on removing it.
            rows = [row for row in kept if row["what"] != "erased"]
            rows.sort(key=lambda row: (row["kind"], row["object_id"], row["seq"]))
        dropped = _WHO_IS_ALIVE | ({"seq"} if table == "history" else set())
        told[table] = [_NUMBER.sub("t", repr([(k, v) for k, v in row.items() if k not in dropped])) for row in rows]
    return told


def differences(found: Dump, expected: Told) -> list[str]:
    """What differs from what was expected, but for time; a few rows of each table."""
    ours, theirs = without_time(found), expected
    said = []
    for table in theirs:
        if ours[table] == theirs[table]:
            continue
        said += [f"{table}, missing: {row}" for row in _more(theirs[table], ours[table])]
        said += [f"{table}, unexpected: {row}" for row in _more(ours[table], theirs[table])]
        if sorted(ours[table]) == sorted(theirs[table]):
            said.append(f"{table}: in another order")
    return said


def _more(these: Sequence[str], those: Sequence[str]) -> list[str]:
    rest = list(those)
    return [row for row in these if row not in rest or rest.remove(row)][:3]  # type: ignore[func-returns-value]

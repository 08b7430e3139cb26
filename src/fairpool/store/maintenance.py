"""What an operator does with a database: look whether it is sound, and copy it while it is in use."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import quote

from sqlalchemy import Connection, func, select

from fairpool.app.store_errors import StoreError, StoreForeign, StoreTooNew, StoreUnavailable, StoreUnusable
from fairpool.store import migrating, schema, sqlite

_MOST_PROBLEMS: Final = 20
_PAGES_AT_ONCE: Final = 4096
_COUNTED: Final = (schema.pools, schema.policies, schema.requests, schema.runs, schema.steps, schema.history)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """What a look at a database found.

    revision: its schema (None: empty, or it could not be told). known: this version's.
    problems: what is wrong, in sentences; empty for a sound database. counts: rows by table.
    unclean: whoever wrote it last was killed or is still at it; what it committed is there all the same.
    """

    path: Path
    exists: bool
    size_bytes: int = 0
    wal_bytes: int = 0
    unclean: bool = False
    revision: str | None = None
    known: str = migrating.HEAD
    problems: tuple[str, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    @property
    def needs_migration(self) -> bool:
        """Whether `migrate` would change it."""
        return self.exists and self.is_sound and self.revision != self.known


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupReport:
    """A copy that was made, and checked."""

    path: Path
    size_bytes: int
    revision: str | None


def check(url: str) -> CheckReport:
    """Read all of a database and say what is wrong with it. Changes nothing, and may run beside a server.

    Raises StoreUnavailable where it cannot be read, StoreUnusable for a URL that names no such database.
    """
    path = sqlite.path_of(url)
    try:
        state = sqlite.inspect_file(path)
    except StoreUnusable as error:
        return CheckReport(path=path, exists=True, size_bytes=path.stat().st_size, problems=(error.message,))
    if not state.exists:
        return CheckReport(path=path, exists=False, problems=(f"{path} does not exist",))
    with contextlib.closing(_Look(path)) as look:
        return CheckReport(
            path=path,
            exists=True,
            size_bytes=state.size_bytes,
            wal_bytes=state.wal_bytes,
            unclean=state.unclean,
            problems=tuple(look.problems()),
            revision=look.revision,
            counts=look.counts,
        )


class _Look:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._engine = sqlite.readers(path)
        self.revision: str | None = None
        self.counts: dict[str, int] = {}

    def problems(self) -> list[str]:
        """Everything that is wrong. Each look is a transaction of its own: one that fails hides no other."""
        try:
            with sqlite.translated(self._path), self._engine.begin() as connection:
                self.revision = migrating.revision_of(connection, str(self._path))
                current = migrating.is_current(self.revision, str(self._path))
        except (StoreForeign, StoreTooNew) as error:
            return [error.message]
        except StoreUnavailable:
            raise
        except StoreError as error:
            return [error.message]
        found: list[str] = []
        for look in (self._integrity, self._references, *([self._count] if current else [])):
            try:
                with sqlite.translated(self._path), self._engine.begin() as connection:
                    found += look(connection)
            except StoreUnusable as error:
                found.append(error.message)
        return found

    def _integrity(self, connection: Connection) -> list[str]:
        rows = connection.exec_driver_sql(f"PRAGMA integrity_check({_MOST_PROBLEMS})").scalars().all()
        return [str(row) for row in rows if row != "ok"]

    def _references(self, connection: Connection) -> list[str]:
        rows = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchmany(_MOST_PROBLEMS)
        return [f"a row of {row[0]} points to nothing in {row[2]}" for row in rows]

    def _count(self, connection: Connection) -> list[str]:
        for table in _COUNTED:
            self.counts[table.name] = connection.execute(select(func.count()).select_from(table)).scalar_one()
        return []

    def close(self) -> None:
        """Let go of the file."""
        self._engine.dispose()


def backup(url: str, to: Path, *, overwrite: bool = False) -> BackupReport:
    """Copy a database to the file `to` as it is at one moment, also while a server writes to it.

    The copy appears under its name only once it is whole and checked; only its owner can read it. Raises StoreUnusable
    where `to` exists (and may not be overwritten) or the source is damaged; StoreFull, StoreUnavailable.
    """
    source = sqlite.path_of(url)
    if not sqlite.inspect_file(source).exists:
        raise StoreUnusable(f"{source} does not exist: there is nothing to copy")
    to = to.absolute()
    if to.exists() and (not overwrite or to.samefile(source)):
        raise StoreUnusable(f"{to} exists: name another file, or remove this one")
    partial = to.with_name(f"{to.name}.{os.getpid()}.partial")
    sqlite.create_file(partial)
    try:
        with sqlite.translated(source):
            _copy(source, partial)
        report = check(f"sqlite:///{partial}")
        if not report.is_sound:
            raise sqlite.corrupt(source, "; ".join(report.problems))
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        partial.replace(to)
    finally:
        for left in (partial, *(partial.with_name(partial.name + end) for end in ("-wal", "-shm", "-journal"))):
            left.unlink(missing_ok=True)
    return BackupReport(path=to, size_bytes=to.stat().st_size, revision=report.revision)


def _copy(source: Path, target: Path) -> None:
    reading = sqlite3.connect(f"file:{quote(str(source))}?mode=ro", uri=True, timeout=sqlite.BUSY_TIMEOUT_S)
    with contextlib.closing(reading), contextlib.closing(sqlite3.connect(target)) as writing:
        # The pages are those of the moment at which the transaction began, however long copying them takes.
        reading.execute("BEGIN")
        reading.execute("SELECT count(*) FROM sqlite_master").fetchone()
        reading.backup(writing, pages=_PAGES_AT_ONCE)
        # One file, which needs no log beside it wherever it is put.
        writing.execute("PRAGMA journal_mode=DELETE")

"""A backup is one SQLite file, whatever it was made of, and goes back into an empty database of either kind.

So a move from one kind to the other is a backup and a restore.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, select

from fairpool.app.store_errors import StoreUnusable
from fairpool.core.ids import Instant
from fairpool.store import copying, migrating, opening, schema, sqlite_files
from fairpool.store.copying import Progress
from fairpool.store.databases import Database, settled
from fairpool.store.maintenance import check
from fairpool.store.sqlite import SqliteDatabase
from fairpool.store.urls import database_of

_COMPANIONS: Final = ("-wal", "-shm", "-journal", "-witness")


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupReport:
    """A copy that was made, and checked."""

    path: Path
    size_bytes: int
    revision: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreReport:
    """A file that was copied into a database.

    name: what messages call the database. counts: rows by table, equal on both sides. in_use: somebody was using the
    file, or had been killed while using it: what was restored is the moment at which the restore began.
    """

    name: str
    counts: dict[str, int]
    in_use: bool


def silent(table: str, copied: int, total: int) -> None:
    """Progress that nobody wants to see."""


def backup(url: str, to: Path, *, overwrite: bool = False, progress: Progress = silent) -> BackupReport:
    """Copy a database to the SQLite file `to` as it is at one moment, also while servers write to it.

    The copy appears under its name only once it is whole and checked; only its owner can read it. Raises StoreUnusable
    where `to` exists (and may not be overwritten) or the source is damaged, or of an earlier schema and no SQLite file;
    StoreFull, StoreUnavailable.
    """
    source = database_of(url)
    if not source.found().exists:
        raise StoreUnusable(f"{source.name} does not exist: there is nothing to copy")
    to = to.absolute()
    if to.exists() and (not overwrite or (isinstance(source, SqliteDatabase) and to.samefile(source.path))):
        raise StoreUnusable(f"{to} exists: name another file, or remove this one")
    with _partial(to) as partial:
        copy = SqliteDatabase(f"sqlite:///{partial}")
        if isinstance(source, SqliteDatabase):
            source.copy_pages(partial)
        else:
            _copy_rows(source, copy, progress, Instant(0))
            copy.leave_one_file()
        report = check(f"sqlite:///{partial}")
        if not report.is_sound:
            raise sqlite_files.corrupt(partial, "; ".join([*report.problems, *report.losses]))
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        partial.replace(to)
    return BackupReport(path=to, size_bytes=to.stat().st_size, revision=report.revision)


def restore(url: str, file: Path, now: Instant, *, progress: Progress = silent) -> RestoreReport:
    """Copy the backup `file`, or any SQLite file of Fairpool's, into the empty database that `url` names: all or
    nothing. The file is left as it is, and may be in use. now: to tell whether a server's lead is still on.

    Raises StoreUnusable where the database is not empty; what opening and checking either of them raises.
    """
    given = SqliteDatabase(f"sqlite:///{file.absolute()}")
    found = given.look_at_copy()
    if not found.exists:
        raise StoreUnusable(f"{file} does not exist")
    with tempfile.TemporaryDirectory(prefix="fairpool-restore-") as folder:
        # One moment of it, in a copy that may be brought to this version's schema.
        moment = Path(folder) / "moment.db"
        if backup(f"sqlite:///{given.path}", moment).revision is None:
            raise StoreUnusable(f"{file} holds nothing to restore: it is an empty file")
        opening.migrate(f"sqlite:///{moment}")
        target = database_of(url)
        counts = _copy_rows(SqliteDatabase(f"sqlite:///{moment}"), target, progress, now)
    return RestoreReport(name=target.name, counts=counts, in_use=found.unclean)


def _copy_rows(source: Database, target: Database, progress: Progress, now: Instant) -> dict[str, int]:
    readers = source.readers()
    writer, _ = opening.prepare(target)
    try:
        with source.translated(), readers.begin() as reading:
            if not migrating.is_current(migrating.revision_of(reading, source.name), source.name):
                raise StoreUnusable(f"{source.name} is of an earlier schema: fairpool db migrate brings it up to date")
            with target.translated(), writer.begin() as writing:
                # Nobody opens it meanwhile, and nobody who did before writes.
                target.begin_migration(writing)
                target.take_turn(writing, "", settled)
                _check_empty(writing, target.name, now)
                return copying.copy_all(reading, writing, target.table_writer, progress)
    finally:
        readers.dispose()
        writer.dispose()
        target.closed()


def _check_empty(connection: Connection, name: str, now: Instant) -> None:
    leaders = schema.leaders.c
    for holder, until in connection.execute(select(leaders.holder, leaders.until)):
        if until > now:
            raise StoreUnusable(f"the server {holder} uses {name}: stop it first, and restore into an empty database")
    counts = {table.name: copying.count(connection, table) for table in schema.metadata.sorted_tables}
    there = ", ".join(f"{number:,} {table}" for table, number in counts.items() if number)
    if there:
        raise StoreUnusable(
            f"{name} is not empty: it holds {there}; nothing was changed. A restore goes into an empty database: make "
            "a new one and name it with FAIRPOOL_DATABASE_URL, or empty this one yourself"
        )


@contextlib.contextmanager
def _partial(to: Path) -> Iterator[Path]:
    """A file beside `to` that its owner alone can read, and that is gone after the block unless it was renamed."""
    partial = to.with_name(f"{to.name}.{os.getpid()}.partial")
    sqlite_files.create_file(partial)
    try:
        yield partial
    finally:
        for left in (partial, *(partial.with_name(partial.name + end) for end in _COMPANIONS)):
            left.unlink(missing_ok=True)

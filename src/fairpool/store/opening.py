"""Opening a database: look first, so that nothing that is damaged, foreign or newer is ever written to."""

from __future__ import annotations

import contextlib
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sqlalchemy import Engine

from fairpool.app.records import DEFAULT_WORKSPACE
from fairpool.store import migrating, sqlite
from fairpool.store.sql import SqlStore

log = logging.getLogger(__name__)

QUICK_CHECK_BYTES: Final = 256 * 2**20
"""A file above this is not checked at opening, even after a crash: reading takes a second per 100 to 500 MB, and people
wait for it. `maintenance.check` reads files of any size when asked."""

ALWAYS_CHECKED_BYTES: Final = 16 * 2**20
"""A file below this is checked at every opening: it takes a few tens of milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migrated:
    """What a migration did: from which schema (None: there was no database) to which."""

    before: str | None
    after: str


def open_store(url: str, *, workspace: str = DEFAULT_WORKSPACE) -> SqlStore:
    """The store in the database that `url` names, made or brought up to date where needed.

    Raises StoreCorrupt, StoreForeign, StoreTooNew (and has then left the file as it was); StoreFull, StoreReadOnly,
    StoreUnavailable; StoreUnusable for a URL that names no such database.
    """
    path = sqlite.path_of(url)
    with contextlib.ExitStack() as on_failure:
        writer = _prepare(path)[0]
        on_failure.callback(writer.dispose)
        store = SqlStore(path, writer, sqlite.readers(path), workspace)
        on_failure.pop_all()
        return store


def migrate(url: str) -> Migrated:
    """Bring a database up to date, or make it. Raises as `open_store`."""
    writer, migrated = _prepare(sqlite.path_of(url))
    writer.dispose()
    return migrated


def _prepare(path: Path) -> tuple[Engine, Migrated]:
    state = sqlite.inspect_file(path)
    if state.exists:
        sqlite.check_writable(path)
    else:
        sqlite.create_file(path)
    # Reading only, so that what must not be touched is not: not even its journal mode.
    if state.size_bytes or state.unclean:
        _look(path, state)
    writer = sqlite.writer(path)
    try:
        with sqlite.translated(path), writer.begin() as connection:
            before = migrating.revision_of(connection, str(path))
            if not migrating.is_current(before, str(path)):
                migrating.upgrade(connection)
                connection.exec_driver_sql(f"PRAGMA application_id={sqlite.APPLICATION_ID}")
                log.info("database %s: schema %s, was %s", path, migrating.HEAD, before or "empty")
    except BaseException:
        writer.dispose()
        raise
    return writer, Migrated(before=before, after=migrating.HEAD)


def _look(path: Path, state: sqlite.FileState) -> None:
    readers = sqlite.readers(path)
    try:
        with sqlite.translated(path), readers.begin() as connection:
            migrating.is_current(migrating.revision_of(connection, str(path)), str(path))
            limit = QUICK_CHECK_BYTES if state.unclean else ALWAYS_CHECKED_BYTES
            if state.size_bytes + state.wal_bytes > limit:
                return
            problems = connection.exec_driver_sql("PRAGMA quick_check(3)").scalars().all()
            if problems != ["ok"]:
                raise sqlite.corrupt(path, "; ".join(map(str, problems)))
    finally:
        readers.dispose()

"""Opening a database: look first, so that nothing that is damaged, foreign or newer is ever written to."""

from __future__ import annotations

import contextlib
import logging
from dataclasses import dataclass

from sqlalchemy import Engine

from fairpool.app.records import DEFAULT_WORKSPACE
from fairpool.store import migrating
from fairpool.store.databases import Database
from fairpool.store.sql import SqlStore
from fairpool.store.urls import database_of

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Migrated:
    """What a migration did: from which schema (None: there was no database) to which."""

    before: str | None
    after: str


def open_store(url: str, *, workspace: str = DEFAULT_WORKSPACE) -> SqlStore:
    """The store in the database that `url` names, made or brought up to date where needed.

    Raises StoreCorrupt, StoreForeign, StoreTooNew (and has then left the database as it was); StoreFull, StoreReadOnly,
    StoreUnavailable; StoreUnusable for a URL that names no such database.
    """
    database = database_of(url)
    with contextlib.ExitStack() as on_failure:
        writer = prepare(database)[0]
        on_failure.callback(writer.dispose)
        store = SqlStore(database, writer, database.readers(), workspace)
        on_failure.pop_all()
        return store


def migrate(url: str) -> Migrated:
    """Bring a database up to date, or make it. Raises as `open_store`."""
    database = database_of(url)
    writer, migrated = prepare(database)
    writer.dispose()
    database.closed()
    return migrated


def prepare(database: Database) -> tuple[Engine, Migrated]:
    """The writer of a database that was made or brought up to date where needed. Raises as `open_store`."""
    database.look()
    writer = database.writer()
    try:
        with database.translated(), writer.begin() as connection:
            database.begin_migration(connection)
            before = migrating.revision_of(connection, database.name)
            if not migrating.is_current(before, database.name):
                migrating.upgrade(connection)
                database.end_migration(connection)
                log.info("database %s: schema %s, was %s", database.name, migrating.HEAD, before or "empty")
    except BaseException:
        writer.dispose()
        raise
    return writer, Migrated(before=before, after=migrating.HEAD)

"""Which database a URL names."""

from __future__ import annotations

from typing import Final

from fairpool.app.store_errors import StoreUnusable
from fairpool.store.databases import Database
from fairpool.store.sqlite import SqliteDatabase

POSSIBLE: Final = "possible: sqlite:////absolute/path/fairpool.db, postgresql://user@host:5432/database"
_POSTGRES_SCHEMES: Final = ("postgresql", "postgres", "postgresql+psycopg")


def database_of(url: str) -> Database:
    """The database that a URL names. Raises StoreUnusable for one that names none, or whose driver is not there."""
    scheme = url.partition(":")[0]
    if scheme == "sqlite":
        return SqliteDatabase(url)
    if scheme not in _POSTGRES_SCHEMES:
        raise StoreUnusable(f"this URL names no database that Fairpool can keep its memory in; {POSSIBLE}")
    try:
        from fairpool.store.postgres import PostgresDatabase
    except ImportError as error:
        raise StoreUnusable(
            f"PostgreSQL needs a driver that is not installed ({error}): pip install 'fairpool[postgres]'"
        ) from None
    return PostgresDatabase(url)

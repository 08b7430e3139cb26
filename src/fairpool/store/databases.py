"""What a kind of database must offer, for the store to be in it.

The rest of the store speaks SQL that all of them understand, and knows none of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from sqlalchemy import Connection, Engine


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What there is where a URL points to, before any look into it.

    exists: whether there is a database at all, be it an empty one. wal_bytes: of a log beside a file that was not yet
    moved into it; whoever wrote it was killed, or is still at it.
    """

    exists: bool
    size_bytes: int = 0
    wal_bytes: int = 0

    @property
    def unclean(self) -> bool:
        """Whether the last writer of a file did not close it."""
        return self.wal_bytes > 0


class Database(Protocol):
    """One database, and everything about it that is its kind's own."""

    @property
    def name(self) -> str:
        """What messages call it. Holds no password."""

    def found(self) -> Found:
        """What there is. Changes nothing. Raises StoreCorrupt, StoreForeign, StoreUnavailable."""

    def look(self) -> None:
        """Make sure that it may be written to, and change nothing of what is there; a new file may be made.

        Raises StoreCorrupt, StoreForeign, StoreTooNew, StoreReadOnly, StoreFull, StoreUnavailable, StoreUnusable.
        """

    def writer(self) -> Engine:
        """Connections of the one who writes. A transaction sees what was committed before each of its statements."""

    def readers(self) -> Engine:
        """Connections of those who read. A transaction sees one moment, and stands in nobody's way."""

    def translated(self) -> AbstractContextManager[None]:
        """Within the block, the driver's errors are the store's."""

    def begin_migration(self, connection: Connection) -> None:
        """Wait until nobody else migrates, and keep others from it until the transaction ends."""

    def end_migration(self, connection: Connection) -> None:
        """After the steps, in their transaction."""

    def begin_commit(self, connection: Connection) -> None:
        """Wait until nobody else commits, in whatever workspace, and keep others from it until the transaction ends."""

    def problems(self, connection: Connection) -> Sequence[str]:
        """What is wrong with what the database should see to by itself, in sentences."""

    def dangling(self, connection: Connection) -> Sequence[str]:
        """Which rows point to nothing, in sentences."""

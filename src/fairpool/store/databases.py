"""What a kind of database must offer, for the store to be in it.

The rest of the store speaks SQL that all of them understand, and knows none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from sqlalchemy import Connection, Engine, Table

Rows: TypeAlias = Sequence[Mapping[str, Any]]
"""Rows of one table by column; all of a call have the same columns."""

Touched: TypeAlias = Callable[[], int]
"""How many rows a statement touched; to be asked after a call of the `Settle` of the block in which it was run."""

Settle: TypeAlias = Callable[[], None]
"""Waits until what was written so far is done, and raises what is wrong with it."""


def settled() -> None:
    """What to settle with outside of any block of `Database.together`, where each statement is done when it returns."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A turn to write: the token of the workspace's leader (0: there was none yet), and where the numbering stands."""

    token: int
    requests: int
    history: int
    runs: int
    steps: int


class TableWriter(Protocol):
    """Writes rows of one table, many at a time."""

    def insert(self, connection: Connection, rows: Rows) -> None:
        """Add rows."""

    def add_missing(self, connection: Connection, rows: Rows) -> None:
        """Add those rows whose key is not there."""

    def put(self, connection: Connection, rows: Rows, *, by: tuple[str, ...], keep: tuple[str, ...] = ()) -> None:
        """Add rows, or change those with the same values of `by`; an old row keeps its values of `keep`."""

    def change(self, connection: Connection, rows: Rows, *, by: tuple[str, ...]) -> Touched:
        """Change rows that are there, each found by its values of `by`."""

    def drop(self, connection: Connection, rows: Rows) -> Touched:
        """Remove the rows that have these values."""


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

    def acknowledge(self, history_seq: int) -> None:
        """A commit has returned, after which the history ends there: this may be noted outside of the database."""

    def closed(self) -> None:
        """Who used its writers has disposed of them all."""

    def losses(self, connection: Connection) -> Sequence[str]:
        """What it once held and holds no more, as far as is noted outside of it, in sentences."""

    def accept(self) -> None:
        """It is what it should be, as it is now, whatever was noted. Raises StoreUnavailable, StoreCorrupt."""

    def begin_takeover(self, connection: Connection) -> None:
        """Wait for nobody for longer than a moment until the transaction ends: who holds the leader's row may be a
        process that is paused."""

    def end_stalled(self) -> int:
        """End the sessions of those who have stopped in the middle of writing and hold what others wait for, where the
        database does not see to that by itself; how many there were."""

    def begin_migration(self, connection: Connection) -> None:
        """Wait until nobody else migrates, and keep others from it until the transaction ends."""

    def end_migration(self, connection: Connection) -> None:
        """After the steps, in their transaction."""

    def take_turn(self, connection: Connection, leader: str, settle: Settle) -> Turn:
        """Wait until nobody else commits, in whatever workspace, and keep others from it, and from becoming that
        leader, until the transaction ends."""

    def together(self, connection: Connection) -> AbstractContextManager[Settle]:
        """Within the block, which a transaction does not outlive, what is written may be sent as one."""

    def table_writer(self, table: Table) -> TableWriter:
        """What writes rows of that table."""

    def problems(self, connection: Connection) -> Sequence[str]:
        """What is wrong with what the database should see to by itself, in sentences."""

    def dangling(self, connection: Connection) -> Sequence[str]:
        """Which rows point to nothing, in sentences."""

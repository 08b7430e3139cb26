"""Everything that is SQLite's own: the database in a file, its connections, and how its errors read."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import quote

from sqlalchemy import (
    Connection,
    Engine,
    PrimaryKeyConstraint,
    Table,
    UniqueConstraint,
    bindparam,
    create_engine,
    event,
    func,
    select,
)
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from fairpool.app.store_errors import ConstraintViolated, StoreError, StoreFull, StoreReadOnly, StoreUnavailable
from fairpool.store import migrating, schema, sqlite_files
from fairpool.store.constraints import violated
from fairpool.store.databases import Found, Settle, Turn, settled
from fairpool.store.sqlite_files import corrupt
from fairpool.store.statements import Statement, Statements, driver
from fairpool.store.witness import Witness

BUSY_TIMEOUT_S: Final = 10.0
_READERS: Final = 16
_WRITER_CACHE_KIB: Final = 64 * 1024
_WAL_KEPT_BYTES: Final = 64 * 2**20  # a log that one long reader made grow is cut back to this
_MOST_PROBLEMS: Final = 20
_PAGES_AT_ONCE: Final = 4096

QUICK_CHECK_BYTES: Final = 256 * 2**20
"""A file above this is not checked at opening, even after a crash: reading takes a second per 100 to 500 MB, and people
wait for it. `maintenance.check` reads files of any size when asked."""

ALWAYS_CHECKED_BYTES: Final = 16 * 2**20
"""A file below this is checked at every opening: it takes a few tens of milliseconds."""

_DIALECT: Final = SQLiteDialect_pysqlite(paramstyle="qmark")
_NUMBERED: Final = (schema.requests, schema.history, schema.runs, schema.steps)
_TURN: Final = Statement(
    select(
        select(schema.leaders.c.token).where(schema.leaders.c.name == bindparam("leader")).scalar_subquery(),
        *(select(func.max(table.c.seq)).scalar_subquery() for table in _NUMBERED),
    ),
    _DIALECT,
)


class SqliteDatabase:
    """See `databases.Database`: one file. Raises StoreUnusable for a URL that names none."""

    def __init__(self, url: str) -> None:
        self.path = sqlite_files.path_of(url)
        self._witness = Witness(self.path)

    @property
    def name(self) -> str:
        """See `databases.Database`."""
        return str(self.path)

    def writer(self) -> Engine:
        """See `databases.Database`."""
        self._witness.begin()
        return writer(self.path)

    def readers(self) -> Engine:
        """See `databases.Database`."""
        return readers(self.path)

    def translated(self) -> AbstractContextManager[None]:
        """See `databases.Database`."""
        return translated(self.path)

    def acknowledge(self, history_seq: int) -> None:
        """See `databases.Database`."""
        self._witness.acknowledge(history_seq)

    def closed(self) -> None:
        """See `databases.Database`."""
        self._witness.end()

    def losses(self, connection: Connection) -> Sequence[str]:
        """See `databases.Database`."""
        note = self._witness.read()
        if note is None:
            return []
        if self._witness.differs():
            return ["it is not what it was when it was closed: a byte has flipped, or another program wrote to it"]
        there = connection.exec_driver_sql("SELECT 1 FROM sqlite_master WHERE name = 'history'").scalar()
        last = (connection.execute(select(func.max(schema.history.c.seq))).scalar() if there else None) or 0
        if last >= note.history:
            return []
        told = f"its history ends at entry {last:,}, and entry {note.history:,} had been acknowledged"
        return [f"{told}: the end of its log was cut off or damaged, or the log was taken away"]

    def accept(self) -> None:
        """See `databases.Database`."""
        looking = self.readers()
        try:
            with self.translated(), looking.begin() as connection:
                last = connection.execute(select(func.max(schema.history.c.seq))).scalar() or 0
        finally:
            looking.dispose()
        self._witness.accept(last)

    def begin_takeover(self, connection: Connection) -> None:
        """See `databases.Database`."""

    def end_stalled(self) -> int:
        """See `databases.Database`. A file's lock is its holder's for as long as that lives."""
        return 0

    def begin_migration(self, connection: Connection) -> None:
        """See `databases.Database`. The transaction began by taking the one write lock that there is."""

    def end_migration(self, connection: Connection) -> None:
        """See `databases.Database`."""
        connection.exec_driver_sql(f"PRAGMA application_id={sqlite_files.APPLICATION_ID}")

    def take_turn(self, connection: Connection, leader: str, settle: Settle) -> Turn:
        """See `databases.Database`. The transaction began by taking the one write lock that there is."""
        row = driver(connection).execute(_TURN.text, _TURN.parameters({"leader": leader})).fetchone()
        token, requests, history, runs, steps = (value or 0 for value in row)
        return Turn(token=token, requests=requests, history=history, runs=runs, steps=steps)

    def together(self, connection: Connection) -> AbstractContextManager[Settle]:
        """See `databases.Database`. There is no way to go, and each statement is done when it returns."""
        return contextlib.nullcontext(settled)

    def table_writer(self, table: Table) -> Statements:
        """See `databases.Database`."""
        return Statements(table, _DIALECT)

    def found(self) -> Found:
        """See `databases.Database`."""
        return sqlite_files.inspect_file(self.path)

    def look(self) -> None:
        """See `databases.Database`."""
        state = sqlite_files.inspect_file(self.path)
        if state.exists:
            sqlite_files.check_writable(self.path)
        else:
            sqlite_files.create_file(self.path)
        # Reading only, so that what must not be touched is not: not even its journal mode.
        if state.size_bytes or state.unclean:
            self._look_inside(state, self.losses)

    def look_at_copy(self) -> Found:
        """What there is of a file that is only read. Raises StoreCorrupt, StoreForeign, StoreTooNew, which name it."""
        state = sqlite_files.inspect_file(self.path)
        if state.size_bytes:
            self._look_inside(state)
        return state

    def _look_inside(self, state: Found, losses: Callable[[Connection], Sequence[str]] = lambda _: ()) -> None:
        looking = self.readers()
        try:
            with self.translated(), looking.begin() as connection:
                migrating.is_current(migrating.revision_of(connection, self.name), self.name)
                for loss in losses(connection):
                    raise sqlite_files.lossy(self.path, loss)
                limit = QUICK_CHECK_BYTES if state.unclean else ALWAYS_CHECKED_BYTES
                if state.size_bytes + state.wal_bytes > limit:
                    return
                problems = connection.exec_driver_sql("PRAGMA quick_check(3)").scalars().all()
                if problems != ["ok"]:
                    raise corrupt(self.path, "; ".join(map(str, problems)))
        finally:
            looking.dispose()

    def copy_pages(self, target: Path) -> None:
        """Copy the database into an empty file, page by page, as it is at one moment."""
        with self.translated():
            reading = sqlite3.connect(f"file:{quote(self.name)}?mode=ro", uri=True, timeout=BUSY_TIMEOUT_S)
            with contextlib.closing(reading), contextlib.closing(sqlite3.connect(target)) as writing:
                # The pages are those of the moment at which the transaction began, however long copying them takes.
                reading.execute("BEGIN")
                reading.execute("SELECT count(*) FROM sqlite_master").fetchone()
                reading.backup(writing, pages=_PAGES_AT_ONCE)
        SqliteDatabase(f"sqlite:///{target}").leave_one_file()

    def leave_one_file(self) -> None:
        """Move its log into it, so that the file alone is the database, wherever it is put; no note goes along."""
        with self.translated(), contextlib.closing(sqlite3.connect(self.path)) as connection:
            connection.execute("PRAGMA journal_mode=DELETE")
        self._witness.forget()

    def problems(self, connection: Connection) -> Sequence[str]:
        """See `databases.Database`."""
        found = connection.exec_driver_sql(f"PRAGMA integrity_check({_MOST_PROBLEMS})").scalars().all()
        return [str(problem) for problem in found if problem != "ok"]

    def dangling(self, connection: Connection) -> Sequence[str]:
        """See `databases.Database`."""
        rows = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchmany(_MOST_PROBLEMS)
        return [f"a row of {row[0]} points to nothing in {row[2]}" for row in rows]


# ---- connections ----------------------------------------------------------------------------------------------------


def writer(path: Path) -> Engine:
    """The engine of the one who writes: one connection, which takes the write lock when its transaction begins."""
    engine = _engine(path, pool_size=1)

    @event.listens_for(engine, "connect")
    def _set_up(connection: sqlite3.Connection, record: object) -> None:
        _pragmas(
            connection,
            # FULL: a commit that returned survives a power cut, not only a killed process.
            [
                "journal_mode=WAL",
                "synchronous=FULL",
                "foreign_keys=ON",
                f"cache_size=-{_WRITER_CACHE_KIB}",
                f"journal_size_limit={_WAL_KEPT_BYTES}",
            ],
        )

    @event.listens_for(engine, "begin")
    def _begin(connection: Any) -> None:
        driver(connection).execute("BEGIN IMMEDIATE")

    return engine


def readers(path: Path) -> Engine:
    """The engine of those who read: a few connections that see one moment per transaction.

    They open the file for reading only, so that they change nothing, not even by moving the log into it at the end.
    """
    engine = _engine(path, pool_size=_READERS, query={"mode": "ro"})

    @event.listens_for(engine, "connect")
    def _set_up(connection: sqlite3.Connection, record: object) -> None:
        _pragmas(connection, ["cache_size=-8192"])

    @event.listens_for(engine, "begin")
    def _begin(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN")

    return engine


def _engine(path: Path, *, pool_size: int, query: Mapping[str, str] = MappingProxyType({})) -> Engine:
    return create_engine(
        # As a URI, in which the file's name is quoted and the options have a place.
        URL.create("sqlite", database=f"file:{quote(str(path))}", query={"uri": "true", **query}),
        # Transactions begin where we say so, not where the driver thinks that one is needed.
        connect_args={"isolation_level": None, "timeout": BUSY_TIMEOUT_S, "check_same_thread": False},
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=BUSY_TIMEOUT_S,
    )


def _pragmas(connection: sqlite3.Connection, settings: list[str]) -> None:
    cursor = connection.cursor()
    for setting in settings:
        cursor.execute(f"PRAGMA {setting}")
        cursor.fetchall()
    cursor.close()


# ---- errors ---------------------------------------------------------------------------------------------------------

_FULL = frozenset({"SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_SHMSIZE"})
# The last: a statement that was sound with the tables as Fairpool makes them.
_CORRUPT = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_ERROR")
_NOT_TEXT = "Could not decode to UTF-8"  # the driver's, without a code
_BUSY = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL")
_READ_ONLY = ("SQLITE_READONLY",)


@contextlib.contextmanager
def translated(path: Path) -> Iterator[None]:
    """Within the block, SQLite's errors are the store's."""
    try:
        yield
    except DBAPIError as error:
        raise error_of(path, error.orig or error, error.statement or "") from error
    except sqlite3.Error as error:
        raise error_of(path, error) from error
    except SQLAlchemyError as error:  # e.g. no connection became free
        raise StoreUnavailable(f"{path} cannot be reached: {error}") from error


def error_of(path: Path, error: BaseException, statement: str = "") -> StoreError:
    """What an error of the driver is to a caller. Bugs in statements stay what they are: they are raised again."""
    name = getattr(error, "sqlite_errorname", "") or ""
    if name.startswith("SQLITE_CONSTRAINT"):
        return _violation(str(error), statement)
    if name in _FULL:
        return StoreFull(f"{path} cannot grow ({error}): nothing was changed; make room on its disk or raise its quota")
    if name.startswith(_CORRUPT) or _NOT_TEXT in str(error):
        return corrupt(path, str(error))
    if name.startswith(_READ_ONLY):
        return StoreReadOnly(f"{path} cannot be written ({error}): mend its owner or mode")
    if name.startswith(_BUSY):
        return StoreUnavailable(f"{path} is locked by another process ({error}); try again")
    return StoreUnavailable(f"{path}: {error}")


def _unique_names() -> dict[str, str]:
    """SQLite names the columns of a violated unique constraint, not the constraint."""
    names = {}
    for table in schema.metadata.tables.values():
        keys = [rule for rule in table.constraints if isinstance(rule, PrimaryKeyConstraint | UniqueConstraint)]
        unique = [*keys, *(index for index in table.indexes if index.unique)]
        for rule in unique:
            names[", ".join(f"{table.name}.{column.name}" for column in rule.columns)] = str(rule.name)
    return names


_UNIQUE: Final = MappingProxyType(_unique_names())
# SQLite does not say which foreign key failed; the statement tells.
_FOREIGN: Final = MappingProxyType(
    {
        "policies": "fk_policies_pool",
        "policy_pools": "fk_policy_pools_pool",
        "pools": "fk_policies_pool",
        "steps": "fk_steps_run",
        "held_devices": "fk_held_devices_request",
    }
)
_TABLE = re.compile(r"(?:INSERT INTO|DELETE FROM|UPDATE)\s+(\w+)")


def _violation(message: str, statement: str) -> ConstraintViolated:
    kind, _, what = message.partition(" constraint failed")
    what = what.removeprefix(": ")
    if kind == "UNIQUE":
        return violated(_UNIQUE.get(what, what), message)
    if kind == "CHECK":
        return violated(what, message)
    if kind == "FOREIGN KEY":
        table = _TABLE.search(statement)
        return violated(_FOREIGN.get(table[1], "fk") if table else "fk", message)
    return violated(message, message)  # a trigger: its message is its name

"""Everything that is SQLite's own: connections, how its errors read, and what a look at the bare file tells."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import quote

from sqlalchemy import Engine, PrimaryKeyConstraint, UniqueConstraint, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from fairpool.app.store_errors import (
    ConstraintViolated,
    StoreCorrupt,
    StoreError,
    StoreForeign,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    StoreUnusable,
)
from fairpool.store import schema
from fairpool.store.constraints import violated

APPLICATION_ID: Final = 0x46504F4C  # "FPOL" in the file's header: `file` and we can tell it from other databases
BUSY_TIMEOUT_S: Final = 10.0
_MAGIC: Final = b"SQLite format 3\0"
_READERS: Final = 16
_WRITER_CACHE_KIB: Final = 64 * 1024
_WAL_KEPT_BYTES: Final = 64 * 2**20  # a log that one long reader made grow is cut back to this


# ---- the file -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class FileState:
    """What the bare file tells before SQLite opens it.

    unclean: its log holds what was not moved into the file: whoever wrote it was killed, or is still at it.
    """

    exists: bool
    size_bytes: int = 0
    wal_bytes: int = 0

    @property
    def unclean(self) -> bool:
        """Whether the last writer did not close it."""
        return self.wal_bytes > 0


_SCHEME: Final = "sqlite:///"
_POSSIBLE: Final = "possible: sqlite:////absolute/path/fairpool.db"


def path_of(url: str) -> Path:
    """The file that a database URL names; what follows the scheme is its path, letter by letter.

    Raises StoreUnusable for what is no SQLite file.
    """
    if not url.startswith("sqlite:"):
        raise StoreUnusable(f"this version keeps its memory in a SQLite file, and this URL names none; {_POSSIBLE}")
    path = url.removeprefix(_SCHEME)
    if path in (url, "", ":memory:"):
        raise StoreUnusable(f"a database in memory would forget everything; {_POSSIBLE}")
    return Path(path).absolute()


def inspect_file(path: Path) -> FileState:
    """Look at the file without opening it as a database. Raises StoreCorrupt, StoreForeign, StoreUnavailable."""
    try:
        with path.open("rb") as file:
            header = file.read(100)
            size = os.fstat(file.fileno()).st_size
        wal = path.with_name(path.name + "-wal")
        wal_bytes = wal.stat().st_size if wal.exists() else 0
    except FileNotFoundError:
        return FileState(exists=False)
    except OSError as error:
        raise StoreUnavailable(f"{path} cannot be read: {error.strerror or error}") from None
    if size and not header.startswith(_MAGIC):
        raise _corrupt(path, "it does not begin as a database does")
    if size and len(header) < 100:
        raise _corrupt(path, f"it ends after {size} bytes")
    application = int.from_bytes(header[68:72], "big")
    if size and application not in (0, APPLICATION_ID):
        raise StoreForeign(f"{path} is another program's database; it is left as it is: name another file")
    if size and not wal_bytes:
        _check_size(path, header, size)
    return FileState(exists=True, size_bytes=size, wal_bytes=wal_bytes)


def _check_size(path: Path, header: bytes, size: int) -> None:
    """Whether the file is as long as its header says: one that was cut off can look whole for a long time."""
    page = int.from_bytes(header[16:18], "big")
    page = 65_536 if page == 1 else page
    pages = int.from_bytes(header[28:32], "big")
    if header[24:28] == header[92:96] and size < pages * page:  # only then is the header's count up to date
        raise _corrupt(path, f"it has {size} bytes of {pages * page}")


def create_file(path: Path) -> None:
    """An empty file that only its owner can read, where there is none. SQLite gives its companions the same mode."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        error_type = StoreFull if _is_full(error) else StoreUnavailable
        raise error_type(f"{path} cannot be created: {error.strerror or error}") from None


def check_writable(path: Path) -> None:
    """Raises StoreReadOnly when the file or its folder cannot be written: SQLite needs both."""
    for place in (path, path.parent):
        if not os.access(place, os.W_OK):
            raise StoreReadOnly(f"{place} cannot be written: mend its owner or mode")


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
        connection.exec_driver_sql("BEGIN IMMEDIATE")

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
_CORRUPT = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
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
    if name.startswith(_CORRUPT):
        return _corrupt(path, str(error))
    if name.startswith(_READ_ONLY):
        return StoreReadOnly(f"{path} cannot be written ({error}): mend its owner or mode")
    if name.startswith(_BUSY):
        return StoreUnavailable(f"{path} is locked by another process ({error}); try again")
    return StoreUnavailable(f"{path}: {error}")


def _corrupt(path: Path, why: str) -> StoreCorrupt:
    return StoreCorrupt(
        f"{path} is damaged ({why}); it is left as it is: put a backup in its place (fairpool db backup makes them), "
        "or move it away to begin with an empty one"
    )


def corrupt(path: Path, why: str) -> StoreCorrupt:
    """That the file is damaged, and what to do."""
    return _corrupt(path, why)


def _is_full(error: OSError) -> bool:
    return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


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

"""What a look at a bare SQLite file tells, before SQLite opens it; and making one."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final

from fairpool.app.store_errors import (
    StoreCorrupt,
    StoreForeign,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    StoreUnusable,
)
from fairpool.store.databases import Found

APPLICATION_ID: Final = 0x46504F4C  # "FPOL" in the file's header: `file` and we can tell it from other databases
_MAGIC: Final = b"SQLite format 3\0"


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


def inspect_file(path: Path) -> Found:
    """Look at the file without opening it as a database. Raises StoreCorrupt, StoreForeign, StoreUnavailable."""
    try:
        with path.open("rb") as file:
            header = file.read(100)
            size = os.fstat(file.fileno()).st_size
        wal = path.with_name(path.name + "-wal")
        wal_bytes = wal.stat().st_size if wal.exists() else 0
    except FileNotFoundError:
        return Found(exists=False)
    except OSError as error:
        raise StoreUnavailable(f"{path} cannot be read: {error.strerror or error}") from None
    if size and not header.startswith(_MAGIC):
        raise corrupt(path, "it does not begin as a database does")
    if size and len(header) < 100:
        raise corrupt(path, f"it ends after {size} bytes")
    application = int.from_bytes(header[68:72], "big")
    if size and application not in (0, APPLICATION_ID):
        raise StoreForeign(f"{path} is another program's database; it is left as it is: name another file")
    if size and not wal_bytes:
        _check_size(path, header, size)
    return Found(exists=True, size_bytes=size, wal_bytes=wal_bytes)


def _check_size(path: Path, header: bytes, size: int) -> None:
    """Whether the file is as long as its header says: one that was cut off can look whole for a long time."""
    page = int.from_bytes(header[16:18], "big")
    page = 65_536 if page == 1 else page
    pages = int.from_bytes(header[28:32], "big")
    if header[24:28] == header[92:96] and size < pages * page:  # only then is the header's count up to date
        raise corrupt(path, f"it has {size} bytes of {pages * page}")


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


def corrupt(path: Path, why: str) -> StoreCorrupt:
    """That the file is damaged, and what to do."""
    return StoreCorrupt(
        f"{path} is damaged ({why}); it is left as it is: put a backup in its place, or move it away and run "
        "'fairpool db restore' with a backup; without one, it begins empty"
    )


def lossy(path: Path, what: str) -> StoreCorrupt:
    """That the file is not what it was when somebody was told of it, and what to do."""
    return StoreCorrupt(
        f"{path} has lost something ({what}); it is left as it is: restore a backup ('fairpool db restore'), or go on "
        "with what is there ('fairpool db accept', once 'fairpool db check' finds nothing else)"
    )


def _is_full(error: OSError) -> bool:
    return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

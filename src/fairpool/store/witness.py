"""What a SQLite file must hold, kept in a small file beside it, so that a loss is said which SQLite does not see.

SQLite goes on without a word where the end of its log was cut or damaged, or where the log was taken away: what is not
whole was never committed, it must believe. And it has no checksums of its pages. So whoever writes notes beside the
file how far the history had come when a commit returned and, when the file is closed in order, a digest of it.

The note is not synced: it costs no commit a wait. It survives a killed process; after a power cut it may be older than
the file, and then says less, but never what is not so. It is about one file, by its inode: a backup that is put in the
file's place is not what the note is about.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

log = logging.getLogger(__name__)

MOST_BYTES: Final = 256 * 2**20
"""Of a larger file no digest is made: people wait for the stop and the start."""

_LENGTH: Final = 160  # always as long, so that a full disk has room for what takes its place
_CHUNK: Final = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What is known of a file. inode: which one. history: the seq of the last entry that was acknowledged. digest: of
    the file as it was closed; "" while it is in use, or where it was not closed in order."""

    inode: int
    history: int = 0
    digest: str = ""


class Witness:
    """The note beside one SQLite file. Where it cannot be written, that is logged, and nothing else fails."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._path = database.with_name(database.name + "-witness")
        self._noted = 0
        self._inode = 0

    def read(self) -> Note | None:
        """The note, where there is one about this very file."""
        try:
            note = Note(**json.loads(self._path.read_text("ascii")))
            return note if note.inode == self._database.stat().st_ino else None
        except (OSError, ValueError, TypeError):
            return None

    def begin(self) -> None:
        """The file is about to be written to: its digest will not be true for long."""
        with suppress(OSError):
            self._inode = self._database.stat().st_ino
        old = self.read()
        self._noted = old.history if old is not None else 0
        with self._locked() as file:
            self._write(file, Note(inode=self._inode, history=self._noted))

    def acknowledge(self, history: int) -> None:
        """A commit has returned, after which the history ends there."""
        self._noted = history
        try:
            file = os.open(self._path, os.O_WRONLY | os.O_CLOEXEC)
        except OSError as error:
            log.debug("%s cannot be written: %s", self._path, error)
            return
        try:
            self._write(file, Note(inode=self._inode, history=history))
        finally:
            os.close(file)

    def end(self) -> None:
        """Who used the file has closed it. Where nobody else has it open, and it was closed in order, it is as it is
        until somebody opens it again."""
        with self._locked() as file:
            note = self.read()
            if note is not None and not self._is_in_use():
                self._write(file, replace(note, digest=self.digest()))

    def forget(self) -> None:
        """Nothing is known of the file."""
        self._path.unlink(missing_ok=True)

    def accept(self, history: int) -> None:
        """The file is what it should be, as it is now."""
        self._inode = self._database.stat().st_ino
        with self._locked() as file:
            digest = "" if self._is_in_use() else self.digest()
            self._write(file, Note(inode=self._inode, history=history, digest=digest))

    def differs(self) -> bool:
        """Whether the file has changed since it was closed in order."""
        note = self.read()
        if note is None or not note.digest or self._is_in_use():
            return False
        digest = self.digest()
        return bool(digest) and digest != note.digest

    def digest(self) -> str:
        """Of the file as it is; "" for one that is too large, or cannot be read."""
        found = hashlib.blake2b(digest_size=16)
        try:
            if self._database.stat().st_size > MOST_BYTES:
                return ""
            with self._database.open("rb") as file:
                while chunk := file.read(_CHUNK):
                    found.update(chunk)
        except OSError:
            return ""
        return found.hexdigest()

    def _is_in_use(self) -> bool:
        """Whether somebody writes to it, or was killed: the last one to close it removes its log. (Who only reads may
        leave an empty one.)"""
        for log_file in (self._database.with_name(self._database.name + end) for end in ("-wal", "-journal")):
            with suppress(OSError):
                if log_file.stat().st_size:
                    return True
        return False

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """The note's file, which nobody else changes meanwhile; -1 where there can be none."""
        try:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            log.warning("%s cannot be written (%s): a loss of acknowledged work might go unnoticed", self._path, error)
            yield -1
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file
        finally:
            os.close(file)

    def _write(self, file: int, note: Note) -> None:
        if file < 0:
            return
        said = {"inode": note.inode, "history": note.history, "digest": note.digest}  # written at each commit
        with suppress(OSError):
            os.pwrite(file, json.dumps(said).ljust(_LENGTH - 1).encode("ascii") + b"\n", 0)

"""How the processes of one person find the local server: the files in its data folder, and the lock that says it lives.

``server.lock`` is held (flock) by the server for as long as it lives, so that even after SIGKILL nobody takes a
``server.json`` that was left behind for a server. ``server.json`` says where it listens; ``token`` is what it wants to
see. Both are readable by their owner only. Standard library only: the command line reads this on every start.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

DIRECTORY_ENV: Final = "FAIRPOOL_DATA_DIR"
LOCK_FILE: Final = "server.lock"
SERVER_FILE: Final = "server.json"
TOKEN_FILE: Final = "token"  # noqa: S105 (the file's name, not a token)
LOG_FILE: Final = "server.log"
DATABASE_FILE: Final = "fairpool.db"
READY_LINE: Final = b"ready\n"
"""What the server writes to the file descriptor of ``--ready-fd`` once it can be used; anything else is its refusal."""

TOKEN_WORD: Final = "token"  # noqa: S105 (the word, not a token)
"""How a line before that one begins which tells the first admin's token, to a starter that says ``--hears-token``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFile:
    """What ``server.json`` says. started_at: ISO 8601, UTC."""

    url: str
    pid: int
    version: str
    started_at: str


def data_dir() -> Path:
    """The folder of the local server: ``FAIRPOOL_DATA_DIR``, or the user's data folder."""
    chosen = os.environ.get(DIRECTORY_ENV)
    if chosen:
        return Path(chosen).expanduser().absolute()
    from platformdirs import user_data_path

    return user_data_path("fairpool", appauthor=False)


def is_alive(directory: Path) -> bool:
    """Whether a server holds the lock of that folder."""
    try:
        descriptor = os.open(directory / LOCK_FILE, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        # Shared, so that two who look at once do not take each other for a server.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def find(directory: Path) -> ServerFile | None:
    """Where the folder's server listens, or None where none lives."""
    found = read(directory)
    # The lock alone could be that of a server which starts and has not yet removed what a killed one left behind.
    return found if found is not None and is_alive(directory) and _exists(found.pid) else None


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def read(directory: Path) -> ServerFile | None:
    """What ``server.json`` says, whether or not that server still lives; None where it is missing or unreadable."""
    try:
        fields = json.loads((directory / SERVER_FILE).read_text("utf-8"))
        return ServerFile(
            url=str(fields["url"]),
            pid=int(fields["pid"]),
            version=str(fields["version"]),
            started_at=str(fields["started_at"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write(directory: Path, server: ServerFile) -> None:
    """Write ``server.json``, whole or not at all, for its owner's eyes only."""
    write_private(directory / SERVER_FILE, json.dumps(asdict(server), indent=1) + "\n")


def read_token(directory: Path) -> str | None:
    """The token of the folder's server, or None where there is none yet."""
    try:
        return (directory / TOKEN_FILE).read_text("utf-8").strip() or None
    except (OSError, ValueError):  # or it is no text
        return None


def write_private(path: Path, text: str) -> None:
    """Write a file with mode 0600 so that a reader sees the old text or the new one, never a part."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


@contextmanager
def exclusive(path: Path) -> Iterator[bool]:
    """Hold the lock of `path` inside the block, without waiting; False where somebody else holds it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


class NotStarted(RuntimeError):
    """The local server could not be started; the message says why and what to do."""


def start(
    directory: Path, *arguments: str, timeout_s: float = 60, hear_token: Callable[[str], None] | None = None
) -> ServerFile:
    """Start the folder's server in the background, or find that somebody else has; returns once it takes calls.

    arguments: further ones for ``python -m fairpool.admin.serve``. hear_token: given the first admin's token, where
    this start makes one. Raises NotStarted.
    """
    read_end, write_end = os.pipe()
    command = [sys.executable, "-m", "fairpool.admin.serve", "--data-dir", str(directory), "--log-to-file"]
    if hear_token is not None:
        command.append("--hears-token")
    try:
        child = subprocess.Popen(
            [*command, "--ready-fd", str(write_end), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=(write_end,),
            start_new_session=True,  # so that Ctrl-C here does not stop it
            cwd="/",
        )
    finally:
        os.close(write_end)
    told = _hear(read_end, timeout_s)
    if told is not None and told.endswith(READY_LINE):
        _pass_on(told, hear_token)
        # It goes on without us: nobody will collect it, and Popen should not complain about that.
        child.returncode = 0
        if child.stderr is not None:
            child.stderr.close()
        found = find(directory)
        if found is not None:
            return found
        raise NotStarted(f"the local server stopped again at once; its log is {directory / LOG_FILE}")
    if told is None:
        child.kill()
        child.wait()
        raise NotStarted(f"the local server was not ready within {timeout_s:g} s; its log is {directory / LOG_FILE}")
    _, complaint = child.communicate()
    why = told.decode("utf-8", "replace").strip() or complaint.decode("utf-8", "replace").strip().rpartition("\n")[2]
    raise NotStarted(why or f"the local server did not start; its log is {directory / LOG_FILE}")


def _pass_on(told: bytes, hear_token: Callable[[str], None] | None) -> None:
    for line in told.decode().splitlines():
        word, _, token = line.partition(" ")
        if word == TOKEN_WORD and hear_token is not None:
            hear_token(token)


def _hear(descriptor: int, timeout_s: float) -> bytes | None:
    """What the child says until it closes its end, or up to READY_LINE; None after the timeout."""
    heard = b""
    give_up_at = time.monotonic() + timeout_s
    try:
        while not heard.endswith(READY_LINE):
            readable, _, _ = select.select([descriptor], [], [], max(give_up_at - time.monotonic(), 0))
            if not readable:
                return None
            chunk = os.read(descriptor, 4096)
            if not chunk:
                break
            heard += chunk
    finally:
        os.close(descriptor)
    return heard

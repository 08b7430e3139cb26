"""Programs without the second or two that Python needs to load one: forked from a process that has loaded its modules.

Servers that tests start from their own process come from here, where a folder's conftest says so, and commands that are
typed without a terminal. What a command starts, what runs at a terminal or is sent signals is started as anybody would.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, Final

import pytest

from fairpool.wire import local_server

SERVER: Final = "fairpool.admin.serve"
OF_A_SERVER: Final = (
    "alembic.command",
    "alembic.runtime.migration",
    "fairpool.bootstrap.oidc_settings",
    "fairpool.bootstrap.wiring",
    "fairpool.server.logs",
    "fairpool.server.process",
    "psycopg",
    "uvicorn.lifespan.off",
    "uvicorn.loops.uvloop",
)
"""What a server imports, but for the module that runs it."""

OF_A_COMMAND: Final = ("fairpool.cli.main", "fairpool.client.connecting")
"""What every command imports; each goes on to load what is its own."""

_FORKED: Final = Path(__file__).with_name("forked.py")
_READ_AT_ITS_START: Final = ("FAIRPOOL_", "XDG_")
"""Settings of a server that no module reads while it is loaded."""
_READ_BY_PYTHON: Final = ("PYTHON", "LC_", "LANG")
_PIPE_TAKES: Final = 60_000


class Server:
    """A server that was forked off, as far as `local_server.start` needs to know a process that it has started."""

    def __init__(self, pid: int, stderr: IO[bytes]) -> None:
        self.pid = pid
        self.stderr = stderr
        self.returncode: int | None = None

    def kill(self) -> None:
        """End it at once."""
        os.kill(self.pid, signal.SIGKILL)

    def communicate(self) -> tuple[None, bytes]:
        """What it complains of until it ends."""
        with self.stderr:
            return None, self.stderr.read()

    def wait(self) -> None:
        """Wait until it has ended."""
        self.communicate()


class Loaded:
    """A process that has loaded these modules."""

    def __init__(self, *modules: str) -> None:
        self.environment = _environment()
        self._one_at_a_time = threading.Lock()
        self._control, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, str(_FORKED), str(theirs.fileno()), *modules],
                env=self.environment,  # and not what a library has said to C's alone
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,  # Ctrl-C is for the tests, which end it when they are done
            )

    def fork(self, said: Mapping[str, Any], *descriptors: int) -> int:
        """Fork a program, and return its process id."""
        with self._one_at_a_time:
            socket.send_fds(self._control, [json.dumps(said).encode()], descriptors)
            return int(self._control.recv(32))

    def close(self) -> None:
        """Fork no more. What runs is not touched."""
        self._control.close()
        self._process.wait()


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}


def _changes(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str | None]:
    return {name: after.get(name) for name, _ in before.items() ^ after.items() if not name.startswith("PYTEST_")}


@cache
def _loaded(*modules: str) -> Loaded:
    """The process of those modules, which stays until the tests end."""
    made = Loaded(*modules)
    atexit.register(made.close)
    return made


# ---- servers ---------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def forked_servers() -> Iterator[None]:
    """Within the block, servers that this process starts are forked."""

    def started(command: Sequence[str], **how: Any) -> Any:
        """As `subprocess.Popen`, of which it does what starting a server needs, and leaves the rest to the real one."""
        loaded = _loaded(*OF_A_SERVER)
        changes = _changes(loaded.environment, os.environ)
        is_other = command[:3] != [sys.executable, "-m", SERVER]
        if is_other or not all(name.startswith(_READ_AT_ITS_START) for name in changes):
            return subprocess.Popen(command, **how)
        (ready,) = how["pass_fds"]
        said = {"module": SERVER, "arguments": command[3:], "environment": changes, "folder": how["cwd"]}
        heard, stderr = os.pipe()
        with Path(os.devnull).open("r+b") as nothing:
            pid = loaded.fork(said, nothing.fileno(), nothing.fileno(), stderr, ready)
        os.close(stderr)
        return Server(pid, os.fdopen(heard, "rb"))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_server, "subprocess", SimpleNamespace(**{**vars(subprocess), "Popen": started}))
        yield


# ---- commands --------------------------------------------------------------------------------------------------------


def run(
    command: Sequence[str], *, folder: Path, environment: Mapping[str, str], stdin: str, timeout_s: float
) -> subprocess.CompletedProcess[str]:
    """Run a command of Fairpool's to its end, in a process that is forked."""
    loaded = _loaded(*OF_A_COMMAND)
    changes = _changes(loaded.environment, environment)
    if len(stdin) > _PIPE_TAKES or any(name.startswith(_READ_BY_PYTHON) for name in changes):
        return subprocess.run(
            command, cwd=folder, env=environment, input=stdin, capture_output=True, text=True, timeout=timeout_s,
            check=False,
        )  # fmt: skip
    said = {"program": command[0], "arguments": command[1:], "environment": changes, "folder": str(folder)}
    pipes = [os.pipe() for _ in range(4)]
    (theirs, ours), *heard = pipes
    pid = loaded.fork(said, theirs, *(there for _, there in heard))
    for descriptor in (theirs, *(there for _, there in heard)):
        os.close(descriptor)
    with contextlib.suppress(BrokenPipeError), os.fdopen(ours, "wb") as typing:
        typing.write(stdin.encode())
    try:
        out, err, code = _all_of([here for here, _ in heard], timeout_s)
    except TimeoutError:
        os.killpg(pid, signal.SIGKILL)
        raise AssertionError(f"{command} has not ended after {timeout_s:g} s") from None
    return subprocess.CompletedProcess(command, int(code), out.decode(), err.decode())


def _all_of(descriptors: Sequence[int], timeout_s: float) -> list[bytes]:
    """What is written there until all of them are closed. Raises TimeoutError."""
    found = dict.fromkeys(descriptors, b"")
    give_up_at = time.monotonic() + timeout_s
    with selectors.DefaultSelector() as selector:
        for descriptor in descriptors:
            selector.register(descriptor, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(give_up_at - time.monotonic(), 0))
            if not ready:
                raise TimeoutError
            for key, _ in ready:
                chunk = os.read(key.fd, 2**16)
                found[key.fd] += chunk
                if not chunk:
                    selector.unregister(key.fd)
                    os.close(key.fd)
    return list(found.values())

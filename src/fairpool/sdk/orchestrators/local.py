"""The local orchestrator: each step is a process of its own on this machine."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from fairpool.sdk.errors import StackError
from fairpool.sdk.orchestrators import guardian
from fairpool.sdk.orchestrators.base import Job, Launch, Orchestrator
from fairpool.sdk.orders import CONTROL_ENV, DEFAULT_GRACE_S, abort_line

FLAVOR = "local"


def line_of_life(pid: int) -> bytes:
    """What tells a guardian that a process group lives."""
    return b"+%d\n" % pid


class Guardian:
    """The process that ends what is left behind when this one dies. Started with the first job, shared by all."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def start(self) -> int:
        """Have it run. Returns the file descriptor on which it hears: a group's leader may write its own line."""
        with self._lock:
            return self._started().fileno()

    def add(self, pid: int) -> None:
        """A process group lives."""
        self._tell(line_of_life(pid))

    def remove(self, pid: int) -> None:
        """A process group has ended."""
        self._tell(b"-%d\n" % pid)

    def _tell(self, line: bytes) -> None:
        with self._lock, contextlib.suppress(OSError):
            hears = self._started()
            hears.write(line)
            hears.flush()

    def _started(self) -> IO[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(guardian.__file__), str(DEFAULT_GRACE_S)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                cwd="/",
            )
        assert self._process.stdin is not None
        return self._process.stdin

    def close(self) -> None:
        """It has nothing left to do but to end what still lives."""
        with self._lock:
            if self._process is not None and self._process.stdin is not None:
                with contextlib.suppress(OSError):
                    self._process.stdin.close()
                self._process.wait()
                self._process = None

    def dismiss(self) -> None:
        """It is to do nothing any more: what it was told of never came to live."""
        with self._lock:
            if self._process is not None:
                self._process.kill()
        self.close()


class _OfThisProcess:
    """One guardian for all jobs of this process."""

    guardian = Guardian()


def _after_fork() -> None:
    # The jobs are the parent's; a guardian of the child's own would be told of others.
    _OfThisProcess.guardian = Guardian()


os.register_at_fork(after_in_child=_after_fork)


def _at_exit() -> None:
    _OfThisProcess.guardian.close()


atexit.register(_at_exit)


class LocalJob(Job):
    """A process on this machine that leads a session of its own."""

    def __init__(self, process: subprocess.Popen[bytes], guard: Guardian) -> None:
        self._process = process
        self._guard = guard
        self._descriptor = os.pidfd_open(process.pid) if hasattr(os, "pidfd_open") else None
        guard.add(process.pid)

    @property
    def pid(self) -> int:
        """The process's id, which is also that of its group."""
        return self._process.pid

    def fileno(self) -> int | None:
        """Readable when the process has ended; None where the system has no such thing."""
        return self._descriptor

    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    def stop(self, reason: str, grace_s: float) -> None:
        """Tell the process why it must end and how long it has."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.write(abort_line(reason, grace_s))
            self._process.stdin.flush()

    def kill(self) -> None:
        """SIGKILL to the process and all that it has started."""
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """What the step has started and left behind ends with it."""
        self.kill()
        self._guard.remove(self._process.pid)
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        if self._descriptor is not None:
            os.close(self._descriptor)


class LocalOrchestrator(Orchestrator):
    """Runs each step in a process of its own on this machine.

    config: ``max_parallel``: how many steps that no policy governs run at once (default: the number of processors, at
    least 4). What a policy governs runs in parallel as its pool allows.
    """

    def __init__(self, name: str = FLAVOR, config: Mapping[str, Any] | None = None) -> None:
        super().__init__(name, config)
        most = self.config.get("max_parallel", max(os.cpu_count() or 1, 4))
        if isinstance(most, bool) or not isinstance(most, int) or most < 1:
            raise StackError(f"component {name!r}: max_parallel {most!r} is not possible; possible: 1 or more")
        self._max_parallel = most

    @property
    def max_ungoverned(self) -> int | None:
        """So many that a thousand steps without a policy do not bring the machine down."""
        return self._max_parallel

    def launch(self, launch: Launch) -> Job:
        """Start the process with its output going to the log file."""
        launch.log.parent.mkdir(parents=True, exist_ok=True)
        with Path(launch.log).open("ab") as log:
            process = subprocess.Popen(
                launch.command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=launch.cwd,
                env={**os.environ, **launch.environment, CONTROL_ENV: "stdin", "PYTHONUNBUFFERED": "1"},
                start_new_session=True,  # Ctrl-C is for the driver, which then ends its steps in good order
            )
        return LocalJob(process, _OfThisProcess.guardian)

"""The command as a process: its own group, only the granted devices, gone when we are gone."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence

NOT_FOUND = 127
NOT_EXECUTABLE = 126
_PR_SET_PDEATHSIG = 1


class CannotRun(Exception):
    """The command cannot be started. code: what a shell would exit with."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class Child:
    """A running command in a process group of its own, in the foreground where there is a terminal."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        parent = os.getpid()
        libc = ctypes.CDLL(None) if sys.platform == "linux" else None

        def die_with_parent() -> None:
            if libc is not None:
                libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
                if os.getppid() != parent:  # it died in between
                    os._exit(NOT_EXECUTABLE)

        try:
            self._process = subprocess.Popen(
                list(command),
                env=dict(environment),
                process_group=0,
                preexec_fn=die_with_parent,  # noqa: PLW1509 (it only makes system calls)
            )
        except FileNotFoundError:
            raise CannotRun(f"{command[0]}: command not found", NOT_FOUND) from None
        except OSError as error:
            raise CannotRun(f"{command[0]}: {error.strerror}", NOT_EXECUTABLE) from None
        self._had_terminal = _give_terminal(self._process.pid)

    @property
    def pid(self) -> int:
        """Its process id, which is that of its group."""
        return self._process.pid

    def signal(self, number: int) -> None:
        """Send a signal to the whole group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def wait(self) -> int:
        """Wait for its end; its exit code as a shell tells it: 128 and the signal's number where one ended it."""
        code = self._process.wait()
        return 128 - code if code < 0 else code

    def over(self) -> None:
        """Whatever it left behind goes, and the terminal is ours again."""
        self.signal(signal.SIGKILL)
        if self._had_terminal:
            _give_terminal(os.getpgrp())


def _give_terminal(group: int) -> bool:
    """Make a process group the terminal's foreground one, so that it can read and Ctrl-C reaches it; whether it was
    ours to give."""
    try:
        if not sys.stdin.isatty() or os.getsid(0) != os.getsid(os.getpid()):
            return False
        before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # else we are stopped for touching it from behind
        try:
            os.tcsetpgrp(sys.stdin.fileno(), group)
        finally:
            signal.signal(signal.SIGTTOU, before)
    except (OSError, ValueError):
        return False
    return True

"""The command as a process: its own group, the terminal's foreground, gone when we are gone."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from fairpool.sdk.orchestrators.local import Guardian, line_of_life

NOT_FOUND: Final = 127
NOT_EXECUTABLE: Final = 126
_PR_SET_PDEATHSIG: Final = 1


class CannotRun(Exception):
    """The command cannot be started. code: what a shell would exit with."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class Child:
    """A running command in a process group of its own, which has the terminal if we had it.

    When this process dies, however that came about, the command dies with it: the kernel kills it, and the guardian
    kills what it has started.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._terminal = _terminal()
        self._guardian = Guardian()
        told = self._guardian.start()
        try:
            self._process = subprocess.Popen(
                list(command),
                env=dict(environment),
                process_group=0,
                preexec_fn=_before_exec(os.getpid(), self._terminal, told),  # noqa: PLW1509 (it only calls the system)
            )
        except OSError as error:
            self._guardian.dismiss()
            if isinstance(error, FileNotFoundError):
                raise CannotRun(f"{command[0]}: command not found", NOT_FOUND) from None
            raise CannotRun(f"{command[0]}: {error.strerror or error}", NOT_EXECUTABLE) from None

    @property
    def pid(self) -> int:
        """Its process id, which is that of its group."""
        return self._process.pid

    def signal(self, number: int) -> None:
        """Send a signal to the whole group; a stopped one wakes up to hear of its end."""
        self._send(number)
        if number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            self._send(signal.SIGCONT)

    def wait(self, stopped: Callable[[], object]) -> int:
        """Wait for its end: its exit code as a shell tells it, 128 and the signal's number where one ended it.

        stopped: called when it is suspended (Ctrl-Z).
        """
        while True:
            _, status = os.waitpid(self.pid, os.WUNTRACED)
            if os.WIFSTOPPED(status):
                stopped()
                continue
            code = os.waitstatus_to_exitcode(status)
            self._process.returncode = code  # it was collected here, and Popen should not look for it
            return 128 - code if code < 0 else code

    def suspend_with_us(self) -> None:
        """It was suspended by the terminal: so are we, until the shell lets us go on; then it goes on too."""
        if self._terminal is None:
            return
        _set_foreground(self._terminal, os.getpgrp())
        os.killpg(os.getpgrp(), signal.SIGSTOP)
        if os.tcgetpgrp(self._terminal) == os.getpgrp():
            _set_foreground(self._terminal, self.pid)
        self._send(signal.SIGCONT)

    def over(self) -> None:
        """Whatever it left behind goes, and the terminal is ours again."""
        self._send(signal.SIGKILL)
        self._guardian.remove(self.pid)
        self._guardian.close()
        if self._terminal is not None:
            _set_foreground(self._terminal, os.getpgrp())

    def _send(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)


def _terminal() -> int | None:
    """The file descriptor of the terminal whose foreground is ours to give away, or None."""
    with contextlib.suppress(OSError):
        if os.tcgetpgrp(0) == os.getpgrp():
            return 0
    return None


def _before_exec(parent: int, terminal: int | None, guardian: int) -> Callable[[], None]:
    """What the new process does before it becomes the command. It tells the guardian of itself: the command could end
    us before we have done that, and what it has started would be left."""
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None

    def prepare() -> None:
        if libc is not None:
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:  # it died in between
                os._exit(NOT_EXECUTABLE)
        os.write(guardian, line_of_life(os.getpid()))
        if terminal is not None:
            _set_foreground(terminal, os.getpid())

    return prepare


def _set_foreground(terminal: int, group: int) -> None:
    # Whoever touches the terminal from the background is stopped for it, unless it blocks the signal that does so.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTTOU])
    try:
        with contextlib.suppress(OSError):
            os.tcsetpgrp(terminal, group)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

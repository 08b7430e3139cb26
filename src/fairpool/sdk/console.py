"""What a driver tells a person who watches: notes, and the output of its steps with their names before it."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path
from typing import Final

ECHO_ENV: Final = "FAIRPOOL_ECHO"
"""``always`` shows the output of steps and ``never`` shows neither that nor notes; otherwise the output is shown on a
terminal, and notes (why a step waits, that it was preempted, that it is tried again) wherever standard error goes."""

EVERY_S: Final = 0.1


def shows() -> bool:
    """Whether somebody watches."""
    chosen = os.environ.get(ECHO_ENV, "auto")
    if chosen in ("always", "never"):
        return chosen == "always"
    return sys.stderr is not None and sys.stderr.isatty()


def tells() -> bool:
    """Whether notes are wanted. They are also where nobody watches: a log is where people look afterwards."""
    return os.environ.get(ECHO_ENV, "auto") != "never"


def note(text: str) -> None:
    """Tell what happens to the work, on standard error."""
    if tells():
        say(text)


def say(text: str) -> None:
    """Write something on standard error, whether or not somebody watches."""
    _write(f"fairpool: {text}\n")


class Pace:
    """Says of how many things in a row a person wants to hear: one now and then."""

    def __init__(self, every_s: float = 5.0) -> None:
        self._every_s = every_s
        self._next_at = 0.0
        self._said: set[str] = set()

    def is_first(self, what: str) -> bool:
        """Whether it is the first of its kind; from then on it is not."""
        if what in self._said:
            return False
        self._said.add(what)
        return True

    def allows(self) -> bool:
        """Whether it is time for another one, which then counts as said."""
        if not tells() or time.monotonic() < self._next_at:
            return False
        self._next_at = time.monotonic() + self._every_s
        return True


def _write(text: str) -> None:
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(text)
        sys.stderr.flush()


class Echo:
    """Shows what is appended to a log file, line by line, with the step's label before each."""

    def __init__(self, label: str, path: Path) -> None:
        self._label = label
        self._path = path
        self._position = path.stat().st_size if path.exists() else 0
        self._rest = b""

    def show(self, *, to_the_end: bool = False) -> None:
        """Show what has come since the last time; an unfinished line only `to_the_end`."""
        with contextlib.suppress(OSError), self._path.open("rb") as file:
            file.seek(self._position)
            data = file.read()
            self._position += len(data)
            *lines, self._rest = (self._rest + data).split(b"\n")
            if to_the_end and self._rest:
                lines.append(self._rest)
                self._rest = b""
            if lines:
                _write("".join(f"{self._label} | {line.decode('utf-8', 'replace')}\n" for line in lines))

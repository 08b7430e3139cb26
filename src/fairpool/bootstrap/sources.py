"""The real clock and the real source of ids."""

from __future__ import annotations

import secrets
import threading
import time
from typing import Final

from fairpool.app.records import Kind
from fairpool.core.ids import Instant

_LETTERS: Final = "0123456789abcdefghjkmnpqrstvwxyz"
"""Base 32 without the letters that are read for digits, in the order of their codes."""

_TICKS_PER_S: Final = 4
_SINCE: Final = 1_704_067_200  # 2024-01-01 UTC, in seconds: 7 letters of quarter seconds last from then to 2296
_TIME_LETTERS: Final = 7
_RANDOM_LETTERS: Final = 13
_RANDOM: Final = 32**_RANDOM_LETTERS
_STEP: Final = 2**40
"""The widest gap between two ids of one tick: not to be guessed, and room for millions of them."""


class SystemClock:
    """The time of day. Where the machine's clock is set back it stands still until that has caught up."""

    def __init__(self) -> None:
        self._last = 0
        self._reading = threading.Lock()

    def now(self) -> Instant:
        """Now, in microseconds UTC."""
        with self._reading:
            self._last = max(self._last, time.time_ns() // 1000)
            return Instant(self._last)


class TimeOrderedIds:
    """Ids of 20 letters and digits: quarter seconds, then random. Ids drawn later by this process sort later."""

    def __init__(self) -> None:
        self._tick = 0
        self._last = 0
        self._drawing = threading.Lock()

    def new(self, kind: Kind) -> str:
        """A new id; the kind does not show in it."""
        with self._drawing:
            tick = int((time.time() - _SINCE) * _TICKS_PER_S)
            if tick > self._tick:
                self._tick, self._last = tick, secrets.randbelow(_RANDOM // 2)
            else:
                self._last += 1 + secrets.randbelow(_STEP)
            return _spelled(self._tick, _TIME_LETTERS) + _spelled(self._last, _RANDOM_LETTERS)


def _spelled(number: int, letters: int) -> str:
    return "".join(_LETTERS[number >> (5 * place) & 31] for place in range(letters - 1, -1, -1))

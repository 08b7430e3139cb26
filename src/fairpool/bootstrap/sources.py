"""The real clock and the real source of ids."""

from __future__ import annotations

import io
import os
import secrets
import threading
import time
from typing import Final

from fairpool.app.records import Kind
from fairpool.core.ids import Instant

_LETTERS: Final = "0123456789abcdefghjkmnpqrstvwxyz"
"""Base 32 without the letters that are read for digits, in the order of their codes."""

_PAIRS: Final = tuple(high + low for high in _LETTERS for low in _LETTERS)
"""Every ten bits as two letters: ids are drawn for every request, so they are spelled two letters at a time."""

_TICKS_PER_S: Final = 4
_SINCE: Final = 1_704_067_200  # 2024-01-01 UTC, in seconds: 7 letters of quarter seconds last until 2296
_TIME_PAIRS: Final = 4
_RANDOM_PAIRS: Final = 6
_RESERVE_BYTES: Final = 5_000
_STEP_BYTES: Final = 5
"""How far apart two ids of one tick may be: not to be guessed, and room for a million of them."""


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
    """Ids of 19 letters and digits: quarter seconds, then random. Ids drawn later by this process sort later."""

    def __init__(self) -> None:
        self._tick = 0
        self._spelled_tick = ""
        self._last = 0
        self._reserve = io.BytesIO()
        self._drawing = threading.Lock()

    def new(self, kind: Kind) -> str:
        """A new id; the kind does not show in it."""
        with self._drawing:
            tick = int((time.time() - _SINCE) * _TICKS_PER_S)
            if tick > self._tick:
                self._tick, self._spelled_tick = tick, _spelled(tick, _TIME_PAIRS)
                self._last = secrets.randbits(10 * _RANDOM_PAIRS - 1)  # half stays free for those that follow
            else:
                self._last += 1 + int.from_bytes(self._random(_STEP_BYTES))
            # The first letter is a zero for centuries to come: prefixes that people type need not begin with it.
            return self._spelled_tick[1:] + _spelled(self._last, _RANDOM_PAIRS)

    def _random(self, size: int) -> bytes:
        drawn = self._reserve.read(size)
        if len(drawn) < size:
            # Many at a time: each call of the system lets another thread have its turn, and ids are drawn in loops.
            self._reserve = io.BytesIO(os.urandom(_RESERVE_BYTES))
            drawn = self._reserve.read(size)
        return drawn


def _spelled(number: int, pairs: int) -> str:
    letters = [""] * pairs
    for place in range(pairs - 1, -1, -1):
        letters[place] = _PAIRS[number & 1023]
        number >>= 10
    return "".join(letters)

"""A clock that stands still until a test moves it."""

from __future__ import annotations

import threading

from fairpool.core.ids import Instant, seconds

START = Instant(0)


class ManualClock:
    """Stands in for `app.ports.Clock`. It never goes backwards, and may be read and moved from any thread."""

    def __init__(self, start: Instant = START) -> None:
        self._now = start
        self._moving = threading.Lock()

    def now(self) -> Instant:
        """The time that it was moved to last."""
        return self._now

    def advance(self, by_s: float) -> Instant:
        """Move on by seconds; returns the time then. Raises ValueError for a negative length."""
        if by_s < 0:
            raise ValueError(f"a clock does not go back by {-by_s:g} s")
        with self._moving:
            self._now = Instant(self._now + seconds(by_s))
            return self._now

    def move_to(self, at: Instant) -> None:
        """Move to a moment. Raises ValueError for one that has passed."""
        with self._moving:
            if at < self._now:
                raise ValueError(f"a clock does not go back from {self._now} to {at}")
            self._now = at

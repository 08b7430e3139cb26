"""How often, and for how long, one call is tried again: longer and longer waits, that differ from caller to caller."""

from __future__ import annotations

import random
import time
from typing import Final

RETRIES: Final = 4
"""Tries after the first at one server that says nothing, about three seconds in all: a restarting server is back by
then, and a wrong address is told soon."""

PATIENCE_S: Final = 90.0
"""How long a call waits in all for a server that says that it will serve again, or for one of several: another server
takes over within seconds, and a database that was away for a minute is back."""

LONGEST_WAIT_S: Final = 5.0
_FIRST_WAIT_S: Final = 0.1


class Patience:
    """The patience for one call. servers: at how many addresses it may be answered."""

    def __init__(self, retries: int, servers: int) -> None:
        self._retries = retries
        self._servers = servers
        self._tries = 0
        self._began = time.monotonic()
        self.waited_s = 0.0

    def after_silence(self) -> float | None:
        """Seconds until the next try after one without an answer; None to give up."""
        if self._servers == 1 and self._tries >= self._retries:
            return None
        if self._tries < self._servers - 1 and not self.waited_s:
            self._tries += 1
            return 0.0  # the next server first
        return self._wait(0.0)

    def after_refusal(self, retry_after: str | None) -> float | None:
        """The same after an answer that says to come back, at the earliest after `retry_after` seconds."""
        told = int(retry_after) if retry_after is not None and retry_after.isdigit() else 0
        return self._wait(min(told, LONGEST_WAIT_S) if self._retries else None)

    def _wait(self, at_least: float | None) -> float | None:
        # A server that hangs takes its time too.
        if at_least is None or max(self.waited_s, time.monotonic() - self._began) >= PATIENCE_S:
            return None
        spread = 0.5 + random.random()  # noqa: S311 (spreads retries, guards nothing)
        wait_s = min(_FIRST_WAIT_S * 2.0 ** min(self._tries, 10) * spread, LONGEST_WAIT_S)
        wait_s = max(wait_s, at_least * (1 + spread / 10))
        self._tries += 1
        self.waited_s += wait_s
        return wait_s

"""Waiting for what happens outside the process: by condition, never by hope.

Inside the process tests use a virtual clock and need none of this.
"""

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")

# Seconds between two looks: short against anything worth waiting for, long enough to leave the machine to others.
PAUSE_S = 0.02


def wait_until(look: Callable[[], Found], *, what: str, timeout_s: float = 90) -> Found:
    """Look again and again until there is something to see, and return it; fail naming what was waited for."""
    give_up_at = time.monotonic() + timeout_s
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() >= give_up_at:
            raise AssertionError(f"waited {timeout_s:g} s in vain: {what} (last seen: {found!r})")
        time.sleep(PAUSE_S)

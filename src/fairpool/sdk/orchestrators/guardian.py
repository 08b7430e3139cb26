"""A small process that outlives a driver for as long as needed to end what the driver has left behind.

It reads ``+PID`` and ``-PID`` lines, the leaders of process groups that live. When its input ends, the driver is gone,
however that came about: every group that is left is asked to end (SIGTERM), and killed after the grace period.
Standard library only, and run by file name, so that it costs little.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time


def watch(grace_s: float) -> None:
    """Follow standard input to its end, then end what is left."""
    alive: set[int] = set()
    for line in sys.stdin.buffer:
        pid = int(line[1:])
        if line.startswith(b"+"):
            alive.add(pid)
        else:
            alive.discard(pid)
    _signal(alive, signal.SIGTERM)
    deadline = time.monotonic() + grace_s
    while any(_lives(pid) for pid in alive) and time.monotonic() < deadline:
        time.sleep(0.05)
    _signal({pid for pid in alive if _lives(pid)}, signal.SIGKILL)


def _lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except OSError:
        return False
    return True


def _signal(groups: set[int], number: signal.Signals) -> None:
    for group in groups:
        # Only the leader is asked: it ends its own helpers in good order. The kill is for all of them.
        with contextlib.suppress(OSError):
            (os.killpg if number == signal.SIGKILL else os.kill)(group, number)


if __name__ == "__main__":
    watch(float(sys.argv[1]))

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
    while alive and time.monotonic() < deadline:
        # What a leader leaves behind has nobody to end it in good order.
        ended = {pid for pid in alive if not _lives(pid)}
        _signal(ended, signal.SIGKILL)
        alive -= ended
        time.sleep(0.05)
    _signal(alive, signal.SIGKILL)


def _lives(pid: int) -> bool:
    """Whether the process lives; a zombie, which nobody may ever collect, does not."""
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 (pathlib costs more than all the rest)
            return file.read().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return not os.path.isdir("/proc/self")  # noqa: PTH112


def _signal(groups: set[int], number: signal.Signals) -> None:
    for group in groups:
        # Only the leader is asked: it ends its own helpers in good order. The kill is for all of them.
        with contextlib.suppress(OSError):
            (os.killpg if number == signal.SIGKILL else os.kill)(group, number)


if __name__ == "__main__":
    watch(float(sys.argv[1]))

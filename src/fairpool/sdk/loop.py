"""The one thread that runs the steps of a driver: what was posted, timers, and readable file descriptors."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import logging
import os
import selectors
import threading
import time
from collections import deque
from collections.abc import Callable

log = logging.getLogger("fairpool.sdk")
Action = Callable[[], object]


class Timer:
    """An action at a time; it can be cancelled."""

    def __init__(self, action: Action) -> None:
        self.action: Action | None = action

    def cancel(self) -> None:
        """Do not act."""
        self.action = None


class Loop:
    """Runs actions one after the other on one thread, so that what they share needs no locks."""

    def __init__(self, name: str) -> None:
        self._selector = selectors.DefaultSelector()
        self._posted: deque[Action] = deque()
        self._timers: list[tuple[float, int, Timer]] = []
        self._count = itertools.count()
        self._wake_out, self._wake_in = os.pipe()
        os.set_blocking(self._wake_out, False)
        os.set_blocking(self._wake_in, False)
        self._selector.register(self._wake_out, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._stopping = False

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End after what was posted so far, and wait for that."""
        self.post(self._stop)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def post(self, action: Action) -> None:
        """Run `action` soon. From any thread."""
        self._posted.append(action)
        with contextlib.suppress(BlockingIOError, OSError):
            os.write(self._wake_in, b"x")

    def after(self, delay_s: float, action: Action) -> Timer:
        """Run `action` in `delay_s` seconds. On the loop's thread."""
        timer = Timer(action)
        heapq.heappush(self._timers, (time.monotonic() + delay_s, next(self._count), timer))
        return timer

    def watch(self, descriptor: int, action: Action) -> None:
        """Run `action` once, when the file descriptor becomes readable. On the loop's thread."""
        self._selector.register(descriptor, selectors.EVENT_READ, action)

    def unwatch(self, descriptor: int) -> None:
        """Do not wait for it any more. On the loop's thread."""
        with contextlib.suppress(KeyError):
            self._selector.unregister(descriptor)

    def _stop(self) -> None:
        self._stopping = True

    def _run(self) -> None:
        while not self._stopping:
            for key, _ in self._selector.select(self._pause_s()):
                if key.data is None:
                    with contextlib.suppress(BlockingIOError):
                        os.read(self._wake_out, 65_536)
                else:
                    self.unwatch(key.fd)
                    _act(key.data)
            for _ in range(len(self._posted)):
                _act(self._posted.popleft())
            now = time.monotonic()
            while self._timers and self._timers[0][0] <= now:
                timer = heapq.heappop(self._timers)[2]
                if timer.action is not None:
                    _act(timer.action)
        self._selector.close()
        os.close(self._wake_in)
        os.close(self._wake_out)

    def _pause_s(self) -> float | None:
        if self._posted:
            return 0.0
        while self._timers and self._timers[0][2].action is None:
            heapq.heappop(self._timers)
        return max(self._timers[0][0] - time.monotonic(), 0.0) if self._timers else None


def _act(action: Action) -> None:
    try:
        action()
    except Exception:
        # One step's trouble must not end the thread that runs all the others.
        log.exception("an action of the driver failed")

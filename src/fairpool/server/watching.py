"""Waking the calls that wait for something to change. A waiting call costs an event, not a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

EVERYTHING = ""
"""The key of those who wait for any change."""


class Watch:
    """Who waits for which request, and waking them from any thread.

    A caller begins to watch, then looks, then waits: what changes between the look and the wait has set the event.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._watchers: dict[str, set[asyncio.Event]] = {}
        self.closing = False

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Say on which loop the waiting calls run."""
        self._loop = loop

    def tell(self, requests: Iterable[str]) -> None:
        """Wake those who wait for one of `requests`, and those who wait for anything. From any thread."""
        # A watcher that is not there yet looks only after it has begun to watch, so it sees what is told here.
        if self._loop is not None and self._watchers and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake, tuple(requests))

    def close(self) -> None:
        """Wake everybody for good: the server stops. On the loop's thread."""
        self.closing = True
        self._wake(tuple(self._watchers))

    def end(self) -> None:
        """As `close`, from any thread: what is watched here goes."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.close)

    def _wake(self, keys: tuple[str, ...]) -> None:
        for key in (*keys, EVERYTHING):
            for event in self._watchers.get(key, ()):
                event.set()

    @contextmanager
    def watching(self, key: str) -> Iterator[asyncio.Event]:
        """An event that is set whenever `key` changes, for as long as the block runs. On the loop's thread."""
        event = asyncio.Event()
        if self.closing:
            event.set()
        self._watchers.setdefault(key, set()).add(event)
        try:
            yield event
        finally:
            watchers = self._watchers[key]
            watchers.discard(event)
            if not watchers:
                del self._watchers[key]


async def wait(event: asyncio.Event, seconds: float) -> bool:
    """Wait until the event is set, at most `seconds`; whether it was."""
    if event.is_set():
        return True
    try:
        async with asyncio.timeout(max(seconds, 0)):
            await event.wait()
    except TimeoutError:
        return False
    return True

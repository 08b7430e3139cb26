"""From the scheduler's thread to the event loop: answers cross together, with one wake-up for all of a round."""

from __future__ import annotations

import asyncio
from collections import deque
from concurrent.futures import Future
from typing import Any, TypeVar

Result = TypeVar("Result")


class Bridge:
    """Lets coroutines await the scheduler's futures. asyncio.wrap_future would wake the loop once for each of them."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._crossing: deque[tuple[asyncio.Future[Any], Future[Any]]] = deque()
        self._woken = False

    async def answer(self, asked: Future[Result]) -> Result:
        """What the scheduler answers, or what it raises. On the loop's thread; always the same loop."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        mine: asyncio.Future[Result] = self._loop.create_future()
        asked.add_done_callback(lambda done: self._cross(mine, done))
        return await mine

    def _cross(self, mine: asyncio.Future[Any], done: Future[Any]) -> None:
        self._crossing.append((mine, done))
        if not self._woken and self._loop is not None and not self._loop.is_closed():
            self._woken = True
            self._loop.call_soon_threadsafe(self._arrive)

    def _arrive(self) -> None:
        # First this, then the looking: what crosses after the last look wakes the loop again.
        self._woken = False
        while self._crossing:
            mine, done = self._crossing.popleft()
            if mine.done():
                continue  # the caller hung up
            error = done.exception()
            if error is not None:
                mine.set_exception(error)
            else:
                mine.set_result(done.result())

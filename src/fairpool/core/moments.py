"""What time will bring: grace periods that end, waits that end, and pools to look at again."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from heapq import heapify, heappop, heappush

from fairpool.core.ids import Instant, PoolId, RequestId
from fairpool.core.journal import Journal

Moment = tuple[Instant, str]


class Moments:
    """Three heaps of moments. Entries whose object is gone stay until their time and are skipped then."""

    __slots__ = ("_alarms", "_deadlines", "_journal", "_timeouts")

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._deadlines: list[Moment] = []
        self._timeouts: list[Moment] = []
        self._alarms: list[Moment] = []

    def add_deadline(self, at: Instant, request: RequestId) -> None:
        """An eviction's grace period ends."""
        self._add(self._deadlines, (at, request))

    def add_timeout(self, at: Instant, request: RequestId) -> None:
        """A request's willingness to wait ends."""
        self._add(self._timeouts, (at, request))

    def add_alarm(self, at: Instant, pool: PoolId) -> None:
        """Something in the pool becomes possible by time alone."""
        if (at, pool) not in self._alarms:  # few: one per pool that waits for somebody's min_runtime_s
            self._add(self._alarms, (at, pool))

    def deadlines_until(self, now: Instant) -> Iterator[tuple[Instant, RequestId]]:
        """Take the deadlines that have passed."""
        return ((at, RequestId(request)) for at, request in self._take(self._deadlines, now))

    def timeouts_until(self, now: Instant) -> Iterator[RequestId]:
        """Take the waits that have ended."""
        return (RequestId(request) for _, request in self._take(self._timeouts, now))

    def alarms_until(self, now: Instant) -> Iterator[PoolId]:
        """Take the pools whose moment has come."""
        return (PoolId(pool) for _, pool in self._take(self._alarms, now))

    def next(self) -> Instant | None:
        """The earliest moment ahead; it may turn out that nothing is left to do then."""
        if not self._deadlines and not self._timeouts and not self._alarms:
            return None  # usual where nobody is evicted, and asked at every decision
        return min(heap[0][0] for heap in (self._deadlines, self._timeouts, self._alarms) if heap)

    def _add(self, heap: list[Moment], moment: Moment) -> None:
        heappush(heap, moment)
        if self._journal.active:
            self._journal.record(lambda: _discard(heap, moment))

    def _take(self, heap: list[Moment], now: Instant) -> Iterator[Moment]:
        while heap and heap[0][0] <= now:
            moment = heappop(heap)
            if self._journal.active:
                self._journal.record(partial(heappush, heap, moment))
            yield moment


def _discard(heap: list[Moment], moment: Moment) -> None:
    heap.remove(moment)
    heapify(heap)

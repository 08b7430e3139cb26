"""Leases: until when an owner is believed to be alive (S35).

Kept in memory and written down lazily: after a restart every owner gets one full lease anyway, so a renewal that was
not written down can only ever be too kind.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from itertools import islice

from fairpool.app.records import Lease
from fairpool.core.ids import SECOND, Instant, RequestId
from fairpool.core.requests import Request

DEFAULT_LEASE_S = 60
FLUSH_EVERY_S = 30  # how stale the written leases may be; people see them, nobody decides by them
FLUSH_MOST = 1_000
"""Renewals written down in one commit, so that no call waits long behind them."""

SLACK = 1_024
"""Entries of ended leases that may lie in the heap besides as many as there are live ones."""

OVERTIME_S = 30
"""How long after its `max_runtime_s` a hold ends: owners end their work by themselves, gracefully, and let go."""


class Deadlines:
    """A moment per request. Setting one costs the logarithm of their number, never a scan."""

    def __init__(self) -> None:
        self._at: dict[RequestId, Instant] = {}
        self._heap: list[tuple[Instant, RequestId]] = []  # may hold ended requests, and moments that were put off

    def __len__(self) -> int:
        return len(self._at)

    def set(self, request: RequestId, at: Instant) -> None:
        """The request's moment is this one now."""
        old = self._at.get(request)
        self._at[request] = at
        if old is None or at < old:
            heappush(self._heap, (at, request))  # one put off comes up at the old moment, and is put back

    def drop(self, request: RequestId) -> None:
        """The request has no moment any more."""
        self._at.pop(request, None)
        if len(self._heap) > 2 * len(self._at) + SLACK:
            self._heap = [(at, other) for other, at in self._at.items()]
            heapify(self._heap)

    def due(self, now: Instant) -> list[RequestId]:
        """The requests whose moment has come, each once; they have none any more."""
        found = []
        while self._heap and self._heap[0][0] <= now:
            _, request = heappop(self._heap)
            at = self._at.get(request)
            if at is None:
                continue
            if at <= now:
                del self._at[request]
                found.append(request)
            else:
                heappush(self._heap, (at, request))
        return found

    def next(self) -> Instant | None:
        """When to look again: not later than the next moment comes."""
        return self._heap[0][0] if self._heap else None

    def first(self) -> Instant | None:
        """The earliest moment; None where there is none."""
        while self._heap:
            at, request = self._heap[0]
            real = self._at.get(request)
            if real == at:
                return at
            heappop(self._heap)
            if real is not None:  # put off
                heappush(self._heap, (real, request))
        return None


class LeaseBook:
    """The leases of all live requests, and which renewals are not written down yet."""

    def __init__(self, leases: Iterable[tuple[RequestId, Lease]], now: Instant) -> None:
        """After the server was away every owner gets one full lease."""
        self._leases: dict[RequestId, Lease] = {}
        self._deadlines = Deadlines()
        for request, lease in leases:
            self.start(request, Lease(until=Instant(now + lease.length_s * SECOND), length_s=lease.length_s))
        self._unwritten = dict.fromkeys(self._leases)  # in the order of renewal
        self._flush_at = Instant(now + FLUSH_EVERY_S * SECOND)

    def start(self, request: RequestId, lease: Lease) -> None:
        """A new lease, written down by the caller."""
        self._leases[request] = lease
        self._deadlines.set(request, lease.until)

    def renew(self, request: RequestId, now: Instant, length_s: int | None = None) -> Lease | None:
        """Renew a lease; None where there is none."""
        old = self._leases.get(request)
        if old is None:
            return None
        length = length_s or old.length_s
        lease = Lease(until=Instant(now + length * SECOND), length_s=length)
        self.start(request, lease)
        self._unwritten[request] = None
        return lease

    def end(self, request: RequestId) -> None:
        """The request is final: nobody renews it any more."""
        self._leases.pop(request, None)
        self._unwritten.pop(request, None)
        self._deadlines.drop(request)

    def lapsed(self, now: Instant) -> list[RequestId]:
        """Requests whose owners have stopped renewing, each once."""
        found = self._deadlines.due(now)
        for request in found:
            self.end(request)
        return found

    def next_lapse(self) -> Instant | None:
        """When to look again: not later than the next lease lapses."""
        return self._deadlines.next()

    def unwritten(self, now: Instant) -> tuple[tuple[RequestId, Lease], ...]:
        """Renewals to write down now: none until it is time, then the oldest."""
        if not self._unwritten or now < self._flush_at:
            return ()
        return tuple((request, self._leases[request]) for request in islice(self._unwritten, FLUSH_MOST))

    def written(self, requests: Iterable[RequestId], now: Instant) -> None:
        """These are written down."""
        for request in requests:
            self._unwritten.pop(request, None)
        self._flush_at = Instant(now + (1 if self._unwritten else FLUSH_EVERY_S) * SECOND)


class Runtimes:
    """When those that said how long they run at most must have let go. Others were let start behind what is held for an
    older request on the strength of that (S25), so it is kept to."""

    def __init__(self) -> None:
        self._deadlines = Deadlines()

    def granted(self, request: Request, granted_at: Instant) -> None:
        """A request begins to hold something."""
        if request.max_runtime_s is not None:
            self._deadlines.set(request.id, Instant(granted_at + (request.max_runtime_s + OVERTIME_S) * SECOND))

    def end(self, request: RequestId) -> None:
        """The request is final."""
        self._deadlines.drop(request)

    def over(self, now: Instant) -> list[RequestId]:
        """Requests that have run for too long, each once."""
        return self._deadlines.due(now)

    def next_end(self) -> Instant | None:
        """When to look again."""
        return self._deadlines.next()

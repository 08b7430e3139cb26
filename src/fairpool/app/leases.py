"""Leases: until when an owner is believed to be alive (S35).

Kept in memory and written down lazily: after a restart every owner gets one full lease anyway, so a renewal that was
not written down can only ever be too kind.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush

from fairpool.app.records import Lease
from fairpool.core.ids import SECOND, Instant, RequestId

DEFAULT_LEASE_S = 60
FLUSH_EVERY_S = 30  # how stale the written leases may be; people see them, nobody decides by them


class LeaseBook:
    """The leases of all live requests. Renewing costs the logarithm of their number, never a scan."""

    def __init__(self) -> None:
        self._leases: dict[RequestId, Lease] = {}
        self._heap: list[tuple[Instant, RequestId]] = []
        self._unwritten: set[RequestId] = set()
        self._flushed_at = Instant(0)

    def __len__(self) -> int:
        return len(self._leases)

    def restart(self, leases: Iterable[tuple[RequestId, Lease]], now: Instant) -> None:
        """Begin again after the server was away: every owner gets one full lease."""
        self._leases = {
            request: Lease(until=Instant(now + lease.length_s * SECOND), length_s=lease.length_s)
            for request, lease in leases
        }
        self._heap = [(lease.until, request) for request, lease in self._leases.items()]
        heapify(self._heap)
        self._unwritten = set(self._leases)
        self._flushed_at = now

    def start(self, request: RequestId, lease: Lease) -> None:
        """A new lease, written down by the caller."""
        self._leases[request] = lease
        heappush(self._heap, (lease.until, request))

    def renew(self, request: RequestId, now: Instant, length_s: int | None = None) -> Lease | None:
        """Renew a lease; None where there is none."""
        old = self._leases.get(request)
        if old is None:
            return None
        length = length_s or old.length_s
        lease = Lease(until=Instant(now + length * SECOND), length_s=length)
        self._leases[request] = lease
        if length < old.length_s:
            heappush(self._heap, (lease.until, request))  # otherwise the old entry comes up early and is put back
        self._unwritten.add(request)
        return lease

    def end(self, request: RequestId) -> None:
        """The request is final: nobody renews it any more."""
        self._leases.pop(request, None)
        self._unwritten.discard(request)

    def get(self, request: RequestId) -> Lease | None:
        """The lease of a live request."""
        return self._leases.get(request)

    def lapsed(self, now: Instant) -> list[RequestId]:
        """Requests whose owners have stopped renewing, each once."""
        found = []
        while self._heap and self._heap[0][0] <= now:
            _, request = heappop(self._heap)
            lease = self._leases.get(request)
            if lease is None:
                continue
            if lease.until <= now:
                found.append(request)
                self.end(request)
            else:
                heappush(self._heap, (lease.until, request))
        return found

    def next_lapse(self) -> Instant | None:
        """When to look again: not later than the next lease lapses."""
        return self._heap[0][0] if self._heap else None

    def unwritten(self, now: Instant) -> tuple[tuple[RequestId, Lease], ...]:
        """Renewals to write down now: none until it is time."""
        if not self._unwritten or now - self._flushed_at < FLUSH_EVERY_S * SECOND:
            return ()
        return tuple((request, self._leases[request]) for request in sorted(self._unwritten))

    def written(self, now: Instant) -> None:
        """They are written down."""
        self._unwritten.clear()
        self._flushed_at = now

"""How many requests wait and run in each queue, kept up to date as they come and go: asking costs nothing per request.

A queue is what a subject sees of a profile, so a request counts in one queue for each of its subjects.
"""

from __future__ import annotations

from fairpool.app.leases import Deadlines
from fairpool.core.ids import Instant, RequestId
from fairpool.core.policies import Subject
from fairpool.core.requests import Request

QueueKey = tuple[Subject, str]
"""Whose queue, and of which profile by name."""


class QueueCount:
    """One queue's requests."""

    def __init__(self) -> None:
        self._waiting = Deadlines()  # by when they were first queued
        self._running: set[RequestId] = set()

    @property
    def pending(self) -> int:
        """How many wait."""
        return len(self._waiting)

    @property
    def running(self) -> int:
        """How many hold something."""
        return len(self._running)

    @property
    def oldest(self) -> Instant | None:
        """When the one that has waited longest was first queued; None where nobody waits."""
        return self._waiting.first()

    def wait(self, request: Request) -> None:
        """A request waits here."""
        self._waiting.set(request.id, request.queued_at)

    def start(self, request: Request) -> None:
        """A request that waited holds something now."""
        self._waiting.drop(request.id)
        self._running.add(request.id)

    def leave(self, request: Request) -> None:
        """A request has gone."""
        self._waiting.drop(request.id)
        self._running.discard(request.id)


class QueueCounts:
    """All queues that have requests."""

    def __init__(self) -> None:
        self._counts: dict[QueueKey, QueueCount] = {}

    def of(self, subject: Subject, profile: str) -> QueueCount:
        """One queue's counts; those of a queue without requests are zeros."""
        return self._counts.get((subject, profile)) or QueueCount()

    def wait(self, request: Request) -> None:
        """A request is queued."""
        for key in _keys(request):
            self._counts.setdefault(key, QueueCount()).wait(request)

    def start(self, request: Request) -> None:
        """A request is granted."""
        for key in _keys(request):
            self._counts.setdefault(key, QueueCount()).start(request)

    def leave(self, request: Request) -> None:
        """A request is final, or is made as others from now on."""
        for key in _keys(request):
            count = self._counts.get(key)
            if count is not None:
                count.leave(request)
                if not (count.pending or count.running):
                    del self._counts[key]


def _keys(request: Request) -> list[QueueKey]:
    if not request.profile:
        return []  # most requests: they are in nobody's queue
    return [(subject, request.profile) for subject in dict.fromkeys(request.subjects)]

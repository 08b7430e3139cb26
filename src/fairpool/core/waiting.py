"""Who waits: requests that the decisions cannot tell apart form one class, looked at once per pass.

A class is made of requests with equal candidates, demand and preemptibility (and run times of the same magnitude, so
that short work finds its gap under EASY backfill). Inside a class requests stand by their own priority, then by age.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import NamedTuple

from fairpool.core.ids import Instant, PolicyId, PoolId, RequestId
from fairpool.core.policies import Subject
from fairpool.core.reasons import Reason
from fairpool.core.requests import Demand, Request


class Candidate(NamedTuple):
    """One way in which a request can be served: through which policy of which pool."""

    policy: PolicyId
    pool: PoolId


class Origin(NamedTuple):
    """What decides which policies a request can go through (S13)."""

    subjects: tuple[Subject, ...]
    profile: str
    pool: str

    @classmethod
    def of(cls, request: Request) -> Origin:
        """That of a request."""
        return cls(request.subjects, request.profile, request.pool)


class Route(NamedTuple):
    """Where requests of one origin and demand can go: in order of preference, and why nowhere else."""

    candidates: tuple[Candidate, ...]
    refusals: tuple[Reason, ...]
    ungoverned: bool


class ClassKey(NamedTuple):
    """What the members of a class have in common."""

    candidates: tuple[Candidate, ...]
    demand: Demand
    preemptible: bool
    runtime_magnitude: int


Place = tuple[int, Instant, RequestId]
"""A request's place in its class: 1 its own priority, highest first, 2 when it was first queued, 3 its id."""


def place_of(request: Request) -> Place:
    """See `Place`."""
    return (-request.priority, request.queued_at, request.id)


def runtime_magnitude(request: Request) -> int:
    """Run times of one power of two share a class; requests that declare none share another."""
    return -1 if request.max_runtime_s is None else request.max_runtime_s.bit_length()


class RequestClass:
    """The waiting members of one class, in order. Taking one out costs nothing; it leaves its entry to be skipped.

    waiting: how many wait, those included for whom evictions are under way, who are no members. pools: where they may
    go, the most preferred first.
    """

    __slots__ = ("_entries", "_mixed", "demand", "key", "members", "origins", "pools", "preemptible", "waiting")

    def __init__(self, key: ClassKey) -> None:
        self.key = key
        self.demand = key.demand
        self.preemptible = key.preemptible
        self.pools = tuple(dict.fromkeys(candidate.pool for candidate in key.candidates))
        self.waiting = 0
        self.members: dict[RequestId, Request] = {}
        self.origins: dict[Origin, None] = {}
        self._entries: list[Place] = []
        self._mixed = False  # whether members of several priorities have been here

    def add(self, request: Request) -> None:
        """Queue a request."""
        self.members[request.id] = request
        entries = self._entries
        if entries and entries[0][0] != -request.priority:
            self._mixed = True
        heappush(entries, place_of(request))

    def first(self) -> Request | None:
        """The head if no entry of one that is gone stands before it, which is the usual case."""
        entries = self._entries
        return self.members.get(entries[0][2]) if entries else None

    def is_headed_by(self, request: Request) -> bool:
        """Whether that member may be the head: never False where it is."""
        first = self.first()
        return first is None or first.id == request.id

    @property
    def place(self) -> Place:
        """The place of the head, where there is one and `head` has just been asked."""
        return self._entries[0]

    def oldest(self) -> Instant:
        """Since when the member that was queued first has waited; there must be one. The head is that one unless
        members differ in their own priority: only then all of them are looked at."""
        head = self.first()
        if head is not None and not self._mixed:
            return head.queued_at
        return min(request.queued_at for request in self.members.values())

    def ahead(self, count: int) -> list[Request]:
        """The first so many members, in order; the others are not looked at."""
        entries, members = self._entries, self.members
        found: dict[RequestId, Request] = {}
        nearest = [(entries[0], 0)] if entries else []  # of a heap, whoever may come next is below one already taken
        while nearest and len(found) < count:
            (_, _, request), at = heappop(nearest)
            if request in members:
                found[request] = members[request]
            for below in (2 * at + 1, 2 * at + 2):
                if below < len(entries):
                    heappush(nearest, (entries[below], below))
        return list(found.values())

    def head(self, passed: list[Place]) -> Request | None:
        """The first in order, or None; entries of members that are gone are dropped and appended to `passed`."""
        entries, members = self._entries, self.members
        while entries:
            request = members.get(entries[0][2])
            if request is not None:
                return request
            passed.append(heappop(entries))
        return None

    def restore(self, passed: list[Place]) -> None:
        """Take entries back that `head` dropped."""
        for entry in passed:
            heappush(self._entries, entry)

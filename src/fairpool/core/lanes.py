"""A pool's order of service as a pass goes through it (S23): classes by standing, re-ranked as grants change shares.

One lane per policy and standing. A lane orders its classes by criteria 6 to 8 inside the policy; lanes are compared by
criteria 2 to 5 and then by the heads' 7 and 8, since a request's own priority never counts against another policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heappop, heappush
from typing import NamedTuple

from fairpool.core.accounts import PolicyBooks
from fairpool.core.books import PoolBooks
from fairpool.core.ids import PolicyId
from fairpool.core.ordering import Standing, fair_share
from fairpool.core.queue import Queue
from fairpool.core.requests import Request
from fairpool.core.shares import is_entitled
from fairpool.core.waiting import Place, RequestClass


class Turn(NamedTuple):
    """Whose turn it is."""

    policy: PolicyBooks
    home: RequestClass
    request: Request


_Waiting = tuple[Place, int, RequestClass, Request]  # the head's place, a number to tell classes apart, class, head
_Lane = dict[tuple[bool, bool], list[_Waiting]]  # (borrowing, preemptible) -> a heap of classes
_Entry = tuple[Standing, int, str, PolicyId, int]  # standing, 7 first queued, 8 id; then whose lane, and its edition


class Lanes:
    """What is left to consider in one pass over a pool.

    During a pass usage only grows, so that a class can only fall from entitled to borrowing: it changes its lane when
    its turn comes, and a grant costs the same however many classes the policy has.
    """

    def __init__(self, pool: PoolBooks, queue: Queue) -> None:
        self._pool = pool
        self._queue = queue
        self._entries: list[_Entry] = []
        self._lanes: dict[PolicyId, _Lane] = {}
        self._editions: dict[PolicyId, int] = {}
        self._numbers = 0
        self._add(queue.classes_in(pool.pool.id))
        if queue.claimants:
            self._add(_claimants_elsewhere(pool, queue))
        for key in self._lanes:
            self._rank(pool.policies[key])

    def _add(self, waiting: Mapping[PolicyId, Iterable[RequestClass]]) -> None:
        for key, classes in waiting.items():
            with_members = [
                home for home in classes if home.members
            ]  # that of a claimant may have no other, nor rights
            if with_members:
                self._lanes.setdefault(key, {})
                for home in with_members:
                    self._join(self._pool.policies[key], home)

    def _join(self, policy: PolicyBooks, home: RequestClass) -> None:
        """Put a class into the lane of its policy where it belongs."""
        head = home.first() or self._queue.head(home)
        if head is None:
            return
        self._numbers += 1
        waiting = (home.place, self._numbers, home, head)
        key = (not is_entitled(policy, home.demand.total, home.preemptible), home.preemptible)
        lane = self._lanes[policy.policy.id].setdefault(key, [])
        heappush(lane, waiting)

    def _rank(self, policy: PolicyBooks) -> None:
        """Enter the policy's lanes anew: its share, or who heads them, has changed."""
        key = policy.policy.id
        edition = self._editions[key] = self._editions.get(key, 0) + 1
        priority = -policy.policy.priority
        entries = self._entries
        for (borrowing, preemptible), lane in self._lanes[key].items():
            if lane:
                share = fair_share(self._pool, policy) if borrowing else 0
                (_, queued_at, request), _, _, _ = lane[0]
                heappush(entries, ((borrowing, priority, preemptible, share), queued_at, request, key, edition))

    def next(self) -> Turn | None:
        """The next class in order with its head, or None when the pass is over.

        The class is taken out of the pass; after a grant `keep` puts it back.
        """
        entries, editions = self._entries, self._editions
        while entries:
            placed, _, _, key, edition = heappop(entries)
            if editions[key] != edition:
                continue
            policy = self._pool.policies[key]
            lane = self._lanes[key][placed[0], placed[2]]
            _, _, home, head = heappop(lane)
            fell = not placed[0] and not is_entitled(policy, home.demand.total, home.preemptible)
            if fell or head.id not in home.members:  # it belongs elsewhere, or left through another pool
                self._join(policy, home)
                self._rank(policy)
                continue
            if lane:
                _, queued_at, request = lane[0][0]
                heappush(entries, (placed, queued_at, request, key, edition))
            return Turn(policy, home, head)
        return None

    def keep(self, turn: Turn) -> None:
        """Consider the class again in this pass: its head has gone and others may follow."""
        self._join(turn.policy, turn.home)
        self._rank(turn.policy)


def _claimants_elsewhere(pool: PoolBooks, queue: Queue) -> dict[PolicyId, list[RequestClass]]:
    """Requests that evictions in other pools are under way for, each as a class of its own: only there do they come
    before all others; here they stand where they would without."""
    found: dict[PolicyId, list[RequestClass]] = {}
    for request in queue.claimants.values():
        home = queue.home(request.id)
        if home is None or request.id in pool.claims:
            continue
        alone = RequestClass(home.key)  # one for all of its candidates here: granted through one, it has left them all
        alone.add(request)
        for candidate in home.key.candidates:
            if candidate.pool == pool.pool.id:
                found.setdefault(candidate.policy, []).append(alone)
    return found

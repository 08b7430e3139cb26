"""A pool's order of service as a pass goes through it (S23): classes by standing, re-ranked as grants change shares.

One lane per policy and standing. A lane orders its classes by criteria 6 to 8 inside the policy; lanes are compared by
criteria 2 to 5 and then by the heads' 7 and 8, since a request's own priority never counts against another policy.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import NamedTuple

from fairpool.core.books import PoolBooks
from fairpool.core.ids import PolicyId
from fairpool.core.ordering import Standing, standing
from fairpool.core.queue import Queue
from fairpool.core.requests import Request
from fairpool.core.shares import PolicyBooks
from fairpool.core.waiting import Place, RequestClass, place_of


class Turn(NamedTuple):
    """Whose turn it is."""

    policy: PolicyBooks
    home: RequestClass
    request: Request


_Entry = tuple[Standing, int, str, PolicyId, int]  # standing, 7 first queued, 8 id; then whose lane, and its edition


class Lanes:
    """What is left to consider in one pass over a pool."""

    def __init__(self, pool: PoolBooks, queue: Queue) -> None:
        self._pool = pool
        self._queue = queue
        self._entries: list[_Entry] = []
        self._lanes: dict[tuple[PolicyId, Standing], list[tuple[Place, int, RequestClass]]] = {}
        self._editions: dict[PolicyId, int] = {}
        self._left: dict[PolicyId, dict[int, RequestClass]] = {}
        for policy in pool.policies.values():
            classes = queue.classes_of(policy.policy.id)
            if classes:
                self._left[policy.policy.id] = dict(enumerate(classes))
                self.rank_again(policy)

    def rank_again(self, policy: PolicyBooks) -> None:
        """The policy's usage changed: rank what is left of it anew."""
        key = policy.policy.id
        left = self._left.get(key)
        if not left:
            return
        edition = self._editions[key] = self._editions.get(key, 0) + 1
        lanes: dict[Standing, list[tuple[Place, int, RequestClass]]] = {}
        for index, home in list(left.items()):
            head = self._queue.head(home)
            if head is None:
                del left[index]
                continue
            placed = standing(self._pool, policy, home.demand.total, home.preemptible)
            heappush(lanes.setdefault(placed, []), (place_of(head), index, home))
        for placed, lane in lanes.items():
            self._lanes[key, placed] = lane
            self._push(key, placed, edition)

    def _push(self, policy: PolicyId, placed: Standing, edition: int) -> None:
        lane = self._lanes[policy, placed]
        if lane:
            (_, queued_at, request), _, _ = lane[0]
            heappush(self._entries, (placed, queued_at, request, policy, edition))

    def next(self) -> Turn | None:
        """The next class in order with its head, or None when the pass is over. The class is taken out: give it back
        with `rank_again` after a grant, which `keep` prepares."""
        while self._entries:
            placed, _, request_id, policy, edition = heappop(self._entries)
            if self._editions[policy] != edition:
                continue
            _, index, home = heappop(self._lanes[policy, placed])
            head = self._queue.head(home)
            if head is None or head.id != request_id:  # it left through another pool
                if head is not None:
                    heappush(self._lanes[policy, placed], (place_of(head), index, home))
                else:
                    self._left[policy].pop(index, None)
                self._push(policy, placed, edition)
                continue
            self._left[policy].pop(index, None)
            self._push(policy, placed, edition)
            return Turn(self._pool.policies[policy], home, head)
        return None

    def keep(self, turn: Turn) -> None:
        """Consider the class again in this pass: its head has gone, others may follow."""
        left = self._left[turn.policy.policy.id]
        left[max(left, default=-1) + 1] = turn.home

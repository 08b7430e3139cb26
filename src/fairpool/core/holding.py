"""Capacity held for the first blocked request of a pool, so that being overtaken has an end (S25).

Two ways to know what to hold. Where running work has declared its run time, we look ahead to the moment at which enough
of it will have ended (EASY backfill): the request takes its place then, and work behind it may use whatever is left
over beside that, or anything at all when it ends before. Where that is unknown, everything free that the request could
use is held, on the nodes where it lacks least.
"""

from __future__ import annotations

from heapq import heapify, heappop

from fairpool.core.accounts import PolicyBooks
from fairpool.core.amounts import GPU, WHOLE, Amounts, get, of
from fairpool.core.books import PoolBooks
from fairpool.core.feasibility import amounts_fit_after
from fairpool.core.ids import SECOND, Instant
from fairpool.core.node_books import NodeBooks
from fairpool.core.requests import Demand, PartPlacement, Request

Room = tuple[Demand, tuple[PartPlacement, ...]]


class Held:
    """What is held for `request` in one pool during one pass; entered in the `after` book while it is laid."""

    def __init__(self, pool: PoolBooks, policy: PolicyBooks, request: Request, now: Instant) -> None:
        self.pool = pool
        self.policy = policy
        self.request = request
        self.complete_at: Instant | None = None  # when the held capacity will be complete, where that is known
        self._shifts: list[tuple[Room, int]] = []
        self._now = now
        self.lay()

    def lay(self) -> None:
        """Enter it in the book, as things are at this moment."""
        if not self._look_ahead():
            self._hold_what_is_free()

    def lift(self) -> None:
        """Take it out of the book."""
        for (demand, places), sign in reversed(self._shifts):
            self.pool.shift_room(demand, places, 0, -sign)
        self._shifts.clear()

    def lay_free_only(self) -> None:
        """Enter only what is free at this moment: evictions may not reckon with work that will end by itself."""
        self._hold_what_is_free()

    def lets_pass(self, request: Request) -> bool:
        """Whether the request will have ended before the held capacity could be complete."""
        if self.complete_at is None or request.max_runtime_s is None:
            return False
        return self._now + request.max_runtime_s * SECOND <= self.complete_at

    def _shift(self, demand: Demand, places: tuple[PartPlacement, ...], sign: int) -> None:
        self.pool.shift_room(demand, places, 0, sign)
        self._shifts.append(((demand, places), sign))

    def _look_ahead(self) -> bool:
        """Take out of the book, one by one, what will have ended, until the request fits: that moment is when."""
        pool, demand = self.pool, self.request.demand
        self.complete_at = None
        if not pool.ends and not pool.leaving:
            return False
        leaving = (held.eviction.deadline_at for held in pool.allocations.values() if held.eviction)
        complete_at = max(leaving, default=self._now) if pool.leaving else self._now
        ending = [
            (max(at, self._now), held.sequence, held)
            for request, at in pool.ends.items()
            if not (held := pool.allocations[request]).eviction
        ]
        heapify(ending)
        while not self._fits():
            if not ending:
                self.lift()
                return False
            at, _, held = heappop(ending)
            self._shift(held.request.demand, held.parts, -1)
            complete_at = max(complete_at, at)
        places = pool.nodes.place_after(demand.parts)
        assert places is not None
        self._shift(demand, places, 1)
        self.complete_at = Instant(complete_at)
        return True

    def _fits(self) -> bool:
        demand = self.request.demand
        return amounts_fit_after(self.pool, self.policy, demand.total) and self.pool.nodes.has_place_after(demand.parts)

    def _hold_what_is_free(self) -> None:
        self.complete_at = None
        nodes = self.pool.nodes
        for part in sorted(self.request.demand.parts, key=lambda part: (-get(part, GPU), part)):
            node = nodes.nodes[0] if nodes.flat else self._node_that_lacks_least(part)
            if node is not None:
                held, devices = self._free_of(node, part)
                self._shift(Demand((held,)), (PartPlacement(node.name, devices),), 1)

    def _node_that_lacks_least(self, part: Amounts) -> NodeBooks | None:
        # 1 GPUs that are missing, 2 other keys that are missing, in order of the keys, 3 the node's place in the pool
        gpus = get(part, GPU)
        best: tuple[int, list[int], int] | None = None
        for node, declared in zip(self.pool.nodes.nodes, self._capacities(), strict=True):
            if node.ready and all(value <= get(declared, key) for key, value in part if key in self.pool.nodes.keys):
                missing = [max(0, value - node.free_after[key]) for key, value in part if key in node.free_after]
                lack = (max(0, gpus - node.devices.free_after * WHOLE), missing, node.index)
                best = lack if best is None else min(best, lack)
        return None if best is None else self.pool.nodes.nodes[best[2]]

    def _capacities(self) -> list[Amounts]:
        by_name = {node.name: node.capacity for node in self.pool.pool.nodes}
        return [by_name[node.name] for node in self.pool.nodes.nodes]

    def _free_of(self, node: NodeBooks, part: Amounts) -> tuple[Amounts, tuple[tuple[int, int], ...]]:
        """What of the part is free on the node, and which devices."""
        held: dict[str, int] = {}
        for key, value in part:
            free = node.free_after.get(key, self.pool.free_after.get(key, value))
            held[key] = max(0, min(value, free, self.pool.free_after.get(key, value)))
        gpus = get(part, GPU)
        whole = min(gpus // WHOLE, node.devices.free_after, held.get(GPU, 0) // WHOLE) * WHOLE
        if gpus:
            held[GPU] = whole
        devices = node.devices.choose_after(whole) if whole else ()
        return of(held), devices

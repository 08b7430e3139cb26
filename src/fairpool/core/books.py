"""Both books of one pool: free amounts, nodes, and per policy what it uses (node_books.py says what the books are)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from fairpool.core.accounts import Account, PolicyBooks
from fairpool.core.amounts import of, total
from fairpool.core.ids import SECOND, Instant, PolicyId, PoolId, RequestId
from fairpool.core.node_books import NodeBooks
from fairpool.core.placement import PoolNodes
from fairpool.core.plan import Claim
from fairpool.core.policies import Policy, Subject, SubjectKind
from fairpool.core.pools import Node, NodeState, Pool, device_count, healthy_capacity, nominal_capacity
from fairpool.core.requests import Allocation, Demand, PartPlacement, Request

RETIRED_PRIORITY = 1 << 62  # above every priority that a policy can have: only a reservation can call it in


class PoolBooks:
    """Everything about one pool that decisions look at. Changed only by `World`."""

    __slots__ = (
        "_empty",
        "allocations",
        "bounded",
        "capacity",
        "claims",
        "dedicated",
        "degraded",
        "ends",
        "evict_borrowers",
        "excused",
        "free_after",
        "free_now",
        "leaving",
        "nodes",
        "nominal",
        "policies",
        "pool",
    )

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.nominal = dict(nominal_capacity(pool))
        self.bounded = frozenset(self.nominal)
        self.capacity = dict.fromkeys(self.nominal, 0) | dict(healthy_capacity(pool))
        self.free_now = dict(self.capacity)
        self.free_after = dict(self.capacity)
        self.nodes = _nodes_of(pool)
        self._empty: PoolNodes | None = None
        self.policies: dict[PolicyId, PolicyBooks] = {}
        self.dedicated: tuple[PolicyBooks, ...] = ()
        self.allocations: dict[RequestId, Allocation] = {}
        self.claims: dict[RequestId, None] = {}  # requests for which something is kept here, oldest first
        self.leaving = 0  # how many allocations are preempting
        self.ends: dict[RequestId, Instant] = {}  # when running work of known length will have ended
        self.excused: dict[tuple[str, str], int] = {}  # usage that a falling bound left above it, for the audit
        self.evict_borrowers = False  # an operator asked for it (S9); done at the next decision
        self.degraded = False  # whether failing nodes leave less than the reservations promise (S6); the rules say

    def empty_nodes(self) -> PoolNodes:
        """Its nodes as they are when all are healthy and nothing runs: what could ever be (S16)."""
        if self._empty is None:
            ready = tuple(replace(node, state=NodeState.READY) for node in self.pool.nodes)
            self._empty = _nodes_of(replace(self.pool, nodes=ready))
        return self._empty

    def adopt(self, books: PolicyBooks) -> None:
        """Put a policy's books in place, with what already runs through it here."""
        old = self.policies.get(books.policy.id)
        for allocation in old.held_here() if old is not None else ():
            request, leaving = allocation.request, allocation.eviction is not None
            books.shift(request.demand.total, request.preemptible, 1, 0 if leaving else 1)
            books.add(allocation)
        self.policies[books.policy.id] = books
        self.dedicated = tuple(books for books in self.policies.values() if books.policy.dedicated)

    def drop_policy(self, policy: PolicyId) -> None:
        """Take a policy away; while work runs through it, books without rights stay behind to account for that."""
        old = self.policies[policy]
        if old.held_here():
            self.retire(policy, old.policy)
        else:
            del self.policies[policy]
            self.dedicated = tuple(books for books in self.policies.values() if books.policy.dedicated)

    def retire(self, policy: PolicyId, old: Policy | None) -> None:
        """Have books without rights in the policy's place."""
        stands_in = retired_policy(policy, self.pool, old)
        account = Account(stands_in, {self.pool.id: self.bounded}, self.capacity, retired=True)
        self.adopt(PolicyBooks(account, self.pool.id))

    def shift(
        self, policy: PolicyId, request: Request, places: tuple[PartPlacement, ...], now: int, after: int
    ) -> None:
        """Add (+1) or remove (-1) a request at its places in each book (0: leave that book alone)."""
        self.shift_room(request.demand, places, now, after)
        self.policies[policy].shift(request.demand.total, request.preemptible, now, after)

    def shift_sums_after(self, policy: PolicyId, request: Request, sign: int) -> None:
        """Add (+1) or remove (-1) a request in the sums of the `after` book alone: in a pool without nodes, to try."""
        free_after = self.free_after
        for key, value in request.demand.total:
            if key in free_after:
                free_after[key] -= value * sign
        self.policies[policy].shift(request.demand.total, request.preemptible, 0, sign)

    def shift_room(self, demand: Demand, places: tuple[PartPlacement, ...], now: int, after: int) -> None:
        """The same for the room alone, in nobody's name."""
        free_now, free_after = self.free_now, self.free_after
        nodes = self.nodes
        if nodes.flat:
            for key, value in demand.total:
                if key in free_now:
                    free_now[key] -= value * now
                    free_after[key] -= value * after
            nodes.shift_devices(places, now, after)
            return
        for place, part in zip(places, demand.parts, strict=True):
            node = nodes.shift(place, part, now, after)
            for key, value in part:
                if key in free_now and (key not in nodes.keys or (node is not None and node.ready)):
                    free_now[key] -= value * now
                    free_after[key] -= value * after

    def enter(self, allocation: Allocation) -> None:
        """Count an allocation; one whose policy is gone goes through books without rights."""
        assert allocation.policy is not None
        if allocation.policy not in self.policies:
            self.retire(allocation.policy, None)
        request, leaving = allocation.request, allocation.eviction is not None
        self.shift(allocation.policy, request, allocation.parts, 1, 0 if leaving else 1)
        self.policies[allocation.policy].add(allocation)
        self.nodes.expect(request.demand.parts, 1)
        self.allocations[request.id] = allocation
        self.leaving += leaving
        if request.max_runtime_s is not None:
            self.ends[request.id] = Instant(allocation.granted_at + request.max_runtime_s * SECOND)

    def leave(self, allocation: Allocation) -> None:
        """Count an allocation no more."""
        assert allocation.policy is not None
        request, leaving = allocation.request, allocation.eviction is not None
        self.shift(allocation.policy, request, allocation.parts, -1, 0 if leaving else -1)
        self.policies[allocation.policy].remove(allocation)
        self.nodes.expect(request.demand.parts, -1)
        del self.allocations[request.id]
        self.leaving -= leaving
        self.ends.pop(request.id, None)

    def forget_retired(self, policy: PolicyId) -> None:
        """Drop the books of a policy that was dropped before, once nothing runs through it."""
        books = self.policies[policy]
        if books.retired and not books.by_precedence:
            del self.policies[policy]

    def excuse(self) -> None:
        """Remember what already exceeds a bound that fell, so that the audit complains only when it grows."""
        self.excused.clear()
        for policy_id, books in self.policies.items():
            for key, value in books.used_now.items():
                self._excuse(f"limit {policy_id}", key, value)
                self._excuse(f"reserved {policy_id}", key, books.firm_now.get(key, 0))
            for key, value in books.here.items():
                self._excuse("capacity", key, value, add=True)
        for held in self.allocations.values():
            for place, part in zip(held.parts, held.request.demand.parts, strict=True):
                for key, value in part:
                    self._excuse(f"node {place.node}", key, value, add=True)

    def _excuse(self, bound: str, key: str, value: int, *, add: bool = False) -> None:
        self.excused[bound, key] = value + (self.excused.get((bound, key), 0) if add else 0)

    def post_claim(self, claim: Claim, request: Request, sign: int) -> None:
        """Keep (+1) or let go of (-1) what a claim keeps."""
        self.shift(claim.policy, request, claim.parts, 0, sign)
        if sign > 0:
            self.claims[claim.request] = None
        else:
            del self.claims[claim.request]

    def kept_for_others(self, policy: PolicyBooks, key: str) -> tuple[int, int]:
        """How much of `key` is dedicated to other policies and unused by them (S14), in each book."""
        now = after = 0
        for other in self.dedicated:
            if other is not policy:
                reserved = other.reserved.get(key, 0)
                now += max(0, reserved - other.used_now.get(key, 0))
                after += max(0, reserved - other.used_after.get(key, 0))
        return now, after

    def admits(self, components: Iterable[Subject]) -> bool:
        """Whether a request with these subjects can have candidates here at all (S13b)."""
        allowed = self.pool.components
        return not allowed or any(s.kind is SubjectKind.COMPONENT and s.name in allowed for s in components)


def open_account(books: Mapping[PoolId, PoolBooks], policy: Policy) -> None:
    """Put a policy's books in place in each of its pools, with what already runs through it there; what is kept for
    its requests has to be posted again."""
    ours = {pool: books[pool] for pool in policy.pools}
    metered: dict[PoolId | None, frozenset[str]] = {pool: each.bounded for pool, each in ours.items()}
    capacity = ours[policy.pool].capacity
    if len(ours) > 1:
        capacity = dict(total(of(each.capacity) for each in ours.values()))
    account = Account(policy, metered, capacity)
    for pool, each in ours.items():
        each.adopt(PolicyBooks(account, pool))


def matures_at(allocation: Allocation, policy: Policy) -> Instant:
    """From when on the allocation may be evicted (S30)."""
    return Instant(allocation.granted_at + policy.min_runtime_s * SECOND)


def retired_policy(policy: PolicyId, pool: Pool, old: Policy | None) -> Policy:
    """What stands for a policy that was dropped while work ran through it: nothing is reserved for it any more, so that
    others' reservations may reclaim what it uses; no mere priority can. Its grace period is the default: a world that
    is restored knows of the dropped policy no more than its id, and must decide the same (INV-9)."""
    subject = old.subject if old else Subject(SubjectKind.COMPONENT, "unknown")
    return Policy(id=policy, pool=pool.id, subject=subject, priority=RETIRED_PRIORITY)


def _nodes_of(pool: Pool) -> PoolNodes:
    if pool.nodes:
        ordered: list[Node] = sorted(pool.nodes, key=lambda node: node.name)
        return PoolNodes([NodeBooks.of_node(n, i) for i, n in enumerate(ordered)], flat=False, placement=pool.placement)
    bucket = NodeBooks("", 0, (), device_count(pool.capacity), ready=True)
    return PoolNodes([bucket], flat=True, placement=pool.placement)

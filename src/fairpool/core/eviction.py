"""Whom to evict so that a request can start: as few as will do, in the right order, or nobody (S27 to S30).

Everything is tried on the `after` book: a victim is taken out of it, the room looked at, and the book put back. Taking
a borrower away changes nobody else's share, since it took nothing from the reservation; so the lists of borrowers are
judged once. Sums rule most attempts out before anything is moved; and where sums are all that matters, devices stay
where they are until the victims are chosen.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from fairpool.core.accounts import PolicyBooks, held_on_nodes
from fairpool.core.amounts import Amounts, total
from fairpool.core.books import PoolBooks, matures_at
from fairpool.core.feasibility import amounts_fit_after
from fairpool.core.ids import Instant, RequestId
from fairpool.core.node_books import NodeBooks
from fairpool.core.ordering import VictimRank, victim_rank
from fairpool.core.pools import PoolState
from fairpool.core.requests import Allocation, Because, PartPlacement, Request
from fairpool.core.shares import fits_reservation


@dataclass(frozen=True, slots=True)
class Victims:
    """Whom to evict for a request, why each, and where the request will lie."""

    chosen: tuple[tuple[Allocation, Because], ...]
    parts: tuple[PartPlacement, ...]


@dataclass(frozen=True, slots=True)
class NoVictims:
    """Nobody is to be evicted for the request.

    matures_at: by time alone that may change then (S30).
    """

    matures_at: Instant | None = None


def may_find_victims(pool: PoolBooks, policy: PolicyBooks, request: Request, lowest_priority: int | None) -> bool:
    """A quick look that rules most searches out.

    lowest_priority: that of the policies with preemptible work here, None where there is none.
    """
    if lowest_priority is None or pool.pool.state is PoolState.DRAINING:
        return False
    if request.preemptible and lowest_priority < policy.policy.priority:
        return True
    if fits_reservation(policy.metered_after, request.demand.total, policy):
        return True
    return policy.may_give_way_to(request.preemptible, request.priority)


def find_victims(pool: PoolBooks, policy: PolicyBooks, request: Request, now: Instant) -> Victims | NoVictims:
    """The victims for `request` through `policy`. The books are as before when it returns."""
    search = _Search(pool, policy, request, now)
    try:
        return search.run()
    finally:
        search.put_all_back()


class _Search:
    def __init__(self, pool: PoolBooks, policy: PolicyBooks, request: Request, now: Instant) -> None:
        self.pool = pool
        self.policy = policy
        self.request = request
        self.amounts = request.demand.total
        self.now = now
        self.matures_at: Instant | None = None
        giving = policy.gives_way_to(self.amounts, request.preemptible, request.priority)
        self.own = self._mature(giving, policy)
        self.others = [
            (other, borrowers)
            for other in (pool.policies[key] for key in sorted(pool.policies))
            if other is not policy and (borrowers := self._mature(other.borrowers(), other))
        ]
        self.out: dict[RequestId, Allocation] = {}
        self.only_by_reclaim = {other.policy.id for other, _ in self.others if not self._outranks(other)}
        self.out_by_reclaim = 0  # how many are out whom only a reservation gives the right to evict
        self.node_looked_at = False
        self.by_sums = pool.nodes.sums_say_all(request.demand.parts)

    def _mature(self, allocations: Iterable[Allocation], policy: PolicyBooks) -> list[Allocation]:
        """Without those that are too young to be evicted (S30)."""
        if not policy.policy.min_runtime_s:
            return list(allocations)
        mature = []
        for allocation in allocations:
            at = matures_at(allocation, policy.policy)
            if at <= self.now:
                mature.append(allocation)
            elif self.matures_at is None or at < self.matures_at:
                self.matures_at = at
        return mature

    def run(self) -> Victims | NoVictims:
        if self._has_room():
            return NoVictims()  # what it needs is being let go of already: it waits for that, at nobody's cost
        count = self._least_own_work()
        if count is None:
            return NoVictims(self.matures_at)
        for allocation in self.own[:count]:
            self._take(allocation)
        chosen = [] if self._has_room() else self._take_others()
        kept = self._spare(self.own[:count], chosen)
        parts = self._place()
        assert parts is not None, "the victims were chosen to make room"
        reclaims = self._may_reclaim()
        own = {allocation.request.id for allocation in self.own[:count]}
        return Victims(
            tuple((a, Because.RECLAIM if reclaims and a.request.id not in own else Because.PRIORITY) for a in kept),
            parts,
        )

    def _least_own_work(self) -> int | None:
        """How many of its own, the first to give way first, must go at the least; None where even all would not do."""
        if self._enough_with(0):
            return 0
        if not self.own or not self._enough_with(len(self.own)):
            return None
        too_few, enough = 0, len(self.own)
        while enough - too_few > 1:  # more own work gone never means less room or fewer rights
            middle = (too_few + enough) // 2
            if self._enough_with(middle):
                enough = middle
            else:
                too_few = middle
        return enough

    def _enough_with(self, count: int) -> bool:
        own = self.own[:count]
        gone = dict(total(allocation.request.demand.total for allocation in own))
        givers = self._givers(gone)
        allowed = self._sums_allow(gone, givers)
        # Where sums say all, that bound is exact unless somebody is too young or has a carve-out.
        if not allowed or (self.by_sums and self.matures_at is None and not self.pool.dedicated):
            return allowed
        promising = self._promising_nodes(own, givers)
        if promising is None:
            return False
        # What one node holds is usually enough; who lies elsewhere is then left where it is.
        is_single = len(promising) == len(self.request.demand.parts) == 1
        return (is_single and self._is_room_without(own, promising)) or self._is_room_without(own, None)

    def _is_room_without(self, own: list[Allocation], nodes: frozenset[str] | None) -> bool:
        """Whether there is room once that own work, and all others that it may take from, are gone. nodes: of the
        others only those that lie there."""
        for allocation in own:
            self._take(allocation)
        for other, borrowers in self.others:
            if self._may_take_from(other):
                for allocation in borrowers:
                    if nodes is None or any(place.node in nodes for place in allocation.parts):
                        self._take(allocation)
        found = self._has_room()
        self.put_all_back()
        return found

    def _givers(self, gone: dict[str, int]) -> list[PolicyBooks]:
        """The others that it may take from once so much of its own is gone."""
        policy = self.policy
        reclaims = all(
            policy.metered_after.get(key, 0) - gone.get(key, 0) + value <= policy.reserved.get(key, 0)
            for key, value in self.amounts
            if key in policy.bounded
        )
        return [other for other, _ in self.others if reclaims or self._outranks(other)]

    def _sums_allow(self, gone: dict[str, int], givers: list[PolicyBooks]) -> bool:
        """Whether so much of its own and all borrowers of the givers hold enough: no more than a bound, since nodes,
        carve-outs and those who are too young are left out of it."""
        pool, policy = self.pool, self.policy
        giving = [other.account.borrowed(other.pool) for other in givers]
        for key, value in self.amounts:
            limit = policy.limit.get(key)
            if limit is not None and policy.used_after.get(key, 0) - gone.get(key, 0) + value > limit:
                return False
            if key in pool.free_after:
                free = pool.free_after[key] + gone.get(key, 0)
                if value > free + sum([borrowed.get(key, 0) for borrowed in giving]):
                    return False
        return True

    def _promising_nodes(self, own: list[Allocation], givers: list[PolicyBooks]) -> frozenset[str] | None:
        """For each part the first node on which they hold enough: a bound, too, since devices are left out of it. None
        where a part has no such node, which spares taking everybody out to see the same; none where there are no nodes.
        """
        nodes = self.pool.nodes
        if nodes.flat:
            return frozenset()
        giving = [held_on_nodes(own), *[other.account.borrowed_on_nodes(other.pool) for other in givers]]

        def may_take(node: NodeBooks, part: Amounts) -> bool:
            gone = [held[node.name] for held in giving if node.name in held]
            for key, value in part:
                free = node.free_after.get(key)
                if free is not None and value > free + sum([held.get(key, 0) for held in gone]):
                    return False
            return True

        found = set[str]()
        for part in set(self.request.demand.parts):
            first = next((node.name for node in nodes.nodes if node.ready and may_take(node, part)), None)
            if first is None:
                return None
            found.add(first)
        return frozenset(found)

    def _take_others(self) -> list[Allocation]:
        """Take from the others in the order of S29 until there is room; who was taken, in that order."""
        waiting: list[tuple[VictimRank, int]] = []
        left = [list(borrowers) for _, borrowers in self.others]
        for index, (other, _) in enumerate(self.others):
            if self._may_take_from(other):
                waiting.append((victim_rank(other, left[index][-1]), index))
        heapify(waiting)
        taken = []
        while waiting:
            _, index = heappop(waiting)
            victim = left[index].pop()
            self._take(victim)
            taken.append(victim)
            if self._room_made_by(victim):
                break
            if left[index]:
                heappush(waiting, (victim_rank(self.others[index][0], left[index][-1]), index))
        return taken

    def _spare(self, own: list[Allocation], others: list[Allocation]) -> list[Allocation]:
        """Put back whom the request does not need, without spoiling its right to the rest: own work first, the most
        important first, then others, the last chosen first. Who remains, in the order in which they were chosen."""
        self._spare_far_ones(others)
        for victim in [*reversed(own), *reversed(others)]:
            if victim.request.id in self.out:
                self._put_back(victim)
                if not (self._still_right() and self._has_room()):
                    self._take(victim)
        return [victim for victim in [*own, *others] if victim.request.id in self.out]

    def _spare_far_ones(self, others: list[Allocation]) -> None:
        """At once, those on other nodes than the one found, where that is allowed: the usual case among many nodes."""
        if self.pool.nodes.flat or len(self.request.demand.parts) > 1:
            return
        parts = self.pool.nodes.place_after(self.request.demand.parts)
        assert parts is not None
        far = [victim for victim in others if all(part.node != parts[0].node for part in victim.parts)]
        for victim in far:
            self._put_back(victim)
        if not (self._still_right() and self._has_room()):
            for victim in far:
                self._take(victim)

    def _still_right(self) -> bool:
        """Whether everybody who is out may be evicted, given the own work that is out."""
        return not self.out_by_reclaim or self._may_reclaim()

    def _may_take_from(self, other: PolicyBooks) -> bool:
        return self._may_reclaim() or self._outranks(other)

    def _may_reclaim(self) -> bool:
        """S28: its policy's whole usage, with it and without own work that gives way, stays inside the reservation."""
        return fits_reservation(self.policy.metered_after, self.amounts, self.policy)

    def _outranks(self, other: PolicyBooks) -> bool:
        return self.request.preemptible and other.policy.priority < self.policy.policy.priority

    def _has_room(self) -> bool:
        fits = amounts_fit_after(self.pool, self.policy, self.amounts)
        return fits and (self.by_sums or self.pool.nodes.has_place_after(self.request.demand.parts))

    def _place(self) -> tuple[PartPlacement, ...] | None:
        """Where the request will lie once all who are out are gone."""
        nodes, out = self.pool.nodes, list(self.out.values()) if self.by_sums else []
        for victim in out:
            nodes.shift_devices(victim.parts, 0, -1)
        found = nodes.place_after(self.request.demand.parts)
        for victim in out:
            nodes.shift_devices(victim.parts, 0, 1)
        return found

    def _room_made_by(self, victim: Allocation) -> bool:
        """Whether there is room now. Once the amounts have sufficed, only the victim's own nodes can be news."""
        if not amounts_fit_after(self.pool, self.policy, self.amounts):
            return False
        parts = self.request.demand.parts
        if not self.node_looked_at or len(parts) > 1 or self.pool.nodes.flat:
            self.node_looked_at = True
            return self.by_sums or self.pool.nodes.has_place_after(parts)
        near = {part.node for part in victim.parts}
        return any(self.pool.nodes.has_place_after(parts, node) for node in near)

    def _take(self, victim: Allocation) -> None:
        self._shift(victim, -1)
        self.out[victim.request.id] = victim

    def _put_back(self, victim: Allocation) -> None:
        self._shift(victim, 1)
        del self.out[victim.request.id]

    def _shift(self, victim: Allocation, sign: int) -> None:
        assert victim.policy is not None
        if self.by_sums:
            self.pool.shift_sums_after(victim.policy, victim.request, sign)
        else:
            self.pool.shift(victim.policy, victim.request, victim.parts, 0, sign)
        if victim.policy in self.only_by_reclaim:
            self.out_by_reclaim -= sign

    def put_all_back(self) -> None:
        """Have the books as they were."""
        for victim in list(self.out.values()):
            self._put_back(victim)


def borrowers_over_capacity(pool: PoolBooks) -> tuple[Allocation, ...]:
    """Whom an operator's wish evicts so that the pool fits its capacity again (S9): in the order of S29, no more than
    it takes, and as far as borrowers go."""
    left = {key: list(books.borrowers()) for key, books in sorted(pool.policies.items())}
    out: list[Allocation] = []

    def shift(victim: Allocation, sign: int) -> None:
        assert victim.policy is not None
        pool.shift(victim.policy, victim.request, victim.parts, 0, sign)

    def relieves(victim: Allocation) -> bool:
        return any(pool.free_after.get(key, 0) < 0 for key, _ in victim.request.demand.total)

    before = {key for key, free in pool.free_after.items() if free < 0}
    while any(free < 0 for free in pool.free_after.values()):
        useful = [(key, held[-1]) for key, held in left.items() if held]
        if not useful:
            break
        key, victim = min(useful, key=lambda pair: victim_rank(pool.policies[pair[0]], pair[1]))
        left[key].pop()
        if relieves(victim):
            shift(victim, -1)
            out.append(victim)
    for victim in list(reversed(out)):
        over = {key for key, free in pool.free_after.items() if free < 0}
        shift(victim, 1)
        if {key for key, free in pool.free_after.items() if free < 0 and key in before} - over:
            shift(victim, -1)
        else:
            out.remove(victim)
    for victim in out:
        shift(victim, 1)
    return tuple(out)

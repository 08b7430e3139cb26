"""What one policy uses in all of its pools together, and what of it lies inside its reservation (S19, S20)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping

from fairpool.core.amounts import Amounts, total
from fairpool.core.ids import PoolId
from fairpool.core.policies import Policy
from fairpool.core.precedence import Metered, Precedence, borrowing_of, precedence, take_shares
from fairpool.core.requests import Allocation, Request


class Account:
    """One policy's usage, in both books (see node_books.py), and its allocations in their precedence.

    used: all that runs, every key; what limits are about. metered: of that, the keys that the pool meters where it
    runs; what reservations are about. firm: of the metered, what is not preemptible. With one pool, used and metered
    are one, since only metered keys are ever looked at.
    """

    __slots__ = (
        "_borrowed",
        "_borrowed_on_nodes",
        "_borrowers",
        "_keys",
        "bounded",
        "bounded_in",
        "by_precedence",
        "capacity",
        "firm_after",
        "firm_now",
        "leaving",
        "limit",
        "metered_after",
        "metered_now",
        "policy",
        "reserved",
        "retired",
        "used_after",
        "used_now",
    )

    def __init__(
        self,
        policy: Policy,
        bounded_in: Metered,
        capacity: dict[str, int],
        *,
        retired: bool = False,
    ) -> None:
        self.policy = policy
        self.retired = retired  # its policy was dropped while work ran through it: it offers nothing any more
        self.bounded_in = bounded_in  # the metered keys of each of its pools
        self.bounded = frozenset[str]().union(*bounded_in.values())
        self.capacity = capacity  # of its healthy nodes, in all of its pools together
        self.reserved = {key: value for key, value in policy.reserved if key in self.bounded}
        self.limit = dict(policy.limit)
        self.used_now: dict[str, int] = {}
        self.used_after: dict[str, int] = {}
        self.metered_now = self.used_now if len(bounded_in) == 1 else {}
        self.metered_after = self.used_after if len(bounded_in) == 1 else {}
        self.firm_now: dict[str, int] = {}
        self.firm_after: dict[str, int] = {}
        self.by_precedence: list[Allocation] = []  # unreleased ones, evictions under way included
        self._keys: list[Precedence] = []
        self.leaving = 0  # how many of them are preempting
        self._borrowers: dict[PoolId | None, tuple[Allocation, ...]] | None = None
        self._borrowed: dict[PoolId, dict[str, int]] = {}  # the sums over `borrowers`, as far as they were asked for
        self._borrowed_on_nodes: dict[PoolId, Mapping[str, Mapping[str, int]]] = {}  # by node

    @property
    def pools(self) -> tuple[PoolId, ...]:
        """The pools that it is about."""
        return tuple(pool for pool in self.bounded_in if pool is not None)

    def add(self, allocation: Allocation) -> None:
        """List an allocation (its usage is shifted apart)."""
        key = precedence(allocation)
        at = bisect_left(self._keys, key)
        self._keys.insert(at, key)
        self.by_precedence.insert(at, allocation)
        self._count(allocation, 1)

    def remove(self, allocation: Allocation) -> None:
        """Take an allocation off the list."""
        at = bisect_left(self._keys, precedence(allocation))
        assert self.by_precedence[at].request.id == allocation.request.id
        del self._keys[at], self.by_precedence[at]
        self._count(allocation, -1)

    def _count(self, allocation: Allocation, by: int) -> None:
        self._borrowers = None
        self._borrowed.clear()
        self._borrowed_on_nodes.clear()
        if allocation.eviction:
            self.leaving += by

    def borrowing(self) -> list[Allocation]:
        """The allocations that borrow as things are (S20), in precedence."""
        return borrowing_of(self.by_precedence, self.reserved, self.bounded_in)

    def borrowers(self, pool: PoolId) -> tuple[Allocation, ...]:
        """The allocations in that pool that may be evicted for others (S27), in precedence: preemptible, not leaving,
        borrowing.

        With evictions under way an allocation must borrow both as things are and as they will be: what leaves still
        counts today, yet must not make somebody look like a borrower who is in share as soon as it has left (S31).
        """
        if self._borrowers is None:
            self._borrowers = self._judge_borrowers()
        return self._borrowers.get(pool, ())

    def borrowed(self, pool: PoolId) -> dict[str, int]:
        """What the borrowers in that pool hold together."""
        found = self._borrowed.get(pool)
        if found is None:
            held = [allocation.request.demand.total for allocation in self.borrowers(pool)]
            found = self._borrowed[pool] = dict(total(held))
        return found

    def borrowed_on_nodes(self, pool: PoolId) -> Mapping[str, Mapping[str, int]]:
        """The same for each node of the pool."""
        found = self._borrowed_on_nodes.get(pool)
        if found is None:
            found = self._borrowed_on_nodes[pool] = held_on_nodes(self.borrowers(pool))
        return found

    def staying(self, prefix: tuple[bool, int]) -> tuple[list[Allocation], int]:
        """The allocations that are not leaving, in precedence; and how many of them come before that place in it."""
        if not self.leaving:
            return self.by_precedence, bisect_left(self._keys, prefix)
        staying = [allocation for allocation in self.by_precedence if not allocation.eviction]
        return staying, bisect_left([precedence(allocation) for allocation in staying], prefix)

    def _judge_borrowers(self) -> dict[PoolId | None, tuple[Allocation, ...]]:
        if self.is_inside_reservation():
            return {}
        borrowing = self.borrowing()
        if self.leaving:
            staying = [allocation for allocation in self.by_precedence if not allocation.eviction]
            later = {a.request.id for a in borrowing_of(staying, self.reserved, self.bounded_in)}
            borrowing = [a for a in borrowing if not a.eviction and a.request.id in later]
        evictable = [a for a in borrowing if a.request.preemptible]
        if len(self.bounded_in) == 1:
            return dict.fromkeys(self.bounded_in, tuple(evictable))
        return {pool: tuple(a for a in evictable if a.pool == pool) for pool in self.bounded_in}

    def is_inside_reservation(self) -> bool:
        """Whether all that will stay is inside the reservation, so that nothing of it borrows."""
        return _is_inside(self.metered_after, self.reserved, self.bounded)

    def is_inside_reservation_now(self) -> bool:
        """The same of all that there is, evictions under way included."""
        return _is_inside(self.metered_now, self.reserved, self.bounded)


def held_on_nodes(allocations: Iterable[Allocation]) -> dict[str, dict[str, int]]:
    """What the allocations hold together on each node, by its name."""
    held: dict[str, dict[str, int]] = {}
    for allocation in allocations:
        for place, part in zip(allocation.parts, allocation.request.demand.parts, strict=True):
            on_node = held.setdefault(place.node, {})
            for key, value in part:
                on_node[key] = on_node.get(key, 0) + value
    return held


def _is_inside(metered: dict[str, int], reserved: dict[str, int], bounded: frozenset[str]) -> bool:
    return all(value <= reserved.get(key, 0) for key, value in metered.items() if key in bounded)


class PolicyBooks:
    """A policy as one of its pools sees it: the account, and what of it lies in this pool.

    The counts are those of the account, the very same dictionaries.
    """

    __slots__ = (
        "_lowest_priority",
        "account",
        "bounded",
        "by_precedence",
        "firm_after",
        "firm_now",
        "here",
        "limit",
        "metered_after",
        "metered_now",
        "policy",
        "pool",
        "priorities",
        "reserved",
        "retired",
        "used_after",
        "used_now",
    )

    def __init__(self, account: Account, pool: PoolId) -> None:
        self.account = account
        self.pool = pool
        self.policy = account.policy
        self.retired = account.retired
        self.bounded = account.bounded_in[pool]  # the pool's metered keys
        self.reserved = account.reserved
        self.limit = account.limit
        self.used_now, self.used_after = account.used_now, account.used_after
        self.metered_now, self.metered_after = account.metered_now, account.metered_after
        self.firm_now, self.firm_after = account.firm_now, account.firm_after
        self.by_precedence = account.by_precedence
        self.here = self.used_now if len(account.bounded_in) == 1 else dict[str, int]()  # what is in use in this pool
        self.priorities: dict[int, int] = {}  # request priority -> how many preemptible ones here that are not leaving
        self._lowest_priority: int | None = None  # the lowest of these; None where it has to be looked up

    def shift(self, amounts: Amounts, preemptible: bool, now: int, after: int) -> None:
        """Add (+1) or remove (-1) usage in each book."""
        used_now, used_after = self.used_now, self.used_after
        for key, value in amounts:
            used_now[key] = used_now.get(key, 0) + value * now
            used_after[key] = used_after.get(key, 0) + value * after
        if self.metered_now is not used_now:
            self._shift_apart(amounts, now, after)
        if not preemptible:
            for key, value in amounts:
                if key in self.bounded:
                    self.firm_now[key] = self.firm_now.get(key, 0) + value * now
                    self.firm_after[key] = self.firm_after.get(key, 0) + value * after

    def _shift_apart(self, amounts: Amounts, now: int, after: int) -> None:
        for key, value in amounts:
            self.here[key] = self.here.get(key, 0) + value * now
            if key in self.bounded:
                self.metered_now[key] = self.metered_now.get(key, 0) + value * now
                self.metered_after[key] = self.metered_after.get(key, 0) + value * after

    def add(self, allocation: Allocation) -> None:
        """List an allocation (its usage is shifted apart)."""
        self.account.add(allocation)
        self._count(allocation, 1)

    def remove(self, allocation: Allocation) -> None:
        """Take an allocation off the list."""
        self.account.remove(allocation)
        self._count(allocation, -1)

    def _count(self, allocation: Allocation, by: int) -> None:
        if allocation.request.preemptible and not allocation.eviction:
            priority = allocation.request.priority
            count = self.priorities.get(priority, 0) + by
            if count:
                self.priorities[priority] = count
                if self._lowest_priority is not None and priority < self._lowest_priority:
                    self._lowest_priority = priority
            else:
                del self.priorities[priority]
                if priority == self._lowest_priority:
                    self._lowest_priority = None

    def held_here(self) -> list[Allocation]:
        """What runs through the policy in this pool, in precedence."""
        if len(self.account.bounded_in) == 1:
            return self.by_precedence
        return [allocation for allocation in self.by_precedence if allocation.pool == self.pool]

    def is_last(self, request: Request) -> bool:
        """Whether no allocation comes after that of this request in the policy's precedence (S20)."""
        return not self.by_precedence or self.by_precedence[-1].request.id == request.id

    def borrowers(self) -> tuple[Allocation, ...]:
        """The allocations here that may be evicted for others (S27), in precedence; see `Account.borrowers`."""
        return self.account.borrowers(self.pool) if self.priorities else ()

    def may_give_way_to(self, preemptible: bool, priority: int) -> bool:
        """Whether any own work here comes after such a request in the precedence and can be evicted, if it borrows."""
        if not self.priorities or not preemptible:
            return bool(self.priorities)
        if self._lowest_priority is None:
            self._lowest_priority = min(self.priorities)
        return priority > self._lowest_priority

    def gives_way_to(self, amounts: Amounts, preemptible: bool, priority: int) -> list[Allocation]:
        """Own borrowing work here that comes after such a request in the precedence, the first to give way first
        (S28, S29).

        Shares are judged with the request in place if it would then be in share itself, else as they are.
        """
        if not self.may_give_way_to(preemptible, priority):
            return []
        if self._is_inside_with(amounts):
            return []  # nobody would borrow, whoever came first
        staying, before = self.account.staying((preemptible, -priority + 1))
        left, bounded_in = dict(self.reserved), self.account.bounded_in
        take_shares(staying[:before], left, bounded_in)
        if all(value <= left.get(key, 0) for key, value in amounts if key in self.bounded):
            for key, value in amounts:
                if key in self.bounded:
                    left[key] = left.get(key, 0) - value
        giving = [
            a
            for a in take_shares(staying[before:], left, bounded_in)
            if a.pool == self.pool and a.request.preemptible and (not preemptible or priority > a.request.priority)
        ]
        # 1 lowest request priority, 2 granted last, which is the precedence backwards
        return giving[::-1]

    def _is_inside_with(self, amounts: Amounts) -> bool:
        """Whether the amounts, and all that will stay, are inside the reservation together."""
        for key, value in amounts:
            if key in self.bounded and self.metered_after.get(key, 0) + value > self.reserved.get(key, 0):
                return False
        return self.account.is_inside_reservation()

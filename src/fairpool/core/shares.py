"""Shares: what each policy uses, what of it lies inside its reservation, and how far it is above (S19 to S21, S23)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from fairpool.core.amounts import WHOLE, Amounts
from fairpool.core.policies import Policy
from fairpool.core.requests import Allocation, Request

RESOLUTION = 1 << 80
"""Shares are compared as whole numbers of 2^-80, finer than one thousandth in the largest capacity: exact enough that
two shares tie only when they are equal for every practical purpose, and the same on every machine."""

Precedence = tuple[bool, int, int]
"""A policy's own precedence (S20): 1 firm first, 2 higher request priority, 3 the order of granting."""


def precedence(allocation: Allocation) -> Precedence:
    """Where the allocation stands in its policy's own precedence; lower comes first."""
    request = allocation.request
    return (request.preemptible, -request.priority, allocation.sequence)


class PolicyBooks:
    """What one policy uses, in both books (see placement.py), and its allocations in their precedence."""

    __slots__ = (
        "_borrowers",
        "_keys",
        "bounded",
        "by_precedence",
        "firm_after",
        "firm_now",
        "leaving",
        "limit",
        "policy",
        "priorities",
        "reserved",
        "retired",
        "used_after",
        "used_now",
    )

    def __init__(self, policy: Policy, bounded: frozenset[str], *, retired: bool = False) -> None:
        self.policy = policy
        self.retired = retired  # its policy was dropped while work ran through it: it offers nothing any more
        self.bounded = bounded  # the pool's metered keys
        self.reserved = {key: value for key, value in policy.reserved if key in bounded}
        self.limit = dict(policy.limit)
        self.used_now: dict[str, int] = {}
        self.used_after: dict[str, int] = {}
        self.firm_now: dict[str, int] = {}
        self.firm_after: dict[str, int] = {}
        self.by_precedence: list[Allocation] = []  # unreleased ones, evictions under way included
        self._keys: list[Precedence] = []
        self.leaving = 0  # how many of them are preempting
        self.priorities: dict[int, int] = {}  # request priority -> how many preemptible ones that are not leaving
        self._borrowers: tuple[Allocation, ...] | None = None

    def shift(self, amounts: Amounts, preemptible: bool, now: int, after: int) -> None:
        """Add (+1) or remove (-1) usage in each book."""
        used_now, used_after = self.used_now, self.used_after
        for key, value in amounts:
            used_now[key] = used_now.get(key, 0) + value * now
            used_after[key] = used_after.get(key, 0) + value * after
        if not preemptible:
            for key, value in amounts:
                self.firm_now[key] = self.firm_now.get(key, 0) + value * now
                self.firm_after[key] = self.firm_after.get(key, 0) + value * after

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

    def is_last(self, request: Request) -> bool:
        """Whether no allocation comes after that of this request in the policy's precedence (S20)."""
        return not self.by_precedence or self.by_precedence[-1].request.id == request.id

    def _count(self, allocation: Allocation, by: int) -> None:
        self._borrowers = None
        if allocation.eviction:
            self.leaving += by
        elif allocation.request.preemptible:
            priority = allocation.request.priority
            count = self.priorities.get(priority, 0) + by
            if count:
                self.priorities[priority] = count
            else:
                del self.priorities[priority]

    def borrowers(self) -> tuple[Allocation, ...]:
        """The allocations that may be evicted for others (S27), in precedence: preemptible, not leaving, borrowing.

        With evictions under way an allocation must borrow both as things are and as they will be: what leaves still
        counts today, yet must not make somebody look like a borrower who is in share as soon as it has left (S31).
        """
        if self._borrowers is None:
            self._borrowers = self._judge_borrowers()
        return self._borrowers

    def _judge_borrowers(self) -> tuple[Allocation, ...]:
        if not self.priorities or self.is_inside_reservation():
            return ()
        borrowing = borrowing_of(self.by_precedence, self.reserved, self.bounded)
        if self.leaving:
            staying = [allocation for allocation in self.by_precedence if not allocation.eviction]
            later = {a.request.id for a in borrowing_of(staying, self.reserved, self.bounded)}
            borrowing = [a for a in borrowing if not a.eviction and a.request.id in later]
        return tuple(a for a in borrowing if a.request.preemptible)

    def is_inside_reservation(self) -> bool:
        """Whether all that will stay is inside the reservation, so that nothing of it borrows."""
        return all(value <= self.reserved.get(key, 0) for key, value in self.used_after.items() if key in self.bounded)

    def gives_way_to(self, amounts: Amounts, preemptible: bool, priority: int) -> list[Allocation]:
        """Own borrowing work that comes after such a request in the precedence, the first to give way first (S28, S29).

        Shares are judged with the request in place if it would then be in share itself, else as they are.
        """
        if not any(not preemptible or priority > other for other in self.priorities):
            return []
        staying = [a for a in self.by_precedence if not a.eviction]
        before = bisect_left([precedence(a)[:2] for a in staying], (preemptible, -priority + 1))
        left = dict(self.reserved)
        take_shares(staying[:before], left, self.bounded)
        if all(value <= left.get(key, 0) for key, value in amounts if key in self.bounded):
            for key, value in amounts:
                if key in self.bounded:
                    left[key] = left.get(key, 0) - value
        borrowing = take_shares(staying[before:], left, self.bounded)
        giving = [a for a in borrowing if a.request.preemptible and (not preemptible or priority > a.request.priority)]
        # 1 lowest request priority, 2 granted last, which is the precedence backwards
        return giving[::-1]


def take_shares(allocations: Iterable[Allocation], left: dict[str, int], bounded: frozenset[str]) -> list[Allocation]:
    """Those of the allocations, in their order, that do not fit what is left of the reservation; `left` is drawn down
    by those that do (S20)."""
    borrowing = []
    for allocation in allocations:
        amounts = allocation.request.demand.total
        if all(value <= left.get(key, 0) for key, value in amounts if key in bounded):
            for key, value in amounts:
                if key in bounded:
                    left[key] -= value
        else:
            borrowing.append(allocation)
    return borrowing


def borrowing_of(
    allocations: Iterable[Allocation], reserved: dict[str, int], bounded: frozenset[str]
) -> list[Allocation]:
    """Those of the allocations, in precedence, that borrow (S20)."""
    return take_shares(allocations, dict(reserved), bounded)


def fits_reservation(used: dict[str, int], amounts: Amounts, books: PolicyBooks) -> bool:
    """Whether `used` and the amounts together stay inside the reservation, on each bounded key of the amounts (S21)."""
    reserved, bounded = books.reserved, books.bounded
    for key, value in amounts:  # noqa: SIM110 (a plain loop is twice as fast, and every pass asks this of every class)
        if key in bounded and used.get(key, 0) + value > reserved.get(key, 0):
            return False
    return True


def is_entitled(books: PolicyBooks, amounts: Amounts, preemptible: bool) -> bool:
    """S21: the demand fits the unused part of the reservation; for firm work only firm work counts as using it."""
    return fits_reservation(books.used_now if preemptible else books.firm_now, amounts, books)


def dominant_borrowed_share(books: PolicyBooks, used: dict[str, int], capacity: dict[str, int]) -> int:
    """The largest, over keys, of usage above reservation divided by capacity, divided by weight; in 2^-80 (S23)."""
    share = 0
    reserved = books.reserved
    for key, value in used.items():
        over = value - reserved.get(key, 0)
        if over > 0 and key in books.bounded:
            of_key = over * RESOLUTION * WHOLE // (max(capacity.get(key, 0), 1) * books.policy.weight)
            share = max(share, of_key)
    return share

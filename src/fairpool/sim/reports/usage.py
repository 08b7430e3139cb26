"""Who used how much, borrowed and lent, over time: one pass over the ledger's moves. Whole numbers throughout.

What a policy uses above its reservation is borrowed (S20). Policies whose pools are the same, or joined by a policy
that spans them, lend to each other; such pools are taken together. At each moment what is borrowed there takes first
what is reserved for nobody, and the rest is lent out of the unused reservations, from each policy in proportion to what
of its own is unused. A dedicated reservation lends nothing (S14).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from fairpool.app.ports import Stored
from fairpool.core.amounts import get
from fairpool.core.ids import Instant, PolicyId, PoolId
from fairpool.core.policies import Policy
from fairpool.core.pools import healthy_capacity, is_bounded
from fairpool.sim.ledger import Ledger
from fairpool.sim.reports.reservations import Reservations

FINE = 80
"""Bits after the point of the share of a policy in what is lent; rounded away at the end, so that sums stay exact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals:
    """Equally long intervals of time, but for microseconds: what is told over time is told for each."""

    begins_at: Instant
    ends_at: Instant
    count: int

    def bounds(self) -> list[Instant]:
        """Where they begin and end: one more than there are."""
        length = self.ends_at - self.begins_at
        return [Instant(self.begins_at + length * place // self.count) for place in range(self.count + 1)]

    def lengths_us(self) -> list[int]:
        """How long each is."""
        bounds = self.bounds()
        return [after - before for before, after in pairwise(bounds)]

    @property
    def length_us(self) -> int:
        """How long all are together."""
        return self.ends_at - self.begins_at


@dataclass(slots=True, kw_only=True)
class PolicyUse:
    """What a policy used. All but `policy` are sums over time: thousandths times microseconds."""

    policy: Policy
    used: int = 0
    reserved: int = 0
    borrowed: int = 0
    lent: int = 0


@dataclass(slots=True, kw_only=True)
class PoolUse:
    """What was used in a pool. used: thousandths times microseconds in each interval. reserved: the same of what is
    reserved there alone, not over several pools."""

    pool: PoolId
    capacity: int
    peak: int = 0
    used: list[int] = field(default_factory=list)
    reserved: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Usage:
    """Everything about one resource. borrowed, lent: thousandths times microseconds in each interval, of all policies;
    what is borrowed and not lent was reserved for nobody."""

    policies: list[PolicyUse]
    pools: list[PoolUse]
    borrowed: list[int]
    lent: list[int]


@dataclass(slots=True)
class _Community:
    """Pools that lend to each other, at one moment and summed up over time.

    unreserved: capacity less all that is reserved; below nothing where nodes are down.
    borrowed, idle: sums over its policies of what is above, and of what is unused and may be lent.
    """

    unreserved: int = 0
    borrowed: int = 0
    idle: int = 0
    since: int = 0
    borrowed_sum: int = 0
    lent_sum: int = 0
    share_sum: int = 0  # of lent over idle, with FINE bits after the point

    def advance(self, now: int) -> None:
        """Sum up until now."""
        passed = now - self.since
        if passed:
            self.since = now
            if self.borrowed:
                self.borrowed_sum += self.borrowed * passed
                lent = min(self.borrowed - self.unreserved, self.idle)
                if lent > 0:
                    self.lent_sum += lent * passed
                    self.share_sum += (lent << FINE) // self.idle * passed


@dataclass(slots=True)
class _Account:
    """One policy at one moment, and summed up until `since`. share_mark: its community's share_sum by then."""

    use: PolicyUse
    community: _Community
    dedicated: bool
    since: int
    reserved: int = 0
    used: int = 0
    share_mark: int = 0
    lent_fine: int = 0

    def advance(self, now: int) -> None:
        """Sum up until now; its community must have been."""
        passed = now - self.since
        use, used, reserved = self.use, self.used, self.reserved
        self.since = now
        use.used += used * passed
        use.reserved += reserved * passed
        if used > reserved:
            use.borrowed += (used - reserved) * passed
        elif not self.dedicated:
            self.lent_fine += (reserved - used) * (self.community.share_sum - self.share_mark)
        self.share_mark = self.community.share_sum

    def change(self, used: int, reserved: int) -> None:
        """From now on. Plain comparisons: a million jobs come here two million times."""
        community = self.community
        before, after = self.used - self.reserved, used - reserved
        community.borrowed += (after if after > 0 else 0) - (before if before > 0 else 0)
        if not self.dedicated:
            community.idle += (before if before < 0 else 0) - (after if after < 0 else 0)
        community.unreserved -= reserved - self.reserved
        self.used, self.reserved = used, reserved


@dataclass(slots=True)
class _Pool:
    """One pool at one moment, and summed up until `since`. reserving: None where a policy spans it and others."""

    use: PoolUse
    since: int
    used: int = 0
    used_sum: int = 0
    reserving: list[_Account] | None = field(default_factory=list)

    def advance(self, now: int) -> None:
        self.used_sum += self.used * (now - self.since)
        self.since = now


def usage(ledger: Ledger, rules: Stored, amounts: Sequence[int], key: str, intervals: Intervals) -> Usage:
    """What was used, borrowed and lent of one resource. amounts: what each job asks of it.

    The intervals reach at least from the ledger's beginning to its end.
    """
    sweep = _Sweep(ledger, rules, amounts, key, intervals)
    sweep.run()
    return sweep.total()


class _Sweep:
    def __init__(self, ledger: Ledger, rules: Stored, amounts: Sequence[int], key: str, intervals: Intervals) -> None:
        begin = intervals.begins_at
        self._ledger, self._amounts, self._intervals = ledger, amounts, intervals
        self._reservations = Reservations(rules, key)
        metered = [pool for pool in rules.snapshot.pools if is_bounded(pool, key)]
        self._pools = {
            pool.id: _Pool(PoolUse(pool=pool.id, capacity=get(healthy_capacity(pool), key)), begin) for pool in metered
        }
        of_pool = _communities(rules.snapshot.policies, [pool.id for pool in metered], begin)
        for name, pool in self._pools.items():
            of_pool[name].unreserved += pool.use.capacity
        self._accounts: dict[PolicyId, _Account] = {}
        for policy in rules.snapshot.policies:
            community = next((of_pool[pool] for pool in policy.pools if pool in of_pool), None)
            if community is not None:
                account = _Account(PolicyUse(policy=policy), community, policy.dedicated, begin)
                account.change(0, self._reservations.at(policy, begin))
                self._accounts[policy.id] = account
                self._reserve(account)
        self._communities = list({id(one): one for one in of_pool.values()}.values())
        self._cursor = 0  # of the ledger's moves
        self._borrowed: list[int] = []
        self._lent: list[int] = []

    def _reserve(self, account: _Account) -> None:
        for name in account.use.policy.pools:
            pool = self._pools.get(name)
            if pool is not None and account.use.policy.also:
                pool.reserving = None
            elif pool is not None and pool.reserving is not None:
                pool.reserving.append(account)

    def run(self) -> None:
        """Go through the moves; stop at each bound and wherever a reservation changes."""
        intervals = self._intervals
        edges = iter(self._reservations.edges(intervals.begins_at, intervals.ends_at))
        edge = next(edges, None)
        for bound in intervals.bounds()[1:]:
            while edge is not None and edge.at < bound:
                self._go_to(edge.at)
                account = self._accounts.get(edge.policy)
                if account is not None:
                    account.change(account.used, edge.reserved)
                edge = next(edges, None)
            self._go_to(bound)
            self._write_down()
        self._go_to(Instant(intervals.ends_at + 1), summed_to=intervals.ends_at)

    def _go_to(self, moment: Instant, *, summed_to: Instant | None = None) -> None:
        """Carry out the moves before that moment, and sum everything up until it."""
        ledger, amounts = self._ledger, self._amounts
        pools = [*(self._pools.get(pool) for pool in ledger.pools), None]
        accounts = [*(self._accounts.get(policy) for policy in ledger.policies), None]
        cursor, count = self._cursor, len(ledger.move_at)
        while cursor < count and (at := ledger.move_at[cursor]) < moment:
            amount = amounts[ledger.move_job[cursor]] * ledger.move_sign[cursor]
            pool, account = pools[ledger.move_pool[cursor]], accounts[ledger.move_policy[cursor]]
            cursor += 1
            if not amount or pool is None or account is None:
                continue  # it uses none, or no rule meters it
            pool.advance(at)
            pool.used += amount
            if pool.used > pool.use.peak:
                pool.use.peak = pool.used
            account.community.advance(at)
            account.advance(at)
            account.change(account.used + amount, account.reserved)
        self._cursor = cursor
        self._sum_up(moment if summed_to is None else summed_to)

    def _sum_up(self, now: Instant) -> None:
        for community in self._communities:
            community.advance(now)
        for account in self._accounts.values():
            account.advance(now)
        for pool in self._pools.values():
            pool.advance(now)

    def _write_down(self) -> None:
        """What has been summed up since the last interval ended."""
        for pool in self._pools.values():
            pool.use.used.append(pool.used_sum - sum(pool.use.used))
            if pool.reserving is not None:
                reserved = sum(account.use.reserved for account in pool.reserving)
                pool.use.reserved.append(reserved - sum(pool.use.reserved))
        self._borrowed.append(sum(one.borrowed_sum for one in self._communities) - sum(self._borrowed))
        self._lent.append(sum(one.lent_sum for one in self._communities) - sum(self._lent))

    def total(self) -> Usage:
        """Everything; what each policy lent, to the last thousandth of a microsecond."""
        for community in self._communities:
            lenders = [account for account in self._accounts.values() if account.community is community]
            _divide(community.lent_sum, lenders)
        return Usage(
            policies=[account.use for account in self._accounts.values()],
            pools=[pool.use for pool in self._pools.values()],
            borrowed=self._borrowed,
            lent=self._lent,
        )


def _divide(lent: int, lenders: Sequence[_Account]) -> None:
    """What was lent among those who did; what rounding leaves goes to those who lost most by it."""
    for account in lenders:
        account.use.lent = account.lent_fine >> FINE
    left = lent - sum(account.use.lent for account in lenders)
    by_rest = sorted(lenders, key=lambda account: (-(account.lent_fine % (1 << FINE)), account.use.policy.id))
    idle = [account for account in by_rest if account.lent_fine]
    for place in range(left):
        idle[place % len(idle)].use.lent += 1


def _communities(policies: Sequence[Policy], pools: Sequence[PoolId], begin: Instant) -> dict[PoolId, _Community]:
    """The community of each pool."""
    found = {pool: _Community(since=begin) for pool in pools}
    for policy in policies:
        mine = [pool for pool in policy.pools if pool in found]
        for other in mine[1:]:
            old, new = found[other], found[mine[0]]
            found.update({pool: new for pool, community in found.items() if community is old})
    return found

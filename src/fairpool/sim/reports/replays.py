"""The figures of one replay: what `measures`, `usage` and `fairness` find, in the report's units."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from fairpool.core.ids import Instant
from fairpool.core.requests import Because
from fairpool.sim.ledger import Ledger
from fairpool.sim.reports import usage as used
from fairpool.sim.reports.fairness import Soloists, fairness
from fairpool.sim.reports.figures import Evictions, Figures, Lending, PoolUse, TeamUse
from fairpool.sim.reports.measures import groups
from fairpool.sim.reports.outcome import Outcome
from fairpool.sim.reports.parties import Parties, called
from fairpool.sim.reports.usage import Intervals, Usage
from fairpool.sim.reports.wording import hours, units


def figures(
    outcome: Outcome, parties: Parties, key: str, intervals: Intervals, *, soloists: Soloists | None
) -> Figures:
    """Everything about one replay; with finish-time fairness where there are soloists to replay teams by themselves."""
    ledger = outcome.ledger
    amounts = parties.amounts(ledger, key)
    usage = used.usage(ledger, outcome.rules, amounts, key, intervals)
    return Figures(
        name=outcome.name,
        decisions=ledger.decisions,
        groups=groups(ledger, parties, key),
        pools=_pools(usage, parties, intervals),
        teams=_teams(usage, intervals),
        lending=_lending(usage, intervals),
        evictions=_evictions(ledger, amounts, intervals),
        fairness=fairness(outcome, parties, soloists) if soloists is not None else [],
    )


def _pools(usage: Usage, parties: Parties, intervals: Intervals) -> list[PoolUse]:
    """The pools that have any of the resource, by name."""
    found = [
        PoolUse(
            pool=parties.names.pool(pool.pool),
            capacity=units(pool.capacity),
            mean=units(sum(pool.used)) / intervals.length_us,
            peak=units(pool.peak),
            used=_means(pool.used, intervals),
            reserved=_means(pool.reserved, intervals) if pool.reserved else None,
        )
        for pool in usage.pools
        if pool.capacity or pool.peak
    ]
    return sorted(found, key=lambda pool: pool.pool)


def _means(sums: Sequence[int], intervals: Intervals) -> list[float]:
    """Units on average over each interval, to a thousandth: what a chart shows."""
    return [round(units(amount) / length, 3) for amount, length in zip(sums, intervals.lengths_us(), strict=True)]


def _teams(usage: Usage, intervals: Intervals) -> list[TeamUse]:
    """Each subject's policies together, by name; those that had nothing and used nothing are left out."""
    together: dict[str, list[used.PolicyUse]] = {}
    for use in usage.policies:
        together.setdefault(called(use.policy.subject), []).append(use)
    return [
        TeamUse(
            team=team,
            reserved=units(sum(use.reserved for use in uses)) / intervals.length_us,
            used_hours=hours(sum(use.used for use in uses)),
            borrowed_hours=hours(sum(use.borrowed for use in uses)),
            lent_hours=hours(sum(use.lent for use in uses)),
        )
        for team, uses in sorted(together.items())
        if any(use.used or use.reserved for use in uses)
    ]


def _lending(usage: Usage, intervals: Intervals) -> Lending:
    unreserved = [borrowed - lent for borrowed, lent in zip(usage.borrowed, usage.lent, strict=True)]
    return Lending(
        borrowed_hours=hours(sum(usage.borrowed)),
        from_unreserved_hours=hours(sum(unreserved)),
        lent_hours=hours(sum(usage.lent)),
        lent=_means(usage.lent, intervals),
        from_unreserved=_means(unreserved, intervals),
    )


def _evictions(ledger: Ledger, amounts: Sequence[int], intervals: Intervals) -> Evictions:
    because = [evicted.because for evicted in ledger.evictions]
    return Evictions(
        count=len(because),
        reclaims=because.count(Because.RECLAIM),
        by_priority=because.count(Because.PRIORITY),
        by_operator=because.count(Because.CAPACITY),
        lost_hours=hours(sum(lost * amount for lost, amount in zip(ledger.lost_us, amounts, strict=True) if lost)),
        over_time=_counted([evicted.at for evicted in ledger.evictions], intervals),
    )


def _counted(moments: Sequence[Instant], intervals: Intervals) -> list[int]:
    """How many of the moments, which are in order, lie in each interval."""
    bounds = intervals.bounds()
    places = [bisect_right(moments, bound) for bound in bounds[1:]]
    return [after - before for before, after in zip([0, *places], places, strict=False)]

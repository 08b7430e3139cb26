"""Used, borrowed and lent: by hand, and against a plain reckoning moment by moment."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairpool.app.records import Declared, Document, Json, Kind
from fairpool.app.schedules import note_with, windows_in
from fairpool.core.ids import SECOND, Instant, PolicyId, PoolId
from fairpool.core.policies import Subject
from fairpool.sim.jobs import Job
from fairpool.sim.ledger import Ledger
from fairpool.sim.reports.outcome import Outcome
from fairpool.sim.reports.parties import Parties
from fairpool.sim.reports.usage import Intervals, Usage, usage
from fairpool.sim.rulebook import rulebook
from tests.unit.sim.reports.worlds import BEGIN_S, a_policy, a_pool, at, job, outcome, rules

HOUR = 3600
GPU_HOUR = 1000 * HOUR * SECOND


def used_in(found: Outcome, count: int = 7) -> Usage:
    ledger = found.ledger
    intervals = Intervals(begins_at=ledger.began_at, ends_at=Instant(ledger.ended_at + 1), count=count)
    return usage(ledger, found.rules, Parties(found.rules).amounts(ledger, "gpu"), "gpu", intervals)


def in_hours(found: Usage, what: str) -> dict[str, Fraction]:
    return {use.policy.subject.name: Fraction(getattr(use, what), GPU_HOUR) for use in found.policies}


def test_what_nobody_reserved_is_borrowed_first_and_lent_by_nobody() -> None:
    """Of 8: a has 4 and uses 7 for an hour. Two of the three above are nobody's, one is b's."""
    found = used_in(outcome(rules(8, a=4, b=2), *(job(f"j{n}", "a", 0, HOUR) for n in range(7))))
    assert in_hours(found, "used") == {"a": 7, "b": 0}
    assert in_hours(found, "borrowed") == {"a": 3, "b": 0}
    assert in_hours(found, "lent") == {"a": 0, "b": 1}
    assert (sum(found.borrowed), sum(found.lent)) == (3 * GPU_HOUR, 1 * GPU_HOUR)


def test_lenders_lend_in_proportion_to_what_of_their_own_is_unused() -> None:
    """All of 10 is reserved; a uses 6 and so borrows 4, of the 6 that b and the 2 that c leave unused."""
    found = used_in(outcome(rules(10, a=2, b=6, c=2), *(job(f"j{n}", "a", 0, HOUR) for n in range(6))))
    assert in_hours(found, "lent") == {"a": 0, "b": 3, "c": 1}


def test_a_dedicated_reservation_lends_nothing() -> None:
    """c's 4 stay idle: of the two that a has above its own, both are b's."""
    stored = rulebook([a_pool(8)], [a_policy("a", 2), a_policy("b", 2), a_policy("c", 4, dedicated=True)])
    found = used_in(outcome(stored, *(job(f"j{n}", "a", 0, HOUR) for n in range(5))))
    assert in_hours(found, "borrowed")["a"] == 2 + 0
    assert in_hours(found, "lent") == {"a": 0, "b": 2, "c": 0}


def test_a_policy_over_two_pools_lends_in_both() -> None:
    """s may use 4 anywhere in p and q; a, which has p alone, borrows 1 of it there."""
    span = a_policy("s", 4, also=(PoolId("q"),))
    stored = rulebook([a_pool(3), a_pool(3, "q")], [span, a_policy("a", 2), a_policy("b", 0, "q")])
    found = used_in(outcome(stored, *(job(f"j{n}", "a", 0, HOUR) for n in range(3))))
    assert in_hours(found, "lent") == {"s": 1, "a": 0, "b": 0}
    assert [pool.reserved for pool in found.pools] == [[], []], "what is reserved over both lies in neither alone"


def test_pools_that_nothing_joins_do_not_lend_to_each_other() -> None:
    stored = rulebook([a_pool(2), a_pool(9, "q")], [a_policy("a", 1), a_policy("b", 1), a_policy("c", 9, "q")])
    found = used_in(outcome(stored, job("j", "a", 0, HOUR), job("k", "a", 0, HOUR)))
    assert in_hours(found, "lent") == {"a": 0, "b": 1, "c": 0}


def test_a_window_changes_what_is_reserved_while_it_is_open() -> None:
    """b reserves 2, and nothing in the window: what a borrows is lent by b before and after only."""
    stored = rules(4, a=2, b=2)
    opens = datetime.fromtimestamp(BEGIN_S, tz=UTC).replace(second=0) + timedelta(minutes=30)
    start = f"{opens.minute} {opens.hour} * * *"
    window: dict[str, Json] = {"start": start, "duration_s": HOUR, "timezone": "UTC", "reserved": {"gpu": 0}}
    note = note_with({}, windows_in({"schedule": [window]}), None)
    declared = tuple(replace(one, note=note) if one.id == "p-b" else one for one in stored.declared)
    found = used_in(outcome(replace(stored, declared=declared), *(job(f"j{n}", "a", 0, 2 * HOUR) for n in range(4))))
    assert in_hours(found, "borrowed")["a"] == 2 * 2
    assert in_hours(found, "lent")["b"] == 2 * (2 - 1)


def test_work_that_no_policy_governs_uses_nothing() -> None:
    component: Declared[Document] = Declared(
        kind=Kind.COMPONENT, id="local", name="local", spec={}, created_at=at(0), updated_at=at(0)
    )
    stored = rules(4, a=2)
    free = job("j", "a", 0, HOUR, subjects=(Subject.parse("component:local"),))
    found = used_in(outcome(replace(stored, declared=(*stored.declared, component)), free))
    assert sum(map(sum, (pool.used for pool in found.pools))) == 0


# ---- against a plain reckoning ---------------------------------------------------------------------------------------


@dataclass
class Plain:
    """The same by the definition: between two moves nothing changes."""

    borrowed: dict[str, Fraction]
    lent: dict[str, Fraction]
    lent_in_all: Fraction


def plainly(ledger: Ledger, capacity: int, reserved: dict[str, int], end: Instant) -> Plain:
    names = list(reserved)
    used = dict.fromkeys(names, 0)
    moves: dict[int, list[tuple[str, int]]] = {}
    for place, moment in enumerate(ledger.move_at):
        one = ledger.jobs[ledger.move_job[place]]
        assert one.demand is not None
        change = one.demand.total[0][1] * ledger.move_sign[place]
        moves.setdefault(moment, []).append((one.subjects[0].name, change))
    found = Plain(dict.fromkeys(names, Fraction(0)), dict.fromkeys(names, Fraction(0)), Fraction(0))
    for since, until in pairwise([*sorted(moves), end]):
        for name, change in moves[since]:
            used[name] += change
        above = {name: max(0, used[name] - reserved[name]) for name in names}
        idle = {name: max(0, reserved[name] - used[name]) for name in names}
        lent = max(0, sum(above.values()) - (capacity - sum(reserved.values())))
        assert lent <= sum(idle.values())
        for name in names:
            found.borrowed[name] += above[name] * (until - since)
            found.lent[name] += Fraction(lent * idle[name], sum(idle.values()) or 1) * (until - since)
        found.lent_in_all += lent * (until - since)
    return found


AMOUNTS = st.sampled_from([0.5, 1, 2, 3])


@st.composite
def worlds(draw: st.DrawFn) -> Outcome:
    reserved = {name: draw(st.integers(0, 4)) for name in "abc"}
    capacity = sum(reserved.values()) + draw(st.integers(1, 3))
    jobs: list[Job] = []
    after_s = 0
    for number in range(draw(st.integers(1, 14))):
        after_s += draw(st.integers(0, 40))
        team = draw(st.sampled_from("abc"))
        jobs.append(job(f"j{number}", team, after_s, draw(st.integers(1, 120)), gpus=draw(AMOUNTS)))
    return outcome(rulebook([a_pool(capacity)], [a_policy(*one) for one in reserved.items()]), *jobs)


@given(worlds(), st.integers(1, 9))
def test_usage_is_what_a_plain_reckoning_finds(found: Outcome, count: int) -> None:
    told = used_in(found, count)
    pool = told.pools[0]
    reserved = {policy.subject.name: dict(policy.reserved).get("gpu", 0) for policy in found.rules.snapshot.policies}
    plain = plainly(found.ledger, pool.capacity, reserved, Instant(found.ledger.ended_at + 1))
    assert {use.policy.subject.name: use.borrowed for use in told.policies} == plain.borrowed
    assert sum(told.lent) == plain.lent_in_all == sum(use.lent for use in told.policies)
    for use in told.policies:
        assert abs(use.lent - plain.lent[use.policy.subject.name]) <= len(told.policies)


@given(worlds(), st.integers(1, 9))
def test_what_is_lent_is_borrowed_and_nothing_is_above_capacity(found: Outcome, count: int) -> None:
    told = used_in(found, count)
    pool = told.pools[0]
    intervals = Intervals(begins_at=found.ledger.began_at, ends_at=Instant(found.ledger.ended_at + 1), count=count)
    assert pool.peak <= pool.capacity
    for used, borrowed, lent, length in zip(pool.used, told.borrowed, told.lent, intervals.lengths_us(), strict=True):
        assert 0 <= lent <= borrowed <= used <= pool.capacity * length
    held = sum(
        held_us * one.demand.total[0][1]
        for held_us, one in zip(found.ledger.held_us, found.ledger.jobs, strict=True)
        if one.demand is not None
    )
    assert sum(pool.used) == held == sum(use.used for use in told.policies)
    assert sum(use.borrowed for use in told.policies) == sum(told.borrowed)


def test_intervals_are_equally_long_and_cover_everything() -> None:
    intervals = Intervals(begins_at=at(0), ends_at=at(10), count=3)
    assert intervals.bounds() == [at(0), at(0) + 3_333_333, at(0) + 6_666_666, at(10)]
    assert sum(intervals.lengths_us()) == intervals.length_us == 10 * SECOND


@pytest.mark.parametrize("count", [1, 2, 360])
def test_what_happens_at_the_very_end_counts_for_the_peak(count: int) -> None:
    found = outcome(rules(4, a=4), job("j", "a", 0, 10), job("k", "a", 10, 10, gpus=4), until_s=10)
    ledger = found.ledger
    intervals = Intervals(begins_at=ledger.began_at, ends_at=ledger.ended_at, count=count)
    told = usage(ledger, found.rules, Parties(found.rules).amounts(ledger, "gpu"), "gpu", intervals)
    assert told.pools[0].peak == 4000
    assert sum(told.pools[0].used) == 1000 * 10 * SECOND
    assert told.policies[0].policy.id == PolicyId("p-a")

"""Windows of policies on a virtual clock: other numbers are in force, and what becomes of work when they go."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from fairpool.app import schedules
from fairpool.app.memory import Memory
from fairpool.app.records import Declared
from fairpool.app.schedules import Window
from fairpool.app.use_cases import policies, pools, profiles, requests, stacks
from fairpool.app.use_cases.policies import PolicyChange
from fairpool.app.use_cases.pools import PoolChange
from fairpool.core.amounts import vector
from fairpool.core.errors import InvalidInput, InvalidRules
from fairpool.core.explain import explain
from fairpool.core.ids import SECOND, Instant, ProfileId
from fairpool.core.policies import Policy, Profile
from fairpool.core.reasons import Code
from fairpool.testing import ManualClock
from tests.unit.app.office import Office, policy, same_as_stored

NOON = Instant(round(dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC).timestamp()) * SECOND)
HOUR = 3_600
LONG = 86_400


def window(start: str = "0 20 * * *", hours: int = 10, **numbers: Any) -> Window:
    given: dict[str, Any] = {
        name: vector(value) if name in ("reserved", "limit") else value for name, value in numbers.items()
    }
    return Window(start=start, duration_s=hours * HOUR, **given)


@pytest.fixture
def office() -> Office:
    """At noon: one pool of 8 GPUs."""
    made = Office(clock=ManualClock(NOON))
    made.do(stacks.ensure_defaults)
    made.pool()
    return made


def attach(
    office: Office, subject: str, reserved: dict[str, object], *windows: Window, pool: str = "p", **named: Any
) -> Declared[Policy]:
    return office.do(policies.attach, pool, policy(subject, reserved, **named), schedule=windows)


def reserved(office: Office, made: Declared[Policy]) -> int:
    """What is reserved now, by what decides."""
    return dict(office.memory.world.policies[made.spec.id].reserved).get("gpu", 0) // 1000


def history(office: Office, made: Declared[Policy]) -> list[str]:
    return [what for what in office.history(made.id) if "window" in what]


def skip(office: Office, seconds: int) -> None:
    """Time goes by without anybody but the windows waking the scheduler."""
    until = Instant(office.clock.now() + seconds * SECOND)
    while (edge := office.memory.timetable.next()) is not None and edge <= until:
        office.clock.move_to(edge)
        office.scheduler.cycle([])
    office.clock.move_to(until)
    office.scheduler.cycle([])


# ---- opening and closing ---------------------------------------------------------------------------------------------


def test_a_window_opens_and_closes_by_itself_and_history_says_so(office: Office) -> None:
    made = attach(office, "team:red", {"gpu": 2}, window(reserved={"gpu": 6}))
    assert reserved(office, made) == 2
    skip(office, 8 * HOUR - 1)
    assert reserved(office, made) == 2
    skip(office, 1)
    assert reserved(office, made) == 6
    skip(office, 10 * HOUR)
    assert reserved(office, made) == 2
    assert history(office, made) == ["window opened", "window closed"]


def test_what_is_declared_stays_as_it_was_written_and_so_does_its_version(office: Office) -> None:
    made = attach(office, "team:red", {"gpu": 2}, window(reserved={"gpu": 6}))
    skip(office, 9 * HOUR)
    now = office.memory.policy(made.id)
    assert (now.spec, now.version) == (made.spec, made.version)
    assert schedules.open_in(now.note) == 0


def test_the_scheduler_wakes_at_the_next_edge(office: Office) -> None:
    attach(office, "team:red", {"gpu": 2}, window(reserved={"gpu": 6}))
    assert office.memory.timetable.next() == NOON + 8 * HOUR * SECOND
    assert office.scheduler.wake_at is not None
    assert office.scheduler.wake_at <= NOON + 8 * HOUR * SECOND


def test_a_policy_that_comes_while_its_window_is_open_has_its_numbers_at_once(office: Office) -> None:
    made = attach(office, "team:red", {"gpu": 2}, window("0 11 * * *", reserved={"gpu": 6}))
    assert reserved(office, made) == 6
    office.do(policies.update, made.id, PolicyChange(schedule=()))
    assert reserved(office, made) == 2
    assert office.memory.timetable.next() is None


def test_a_change_of_the_policy_leaves_the_open_window_open(office: Office) -> None:
    made = attach(office, "team:red", {"gpu": 2}, window("0 11 * * *", reserved={"gpu": 6}))
    office.do(policies.update, made.id, PolicyChange(priority=5))
    assert reserved(office, made) == 6
    assert office.memory.world.policies[made.spec.id].priority == 5
    skip(office, 10 * HOUR)
    assert reserved(office, made) == 2


def test_what_one_policy_gives_up_another_gets_at_the_same_moment(office: Office) -> None:
    """The pool has 8: before, between and after no more than 8 are promised."""
    day = attach(office, "team:day", {}, window("0 8 * * *", 12, reserved={"gpu": 8}))
    night = attach(office, "team:night", {}, window("0 20 * * *", 12, reserved={"gpu": 8}))
    assert (reserved(office, day), reserved(office, night)) == (8, 0)
    skip(office, 8 * HOUR)
    assert (reserved(office, day), reserved(office, night)) == (0, 8)
    skip(office, 12 * HOUR)
    assert (reserved(office, day), reserved(office, night)) == (8, 0)


# ---- what only another time allows -----------------------------------------------------------------------------------


def test_what_only_the_night_allows_waits_for_it_and_says_when_it_comes(office: Office) -> None:
    """S16: the largest numbers of all windows decide what can never run."""
    attach(office, "team:red", {}, window(limit={"gpu": 6}), limit=vector({"gpu": 2}))
    waits, never = office.submit("team:red", 4, lease_s=LONG), office.submit("team:red", 7)
    assert [reason.code for reason in never.state.reasons] == [Code.EXCEEDS_POLICY_LIMIT]
    told = office.ask(lambda memory, now: explain(memory.world, waits.id, now))
    assert [(fact.code, fact.limit, fact.possible, fact.opens_at) for fact in told.reasons] == [
        (Code.WAITS_FOR_WINDOW, 2_000, 6_000, NOON + 8 * HOUR * SECOND)
    ]
    after = office.restarted()
    assert after.status(waits.id) == "queued"
    skip(after, 8 * HOUR)
    assert after.status(waits.id) == "allocated"


def test_who_waits_for_the_next_night_waits_through_the_day(office: Office) -> None:
    attach(office, "team:red", {}, window(limit={"gpu": 6}), limit=vector({"gpu": 2}))
    skip(office, 9 * HOUR)
    first = office.submit("team:red", 6, lease_s=3 * LONG)
    second = office.submit("team:red", 6, lease_s=3 * LONG)
    skip(office, 10 * HOUR)
    assert (office.status(first.id), office.status(second.id)) == ("allocated", "queued")
    office.do(requests.release, first.id)
    assert office.status(second.id) == "queued"
    skip(office, 14 * HOUR)
    assert office.status(second.id) == "allocated"


# ---- what becomes of work --------------------------------------------------------------------------------------------


def test_when_a_window_closes_its_work_borrows_and_gives_way_to_whose_right_it_is(office: Office) -> None:
    """S28: nobody is evicted because a window closes; whoever is entitled then may reclaim, with the grace period."""
    attach(office, "team:service", {"gpu": 6}, window("0 20 * * *", 10, reserved={}), priority=5)
    attach(office, "team:research", {}, window("0 20 * * *", 10, reserved={"gpu": 6}), grace_s=30)
    skip(office, 9 * HOUR)
    training = office.submit("team:research", 6, lease_s=LONG)
    serving = office.submit("team:service", 6, lease_s=LONG)
    assert (office.status(training.id), office.status(serving.id)) == ("allocated", "queued")
    skip(office, 9 * HOUR - 1)
    assert (office.status(training.id), office.status(serving.id)) == ("allocated", "queued")
    skip(office, 1)
    assert office.status(training.id) == "preempting"
    office.pass_time(30)
    assert (office.status(training.id), office.status(serving.id)) == ("preempted", "allocated")


def test_firm_work_of_a_window_goes_on_when_it_closes_and_what_it_takes_is_not_reclaimed(office: Office) -> None:
    """INV-3, INV-5: except after a reservation fell; firm work is never evicted for another."""
    attach(office, "team:service", {"gpu": 6}, window("0 20 * * *", 10, reserved={}))
    attach(office, "team:research", {}, window("0 20 * * *", 10, reserved={"gpu": 6}), grace_s=30)
    skip(office, 9 * HOUR)
    firm = office.submit("team:research", 4, lease_s=2 * LONG, preemptible=False)
    plain = office.submit("team:research", 4, lease_s=2 * LONG)
    serving = [office.submit("team:service", 3, lease_s=2 * LONG) for _ in range(2)]
    skip(office, 9 * HOUR + 30)
    assert [office.status(one.id) for one in (firm, plain, *serving)] == [
        "allocated",
        "preempted",
        "allocated",
        "queued",
    ]
    office.do(requests.release, firm.id)
    assert office.status(serving[1].id) == "allocated"


def test_a_limit_that_falls_when_a_window_closes_evicts_nobody(office: Office) -> None:
    """INV-2: except after a limit fell."""
    made = attach(office, "team:red", {}, window(limit={"gpu": 8}), limit=vector({"gpu": 2}))
    skip(office, 9 * HOUR)
    held = office.submit("team:red", 8, lease_s=LONG)
    assert office.status(held.id) == "allocated"
    skip(office, 12 * HOUR)
    assert office.status(held.id) == "allocated"
    assert history(office, made) == ["window opened", "window closed"]


def test_a_grace_period_of_a_window_counts_while_it_is_open(office: Office) -> None:
    attach(office, "team:red", {}, window(grace_s=300), grace_s=10)
    attach(office, "team:blue", {"gpu": 8})
    skip(office, 9 * HOUR)
    held = office.submit("team:red", 8, lease_s=LONG)
    office.submit("team:blue", 8, lease_s=LONG)
    office.pass_time(299)
    assert office.status(held.id) == "preempting"
    skip(office, 1)
    assert office.status(held.id) == "preempted"


def test_only_what_no_window_allows_is_never_possible(office: Office) -> None:
    """S16, S17: what the next window has room for waits for it, and waits on when one closes."""
    attach(office, "team:red", {}, window(limit={"gpu": 6}, reserved={"gpu": 4}), limit=vector({"gpu": 2}))
    waits = office.submit("team:red", 6, lease_s=10 * LONG)
    firm = office.submit("team:red", 4, lease_s=10 * LONG, preemptible=False)
    never = office.submit("team:red", 7, lease_s=10 * LONG)
    assert [office.status(one.id) for one in (waits, firm, never)] == ["queued", "queued", "rejected"]
    skip(office, 8 * HOUR)
    assert sorted(office.status(one.id) for one in (waits, firm)) == ["allocated", "queued"]
    skip(office, 10 * HOUR)
    assert sorted(office.status(one.id) for one in (waits, firm)) == ["allocated", "queued"]
    assert same_as_stored(office)


# ---- restarts --------------------------------------------------------------------------------------------------------


def test_after_a_restart_everything_is_as_it_was_inside_a_window_too(office: Office) -> None:
    made = attach(office, "team:red", {"gpu": 2}, window(reserved={"gpu": 6}))
    attach(office, "team:blue", {"gpu": 2})
    skip(office, 9 * HOUR)
    office.submit("team:blue", 8, lease_s=LONG)
    office.submit("team:red", 6, lease_s=LONG)  # an eviction is under way
    assert same_as_stored(office)
    after = office.restarted()
    assert reserved(after, made) == 6
    assert after.memory.world.snapshot() == office.memory.world.snapshot()
    assert history(after, made) == ["window opened"]


def test_a_server_that_was_down_over_an_edge_catches_up(office: Office) -> None:
    made = attach(office, "team:red", {"gpu": 2}, window(reserved={"gpu": 6}))
    skip(office, 9 * HOUR)
    office.clock.move_to(Instant(NOON + 20 * HOUR * SECOND))
    after = office.restarted()
    assert reserved(after, made) == 2
    assert history(after, made) == ["window opened", "window closed"]


def test_the_memory_of_a_restart_has_the_numbers_that_were_in_force(office: Office) -> None:
    """Whatever the time is: the edges that have passed are turned by the first round, where history says so."""
    made = attach(office, "team:red", {"gpu": 2}, window(reserved={"gpu": 6}))
    skip(office, 9 * HOUR)
    loaded = Memory(office.store.load(), Instant(NOON + 100 * HOUR * SECOND))
    assert dict(loaded.world.policies[made.spec.id].reserved) == {"gpu": 6000}


def test_who_takes_over_inside_a_window_closes_it_though_nobody_led_when_it_was_time(office: Office) -> None:
    made = attach(office, "team:red", {"gpu": 2}, window(reserved={"gpu": 6}))
    skip(office, 9 * HOUR)
    held = office.submit("team:red", 6, lease_s=LONG)
    other = Office(office.store.store, office.clock, holder="two")
    other.ids = other.scheduler._ids = office.ids
    other.scheduler.cycle([])
    assert not other.scheduler.is_leading
    office.clock.move_to(Instant(NOON + 18 * HOUR * SECOND))  # the one that leads is gone; the window is over
    other.scheduler.cycle([])
    assert other.scheduler.is_leading
    assert (reserved(other, made), history(other, made)) == (2, ["window opened", "window closed"])
    assert other.status(held.id) == "allocated"
    assert same_as_stored(other)


# ---- what goes together ----------------------------------------------------------------------------------------------


def test_windows_that_promise_too_much_together_are_refused_with_the_moment(office: Office) -> None:
    """S11, at every moment of the time ahead."""
    attach(office, "team:red", {"gpu": 2}, window("0 20 * * 5", reserved={"gpu": 6}))
    with pytest.raises(
        InvalidRules, match=r"when windows turn at 2026-11-27 20:00 UTC: reservations of 'gpu'"
    ) as raised:
        attach(office, "team:blue", {"gpu": 1}, window("0 12 27 11 *", reserved={"gpu": 3}))
    assert raised.value.field == "reserved.gpu"
    attach(office, "team:blue", {"gpu": 1}, window("0 12 28 11 *", reserved={"gpu": 3}))


def test_a_pool_cannot_shrink_below_what_a_window_promises(office: Office) -> None:
    """S9."""
    attach(office, "team:red", {"gpu": 2}, window(reserved={"gpu": 6}))
    with pytest.raises(InvalidRules, match="when windows turn at") as raised:
        office.do(pools.update, "p", PoolChange(capacity=(("gpu", 5000),)))
    assert raised.value.possible.startswith("6 or more")
    office.do(pools.update, "p", PoolChange(capacity=(("gpu", 6000),)))


def test_a_window_is_refused_where_it_contradicts_its_policy(office: Office) -> None:
    with pytest.raises(InvalidRules, match="is over its limit"):
        attach(office, "team:red", {"gpu": 2}, window(reserved={"gpu": 6}), limit=vector({"gpu": 4}))
    with pytest.raises(InvalidRules, match="weight") as raised:
        attach(office, "team:red", {"gpu": 2}, window(weight=0))
    assert raised.value.field == "schedule.0.weight"
    with pytest.raises(InvalidInput, match="no time zone"):
        attach(office, "team:red", {"gpu": 2}, window(priority=1, timezone="Mars/Olympus"))
    assert not office.memory.policies_of(office.memory.pool("p").spec.id)


def test_a_profile_is_offered_where_one_window_has_room_for_it(office: Office) -> None:
    profile = Profile(id=ProfileId(""), name="big", demand=vector({"gpu": 6}), pools=("p",))
    office.do(profiles.create, profile)
    attach(office, "team:red", {}, window(limit={"gpu": 8}), limit=vector({"gpu": 2}), profiles=("big",))
    with pytest.raises(InvalidRules, match="the limit of team:blue is 2"):
        attach(office, "team:blue", {}, window(limit={"gpu": 5}), limit=vector({"gpu": 2}), profiles=("big",))


def test_trying_out_changes_nothing(office: Office) -> None:
    tried = office.do(policies.attach, "p", policy("team:red"), schedule=(window(reserved={"gpu": 6}),), dry_run=True)
    assert schedules.windows_in(tried.note)
    assert office.memory.timetable.next() is None

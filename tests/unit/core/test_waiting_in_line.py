"""The queue, its classes, and the order in which a pass looks at them (S23, S25)."""

from __future__ import annotations

import pytest

from fairpool.core import events as ev
from fairpool.core.errors import UnknownObject
from fairpool.core.ids import SECOND, Instant, PoolId, RequestId
from fairpool.core.lanes import Lanes
from fairpool.core.planner import decide
from fairpool.core.requests import Request, Status
from fairpool.core.waiting import ClassKey, Place, RequestClass, place_of, runtime_magnitude
from fairpool.core.world import World
from fairpool.testing import builders as make

P = PoolId("p")


def _ask(name: str, subject: str = "team:t", gpus: float = 1, *, at: int = 0, priority: int = 0) -> Request:
    return make.request(name, subject, {"gpu": gpus}, queued_at=Instant(at), priority=priority)


def _waiting(*requests: Request) -> World:
    """Undecided: everybody waits."""
    policies = (make.policy("team:t"), make.policy("team:b", {"gpu": 2}), make.policy("team:high", priority=9))
    return make.world(make.pool("p", {"gpu": 8}), *policies, *requests)


def _turns(world: World) -> list[str]:
    """Everybody in the order in which a pass considers them if each one is granted."""
    lanes, found = Lanes(world.books[P], world.queue), list[str]()
    while (turn := lanes.next()) is not None:
        found.append(turn.request.id)
        world.dequeue(turn.request.id)
        lanes.keep(turn)
    return found


# ---- classes ---------------------------------------------------------------------------------------------------------


def test_requests_that_cannot_be_told_apart_are_one_class() -> None:
    world = _waiting(_ask("a"), _ask("b", at=5), _ask("c", priority=3))
    (home,) = world.queue.classes()
    assert set(home.members) == {"a", "b", "c"}


@pytest.mark.parametrize(
    "other",
    [
        _ask("b", gpus=2),
        _ask("b", subject="team:high"),
        make.request("b", preemptible=False),
        make.request("b", "team:t", {"gpu": 1}, max_runtime_s=60),
    ],
    ids=["demand", "candidates", "preemptibility", "run time"],
)
def test_what_decisions_tell_apart_makes_another_class(other: Request) -> None:
    world = make.world(
        make.pool("p", {"gpu": 8}), make.policy("team:t", {"gpu": 8}), make.policy("team:high"), _ask("a"), other
    )
    assert len(list(world.queue.classes())) == 2


def test_run_times_of_one_power_of_two_share_a_class() -> None:
    def magnitude(length_s: int | None) -> int:
        return runtime_magnitude(make.request("r", max_runtime_s=length_s))

    assert magnitude(32) == magnitude(63) != magnitude(64)
    assert magnitude(None) != magnitude(0)


def test_a_class_is_headed_by_priority_then_age_then_id() -> None:
    """S23, criteria 6 to 8."""
    world = _waiting(_ask("b", at=1), _ask("a", at=1), _ask("old", at=0), _ask("late", at=9, priority=1))
    (home,) = world.queue.classes()
    order = []
    while (head := world.queue.head(home)) is not None:
        order.append(head.id)
        world.dequeue(head.id)
    assert order == ["late", "old", "a", "b"]


def test_a_class_has_waited_since_its_oldest_member_whoever_heads_it() -> None:
    """The one of higher priority came later, and is the head."""
    home = RequestClass(ClassKey((), make.request("x").demand, True, -1))
    home.add(make.request("old", queued_at=Instant(10)))
    assert home.oldest() == 10
    home.add(make.request("new", queued_at=Instant(20), priority=1))
    assert home.head([]) == make.request("new", queued_at=Instant(20), priority=1)
    assert home.oldest() == 10
    del home.members[RequestId("old")]
    assert home.oldest() == 20


def test_taking_a_member_out_leaves_an_entry_that_the_head_skips_and_can_restore() -> None:
    first, second = _ask("a", at=0), _ask("b", at=1)
    (home,) = _waiting(first).queue.classes()
    line = RequestClass(home.key)
    line.add(first)
    line.add(second)
    del line.members[RequestId("a")]
    passed: list[Place] = []
    assert line.head(passed) is second
    assert passed == [place_of(first)]
    line.members[RequestId("a")] = first
    line.restore(passed)
    assert line.head([]) is first


# ---- the queue -------------------------------------------------------------------------------------------------------


def test_each_queued_request_is_found_wherever_it_stands() -> None:
    """In a class, aside as hopeless or ungoverned, or kept room for."""
    world = make.settled(
        make.pool("p", {"gpu": 8}),
        make.policy("team:t", {"gpu": 8}),
        make.policy("team:b"),
        _ask("running", "team:b", 8),
        later=[_ask("claimant", gpus=8)],
    )
    for request in (_ask("waiting"), _ask("hopeless", gpus=9), _ask("ungoverned", "component:local")):
        world.apply(ev.Submitted(request=request), make.START)
    assert set(world.queue.claimants) == {"claimant"}
    assert set(world.queue.hopeless) == {"hopeless"}
    assert set(world.queue.ungoverned) == {"ungoverned"}
    assert set(world.queue) == {"claimant", "waiting", "hopeless", "ungoverned"}
    assert len(world.queue) == 4
    assert all(world.queue.request(name).id == name for name in world.queue)
    assert RequestId("running") not in world.queue


def test_an_unknown_request_is_not_queued() -> None:
    with pytest.raises(UnknownObject, match="no request 'x'"):
        _waiting().queue.request(RequestId("x"))


def test_a_class_whose_last_member_left_is_forgotten() -> None:
    world = _waiting(_ask("a"))
    world.dequeue(RequestId("a"))
    assert list(world.queue.classes()) == []
    assert len(world.queue) == 0


# ---- the order of a pass ---------------------------------------------------------------------------------------------


def test_entitled_come_before_priority_and_priority_before_age() -> None:
    """S23, criteria 2, 3 and 7."""
    world = _waiting(_ask("t", at=0), _ask("high", "team:high", at=1), _ask("owner", "team:b", at=2))
    assert _turns(world) == ["owner", "high", "t"]


def test_own_priority_does_not_count_against_another_policy() -> None:
    """S23, criterion 6: `b2` is before `b1`, and still behind the older `t`."""
    requests = [
        _ask("b1", "team:b", 4, at=1),
        _ask("b2", "team:b", 4, at=2, priority=99),
        _ask("t", "team:t", 4, at=0),
    ]
    assert _turns(_waiting(*requests)) == ["t", "b2", "b1"]


# ---- S25: being overtaken has an end ---------------------------------------------------------------------------------


def _backfill(*, waited_s: int, short_s: int | None, backfill: bool = True, declared_s: int | None = 100) -> list[str]:
    """6 of 8 GPUs run (for `declared_s`); `big` wants 8 and has waited; who of `short` (2 GPUs) starts behind it?"""
    pool = make.pool("p", {"gpu": 8}, max_bypass_s=600, backfill=backfill)
    running = make.request("running", "team:t", {"gpu": 6}, max_runtime_s=declared_s)
    world = make.settled(pool, make.policy(), running, later=[_ask("big", gpus=8)])
    now = Instant(waited_s * SECOND)
    short = make.request("short", "team:t", {"gpu": 2}, queued_at=now, max_runtime_s=short_s)
    world.apply(ev.Submitted(request=short), now)
    made = decide(world, now)
    assert world.status_of(RequestId("big")) is Status.QUEUED
    return [str(grant.request) for grant in made.grants]


def test_a_blocked_request_is_overtaken_until_it_has_waited_its_bound() -> None:
    """S25."""
    assert _backfill(waited_s=599, short_s=None, declared_s=None) == ["short"]
    assert _backfill(waited_s=600, short_s=None, declared_s=None) == []


def test_work_that_ends_before_the_held_capacity_is_complete_may_still_start() -> None:
    """S25, EASY backfill: the running 6 GPUs are declared to end at 1000 s, and it is 600 s now."""
    assert _backfill(waited_s=600, short_s=400, declared_s=1000) == ["short"]
    assert _backfill(waited_s=600, short_s=401, declared_s=1000) == []
    assert _backfill(waited_s=600, short_s=None, declared_s=1000) == []


def test_what_is_held_stays_held_when_somebody_who_might_pass_finds_no_room() -> None:
    """S25: `short` would end in time and is too large; `long`, which comes after it, is not."""
    six = make.request("six", "team:t", {"gpu": 6}, max_runtime_s=1800)
    world = make.settled(make.pool("p", {"gpu": 8}, max_bypass_s=0), make.policy(), six)
    for at, (name, gpus, runtime_s) in enumerate([("big", 8, 60), ("short", 3, 60), ("long", 2, 5000)]):
        asked = make.request(name, "team:t", {"gpu": gpus}, max_runtime_s=runtime_s, queued_at=Instant(at))
        world.apply(ev.Submitted(request=asked), make.START)
    assert decide(world, Instant(SECOND)).grants == ()


def test_without_declared_run_times_nobody_is_known_to_end_in_time() -> None:
    """S25: everything free that the request could use is held."""
    assert _backfill(waited_s=600, short_s=1, declared_s=None) == []


def test_strict_order_lets_nobody_pass() -> None:
    """S25: a pool set to `backfill: false`."""
    assert _backfill(waited_s=1, short_s=1, backfill=False) == []


def test_work_behind_may_start_on_what_is_left_over_beside_the_held_capacity() -> None:
    """S25: `big` wants 6, so that 2 of 8 are nobody's."""
    running = make.request("running", "team:t", {"gpu": 5}, max_runtime_s=1000)
    world = make.settled(make.pool("p", {"gpu": 8}), make.policy(), running, later=[_ask("big", gpus=6)])
    now = Instant(600 * SECOND)
    for name in ("s1", "s2", "s3"):
        world.apply(ev.Submitted(request=_ask(name, at=now)), now)
    made = decide(world, now)
    assert [grant.request for grant in made.grants] == ["s1", "s2"]
    assert [(hold.pool, hold.request) for hold in made.holds] == [("p", "big")]


def test_waiting_for_a_limit_of_its_own_holds_nothing() -> None:
    """S25."""
    policies = (make.policy("team:t", None, {"gpu": 4}), make.policy("team:b"))
    world = make.settled(
        make.pool("p", {"gpu": 8}, max_bypass_s=0), *policies, _ask("a", gpus=4), later=[_ask("w", gpus=4)]
    )
    world.apply(ev.Submitted(request=_ask("b", "team:b", 4)), make.START)
    made = decide(world, make.START)
    assert [grant.request for grant in made.grants] == ["b"]
    assert made.holds == ()


def test_held_nodes_are_those_that_lack_least() -> None:
    """S25: on `n2`, where 3 of 4 are free; `n1` with its 1 stays open."""
    pool = make.pool(nodes={"n1": {"gpu": 4}, "n2": {"gpu": 4}}, max_bypass_s=0)
    world = make.settled(pool, make.policy(), later=[_ask("a", gpus=3), _ask("b", gpus=2)])
    world.apply(ev.Ended(request=RequestId("b"), how=Status.RELEASED), make.START)
    for request in (_ask("c", gpus=2), _ask("d", gpus=1)):  # c on n2, and d fills n1
        world.apply(ev.Submitted(request=request), make.START)
        decide(world, make.START)
    world.apply(ev.Ended(request=RequestId("d"), how=Status.RELEASED), make.START)
    world.apply(ev.Submitted(request=_ask("big", gpus=4)), make.START)
    for name in ("s1", "s2"):
        world.apply(ev.Submitted(request=_ask(name, at=1)), make.START)
    made = decide(world, make.START)
    assert [(str(g.request), g.allocation.parts[0].node) for g in made.grants] == [("s1", "n1")]
    assert world.status_of(RequestId("s2")) is Status.QUEUED


def test_run_times_that_only_some_declared_do_not_tell_when_the_held_capacity_is_complete() -> None:
    """S25: `big` needs the end of `unknown`, too, so that the short request is not let pass on a free GPU."""
    running = [
        make.request("known", "team:t", {"gpu": 4}, max_runtime_s=1000),
        make.request("unknown", "team:t", {"gpu": 3}),
    ]
    world = make.settled(make.pool("p", {"gpu": 8}), make.policy(), *running, later=[_ask("big", gpus=8)])
    now = Instant(600 * SECOND)
    world.apply(ev.Submitted(request=make.request("short", queued_at=now, max_runtime_s=1)), now)
    assert decide(world, now).grants == ()


def test_whoever_stood_first_and_starts_elsewhere_makes_way_in_the_same_decision() -> None:
    """S25, S26: `first` may use both pools; strict order in `p` keeps `second` back only as long as it waits there."""
    pools = (make.pool("p", {"gpu": 4}, backfill=False), make.pool("q", {"gpu": 4}))
    policies = (make.policy("team:t"), make.policy("team:b"), make.policy("team:t", pool="q"))
    q = make.policy("team:q", pool="q")
    running = [_ask("in_p", "team:b", 2), _ask("in_q", "team:q", 4)]
    later = [*running, _ask("first", gpus=3), _ask("second", "team:b", at=1)]
    world = make.settled(*pools, *policies, q, later=later)
    assert set(world.queued) == {"first", "second"}
    world.apply(ev.Ended(request=RequestId("in_q"), how=Status.RELEASED), make.START)
    made = decide(world, make.START)
    assert {(str(grant.request), str(grant.allocation.pool)) for grant in made.grants} == {
        ("first", "q"),
        ("second", "p"),
    }

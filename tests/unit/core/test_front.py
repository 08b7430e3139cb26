"""The front of a world: the pools that belong together, what runs there, and who stands first."""

from __future__ import annotations

import pytest

from fairpool.core import events as ev
from fairpool.core import front
from fairpool.core.front import class_of, front_of, joined_to, pools_of
from fairpool.core.ids import Instant, PoolId, RequestId
from fairpool.core.planner import decide, plan
from fairpool.core.requests import Status
from fairpool.core.world import World
from fairpool.testing import builders as make

P, Q, R = PoolId("p"), PoolId("q"), PoolId("r")


def _line(count: int, *, gpus: int = 8) -> World:
    """One runs, and so many of its kind wait."""
    many = [
        make.request(f"w{number:03d}", "team:t", {"gpu": gpus}, queued_at=Instant(number)) for number in range(count)
    ]
    running = make.request("a", "team:t", {"gpu": 8})
    return make.settled(make.pool("p", {"gpu": 8}), make.policy(), running, later=many)


def test_a_front_decides_as_its_world_does() -> None:
    world = _line(20)
    world.apply(ev.Ended(request=RequestId("a"), how=Status.RELEASED), make.START)
    taken = front_of(world, [P])
    assert taken.cut == {}
    assert plan(World.restore(taken.snapshot), make.START) == plan(world, make.START)


def test_nothing_that_happens_later_changes_it() -> None:
    world = _line(5)
    taken = front_of(world, [P])
    before = taken.snapshot
    world.apply(ev.Ended(request=RequestId("a"), how=Status.RELEASED), make.START)
    decide(world, make.START)
    assert taken.snapshot == before
    assert {held.request.id for held in taken.snapshot.allocations} == {"a"}


def test_of_a_long_line_only_the_first_are_in_it_however_many_have_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front, "FEWEST_OF_A_CLASS", 4)
    world = _line(20)
    for gone in ("w000", "w002", "w009"):
        world.apply(ev.Ended(request=RequestId(gone), how=Status.CANCELLED), make.START)
    taken = front_of(world, [P], most=1)
    assert list(taken.waiting) == ["w001", "w003", "w004", "w005"]
    behind = world.queue.request(RequestId("w006"))
    assert taken.knows(behind, class_of(world, behind))
    assert taken.is_behind(behind, class_of(world, behind))
    last = world.queue.request(RequestId("w005"))
    assert not taken.is_behind(last, class_of(world, last))


def test_who_comes_later_is_not_known_where_everybody_is_in_it() -> None:
    world = _line(3)
    taken = front_of(world, [P])
    late = make.request("late", "team:t", {"gpu": 8}, queued_at=Instant(9))
    assert not taken.knows(late, class_of(world, late))
    joined = taken.joined_by(late)
    assert joined.knows(late, class_of(world, late))
    assert World.restore(joined.snapshot).status_of(RequestId("late")) is Status.QUEUED


def test_pools_belong_together_where_somebody_waits_in_both_or_a_policy_spans_them() -> None:
    pools = [make.pool(name, {"gpu": 1}) for name in ("p", "q", "r", "s")]
    policies = [
        make.policy("team:a", pool="p"),
        make.policy("team:a", pool="q"),
        make.policy("team:b", pool="q", also=(R,)),
        make.policy("team:c", pool="s"),
    ]
    busy = [make.request(f"b{number}", "team:a", {"gpu": 1}) for number in range(2)]
    waiting = make.request("w", "team:a", {"gpu": 1})
    alone = make.settled(*pools, *policies)
    assert joined_to(alone, [P]) == {P}
    assert joined_to(alone, [Q]) == {Q, R}
    world = make.settled(*pools, *policies, *busy, later=[waiting])
    assert pools_of(world, waiting) == {P, Q, R}
    assert joined_to(world, [PoolId("s"), PoolId("gone")]) == {"s"}
    assert {policy.pool for policy in front_of(world, {P, Q, R}).snapshot.policies} == {P, Q}

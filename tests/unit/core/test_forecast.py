"""Several futures, drawn from what is known of run times: what they come to, and when nothing can be said (S37)."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate

import pytest

from fairpool.core import events as ev
from fairpool.core.forecast import PACES, estimate_start, look_ahead
from fairpool.core.front import front_of
from fairpool.core.ids import SECOND, Instant, RequestId
from fairpool.core.outlook import Estimate, Ground, Unknown, Why
from fairpool.core.pauses import at_once
from fairpool.core.planner import decide
from fairpool.core.pools import NodeState
from fairpool.core.requests import Request
from fairpool.core.usual import Basis, Usual, Usually
from fairpool.core.world import World
from fairpool.testing import builders as make

W = RequestId("w")
EIGHT = make.pool("p", {"gpu": 8})


def _usually(*lengths_s: float, basis: Basis = Basis.PROFILE) -> Usually:
    lengths = tuple(int(each * SECOND) for each in lengths_s)
    known = Usual(basis=basis, name="train", lengths_us=lengths, cumulated=tuple(accumulate(1 for _ in lengths)))
    return lambda request: known


def _ask(name: str, gpus: float = 8, *, runtime_s: int | None = None, timeout_s: int | None = None) -> Request:
    return make.request(name, "team:t", {"gpu": gpus}, max_runtime_s=runtime_s, wait_timeout_s=timeout_s)


def _seconds(estimate: Estimate | Unknown) -> tuple[float, float, float | None]:
    assert isinstance(estimate, Estimate)
    high = None if estimate.high is None else estimate.high / SECOND
    return estimate.low / SECOND, estimate.about / SECOND, high


def _started_at_100(*running: Request) -> World:
    """They run since 100 s, and `w` waits for them."""
    began = Instant(100 * SECOND)
    world = make.settled(EIGHT, make.policy())
    for request in (*running, _ask("w")):
        world.apply(ev.Submitted(request=request), began)
    decide(world, began)
    assert list(world.queued) == ["w"]
    return world


TENS = tuple(range(10, 1010, 10))


def test_every_future_takes_a_time_that_was_seen_at_its_own_pace() -> None:
    """`a` has run for 30 s, so that it takes one of the times beyond that; the rest of it is faster or slower."""
    now = Instant(130 * SECOND)
    told = estimate_start(_started_at_100(_ask("a")), W, now, _usually(*TENS))
    possible = {130 + (length - 30) * pace / 10 for length in TENS if length > 30 for pace in PACES}
    low, about, high = _seconds(told)
    assert high is not None
    assert low < about < high
    assert {low, about, high} <= possible


def test_those_whose_ids_follow_each_other_take_times_far_apart() -> None:
    """Of eight that began together the first ends long before the last: they are not taken to end all at once."""

    def told(gpus: float) -> Estimate | Unknown:
        together = [_ask(f"0avx10g6fm5sxrjraj{last}", 1) for last in "01234567"]
        world = make.settled(EIGHT, make.policy(), *together, later=[_ask("w", gpus)])
        return estimate_start(world, W, make.START, _usually(*TENS))

    (_, first, _), (_, last, _) = _seconds(told(1)), _seconds(told(8))
    assert first * 3 < last


def test_where_all_took_the_same_nothing_is_drawn() -> None:
    now = Instant(130 * SECOND)
    told = estimate_start(_started_at_100(_ask("a")), W, now, _usually(60, 60, 60))
    at = Instant(160 * SECOND)
    ground = Ground(basis=Basis.PROFILE, name="train", finished=3, request=RequestId("a"))
    assert told == Estimate(low=at, about=at, high=at, grounds=(ground,))


def test_work_ends_no_later_than_it_declared() -> None:
    world = _started_at_100(_ask("a", runtime_s=50))
    told = estimate_start(world, W, Instant(130 * SECOND), _usually(900, 1000, basis=Basis.STEP))
    assert isinstance(told, Estimate)
    assert told.high == 150 * SECOND


def test_what_it_declared_says_more_than_what_others_of_its_profile_took() -> None:
    world = _started_at_100(_ask("a", runtime_s=50))
    told = estimate_start(world, W, Instant(130 * SECOND), _usually(1, 2, 3))
    assert isinstance(told, Estimate)
    assert (told.about, told.grounds[0].basis) == (150 * SECOND, Basis.MAX_RUNTIME)


def test_each_kind_of_ground_is_told_once_and_what_ends_most_often_comes_first() -> None:
    """Of the three that `w` waits for, two declared how long they run; of the third that is usual is known."""
    usual = _usually(20, 20)(_ask("x"))
    world = _started_at_100(_ask("a", 3, runtime_s=50), _ask("b", 3, runtime_s=60), _ask("c", 2))
    told = estimate_start(world, W, Instant(100 * SECOND), lambda request: None if request.max_runtime_s else usual)
    assert isinstance(told, Estimate)
    assert [(ground.basis, ground.name) for ground in told.grounds] == [
        (Basis.MAX_RUNTIME, ""),
        (Basis.PROFILE, "train"),
    ]
    assert told.about == 160 * SECOND


def test_who_gives_up_in_most_futures_has_no_start() -> None:
    """S36: though in two of five, the first among them, it does start."""
    world = make.settled(EIGHT, make.policy(), _ask("a0", 4), later=[_ask("w", timeout_s=60)])
    told = estimate_start(world, W, make.START, _usually(10, 20, 30, 40, 500, 600, 700, 800, 900, 1000))
    assert told == Unknown(why=Why.GIVES_UP)


def test_who_gives_up_is_told_so_though_nobody_knows_how_long_others_run() -> None:
    world = make.settled(EIGHT, make.policy(), _ask("a"), later=[_ask("w", timeout_s=60)])
    assert estimate_start(world, W, make.START) == Unknown(why=Why.GIVES_UP)


@pytest.mark.parametrize("count", [2, 5])
def test_no_more_than_three_of_unknown_length_are_named(count: int) -> None:
    world = make.settled(EIGHT, make.policy(), *(_ask(f"a{number}", 1) for number in range(count)), later=[_ask("w")])
    names = tuple(RequestId(f"a{number}") for number in range(count))
    assert estimate_start(world, W, make.START) == Unknown(why=Why.RUN_TIMES, requests=names[:3])


def test_where_nothing_runs_that_could_end_nothing_can_be_said() -> None:
    """The node that `w` needs is down."""
    pool = make.pool(nodes={"n1": {"gpu": 8}})
    down = replace(pool, nodes=(replace(pool.nodes[0], state=NodeState.DOWN),))
    world = make.settled(down, make.policy(), later=[_ask("w")])
    assert estimate_start(world, W, make.START) == Unknown(why=Why.NOTHING_ENDS)


def test_there_is_a_future_for_each_pace_where_anything_is_drawn_and_else_one() -> None:
    front = front_of(_started_at_100(_ask("a")), [EIGHT.id])
    now = Instant(130 * SECOND)
    assert len(at_once(look_ahead(front, now, _usually(10, 20))).futures) == len(PACES)
    assert len(at_once(look_ahead(front, now, _usually(60, 60))).futures) == 1

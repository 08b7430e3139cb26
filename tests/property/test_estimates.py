"""Estimates against what then happens (S37): exact where everything is declared, ordered and repeatable wherever."""

from __future__ import annotations

from itertools import accumulate

from hypothesis import given, settings
from hypothesis import strategies as st

from fairpool.core.forecast import estimate_start, look_ahead
from fairpool.core.front import front_of, pools_of
from fairpool.core.ids import SECOND, Instant, RequestId
from fairpool.core.outlook import Estimate
from fairpool.core.pauses import at_once
from fairpool.core.planner import decide
from fairpool.core.usual import Basis, Usual, Usually
from fairpool.core.world import World
from fairpool.testing import builders as make
from tests.property.worlds import thorough

WORK = st.lists(
    st.tuples(st.sampled_from(["team:a", "team:b", "team:c"]), st.integers(1, 8), st.integers(1, 500)),
    min_size=2,
    max_size=14,
)


def _world(work: list[tuple[str, int, int]], *, declared: bool) -> World:
    asked = [
        make.request(
            f"r{number:02d}",
            subject,
            {"gpu": gpus},
            queued_at=Instant(number),
            max_runtime_s=runtime_s if declared else None,
        )
        for number, (subject, gpus, runtime_s) in enumerate(work)
    ]
    policies = (make.policy("team:a"), make.policy("team:b"), make.policy("team:c"))
    return make.settled(make.pool("p", {"gpu": 8}), *policies, *asked)


def _starts(world: World) -> dict[RequestId, Instant]:
    """When everything starts, if each runs for as long as it declared: by hand."""
    now, starts = make.START, {request: held.granted_at for request, held in world.allocations.items()}
    while world.allocations:
        ends = {
            request: Instant(held.granted_at + (held.request.max_runtime_s or 0) * SECOND)
            for request, held in world.allocations.items()
        }
        now = min(ends.values())
        for request in [request for request, at in ends.items() if at == now]:
            world.let_go(request)
        for grant in decide(world, now).grants:
            starts[grant.request] = now
    return starts


@settings(deadline=None, max_examples=thorough(100))
@given(WORK)
def test_where_everything_is_declared_and_nothing_arrives_it_starts_just_then(work: list[tuple[str, int, int]]) -> None:
    world = _world(work, declared=True)
    told = {request: estimate_start(world, request, make.START) for request in sorted(world.queued)}
    starts = _starts(world)
    for request, estimate in told.items():
        assert isinstance(estimate, Estimate)
        assert (estimate.low, estimate.about, estimate.high) == (starts[request],) * 3


def _usually(seen: list[int]) -> Usually:
    """All work runs like this."""
    lengths = tuple(sorted(seen))
    usual = Usual(basis=Basis.STEP, name="train", lengths_us=lengths, cumulated=tuple(accumulate(1 for _ in lengths)))
    return lambda request: usual


@settings(deadline=None, max_examples=thorough(100))
@given(WORK, st.lists(st.integers(1, 10**9), min_size=5, max_size=20))
def test_a_range_is_ordered_and_asking_twice_tells_the_same(work: list[tuple[str, int, int]], seen: list[int]) -> None:
    usually = _usually(seen)
    world = _world(work, declared=False)
    before = world.snapshot()
    for request in sorted(world.queued):
        told = estimate_start(world, request, make.START, usually)
        assert told == estimate_start(world, request, make.START, usually)
        assert isinstance(told, Estimate)
        assert make.START <= told.low <= told.about <= (told.high or told.about)
    assert world.snapshot() == before


@settings(deadline=None, max_examples=thorough(100))
@given(WORK, st.lists(st.integers(1, 10**9), min_size=5, max_size=20))
def test_one_look_ahead_tells_everybody_what_each_would_be_told_alone(
    work: list[tuple[str, int, int]], seen: list[int]
) -> None:
    world, usually = _world(work, declared=False), _usually(seen)
    for request in sorted(world.queued):
        front = front_of(world, pools_of(world, world.request(request)))
        outlook = at_once(look_ahead(front, make.START, usually))
        assert outlook.of(request) == estimate_start(world, request, make.START, usually)


@settings(deadline=None, max_examples=thorough(100))
@given(WORK, st.lists(st.integers(1, 10**9), min_size=5, max_size=20), st.integers(1, 4))
def test_of_a_long_line_the_front_is_told_as_ever_and_those_behind_that_it_is_later(
    work: list[tuple[str, int, int]], seen: list[int], most: int
) -> None:
    """Only the first of each class are copied; nothing is said of what nobody looked at."""
    many, usually = [(team, 8, 0) for team, _, _ in work] * 4, _usually(seen)
    world = _world(many, declared=False)
    whole = at_once(look_ahead(front_of(world, world.books.keys()), make.START, usually))
    part = at_once(look_ahead(front_of(world, world.books.keys(), most), make.START, usually))
    for request in sorted(world.queued):
        told, known = whole.of(request), part.of(request)
        assert isinstance(told, Estimate)
        if isinstance(known, Estimate):
            assert (known.about, known.grounds) == (told.about, told.grounds)
        else:
            assert known.later_than is not None
            assert known.later_than <= told.about

"""One look ahead answers for all who stand in front; of whom a front knows, and of whom it says they come later."""

from __future__ import annotations

from dataclasses import replace

from fairpool.core.forecast import look_ahead
from fairpool.core.front import FEWEST_OF_A_CLASS, class_of, front_of, pools_of
from fairpool.core.ids import SECOND, Instant, PoolId, RequestId
from fairpool.core.outlook import Estimate, Unknown, Why
from fairpool.core.pauses import at_once
from fairpool.core.requests import Request
from fairpool.core.world import World
from fairpool.testing import builders as make

P = PoolId("p")
COUNT = FEWEST_OF_A_CLASS + 3


def _ask(number: int, *, runtime_s: int | None = 60) -> Request:
    return make.request(f"r{number:02d}", "team:t", {"gpu": 8}, queued_at=Instant(number), max_runtime_s=runtime_s)


def _crowd() -> World:
    """One runs, and all others wait in one class."""
    return make.settled(make.pool("p", {"gpu": 8}), make.policy(), *(_ask(number) for number in range(COUNT + 1)))


def test_a_front_knows_nothing_of_who_has_changed_or_waits_elsewhere() -> None:
    world = _crowd()
    front = front_of(world, [P], most=1)
    changed = replace(_ask(1), priority=1)
    assert not front.knows(changed, class_of(world, changed))
    other = make.request("other", "team:t", {"gpu": 1})
    assert not front.knows(other, class_of(world, other))
    assert front.joined_by(other).knows(other, class_of(world, other))
    assert not front.is_behind(other, class_of(world, other))


def test_one_look_answers_for_everybody_in_front_and_says_that_the_others_come_later() -> None:
    """Each runs for a minute, one after the other. What would start beside the last one in front is not known."""
    front = front_of(_crowd(), [P], most=1)
    outlook = at_once(look_ahead(front, make.START))
    for number in range(1, FEWEST_OF_A_CLASS):
        told = outlook.of(RequestId(f"r{number:02d}"))
        assert isinstance(told, Estimate)
        assert (told.low, told.about, told.high) == (number * 60 * SECOND,) * 3
    later = Instant(FEWEST_OF_A_CLASS * 60 * SECOND)
    for number in (FEWEST_OF_A_CLASS, COUNT):
        assert outlook.of(RequestId(f"r{number:02d}")) == Unknown(why=Why.TOO_FAR, later_than=later)


def test_who_has_room_made_for_it_waits_in_front_with_what_is_kept() -> None:
    policies = (make.policy("team:t", {"gpu": 8}), make.policy("team:b"))
    guest = make.request("b", "team:b", {"gpu": 8})
    world = make.settled(make.pool("p", {"gpu": 8}), *policies, guest, later=[_ask(1)])
    front = front_of(world, pools_of(world, _ask(1)))
    assert list(front.waiting) == ["r01"]
    assert front.snapshot.claims == tuple(world.claims.values())
    told = at_once(look_ahead(front, make.START)).of(RequestId("r01"))
    assert isinstance(told, Estimate)
    assert (told.low, told.high) == (make.START, 30 * SECOND)

"""The test kit's clock stands still until it is moved, and its ids can be foretold."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from fairpool.app.records import Kind
from fairpool.core.ids import Instant
from fairpool.testing import ManualClock, SequentialIds

# ---- the clock -------------------------------------------------------------------------------------------------------


def test_the_clock_stands_still() -> None:
    clock = ManualClock()
    assert [clock.now(), clock.now()] == [0, 0]


def test_the_clock_begins_where_it_is_told() -> None:
    assert ManualClock(Instant(7)).now() == 7


def test_advancing_moves_on_by_seconds_and_tells_the_time_then() -> None:
    clock = ManualClock()
    assert clock.advance(1.5) == 1_500_000
    assert clock.advance(0) == clock.now() == 1_500_000


def test_moving_goes_to_a_moment_and_may_stay_there() -> None:
    clock = ManualClock()
    clock.move_to(Instant(5))
    clock.move_to(Instant(5))
    assert clock.now() == 5


def test_the_clock_does_not_go_back_and_stays_where_it_is_when_told_to() -> None:
    clock = ManualClock(Instant(5))
    with pytest.raises(ValueError, match=r"does not go back by 0\.5 s"):
        clock.advance(-0.5)
    with pytest.raises(ValueError, match="does not go back from 5 to 4"):
        clock.move_to(Instant(4))
    assert clock.now() == 5


def test_no_move_is_lost_among_threads() -> None:
    clock = ManualClock()
    with ThreadPoolExecutor(8) as threads:
        times = list(threads.map(lambda _: clock.advance(1), range(200)))
    assert clock.now() == 200_000_000
    assert len(set(times)) == 200


# ---- ids -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", list(Kind))
def test_each_kind_counts_for_itself(kind: Kind) -> None:
    ids = SequentialIds()
    for other in Kind:
        if other is not kind:
            ids.new(other)
    letters = "".join(letter for letter in kind.value if letter.isalpha())
    assert [ids.new(kind), ids.new(kind)] == [f"{letters}00001", f"{letters}00002"]


def test_later_ids_sort_later() -> None:
    ids = SequentialIds()
    drawn = [ids.new(Kind.REQUEST) for _ in range(120)]
    assert drawn == sorted(drawn)


def test_no_id_is_given_twice_among_threads() -> None:
    ids = SequentialIds()
    with ThreadPoolExecutor(8) as threads:
        drawn = list(threads.map(lambda _: ids.new(Kind.REQUEST), range(200)))
    assert len(set(drawn)) == 200

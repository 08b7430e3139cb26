"""Run times as they were seen: quantiles by hand, and what is left of work that runs already (S37)."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairpool.core.usual import Basis, Usual


def _usual(*lengths: int, weights: tuple[int, ...] = ()) -> Usual:
    counts = weights or (1,) * len(lengths)
    return Usual(basis=Basis.STEP, name="train", lengths_us=lengths, cumulated=tuple(accumulate(counts)))


@pytest.mark.parametrize(("permille", "length"), [(10, 10), (200, 10), (250, 20), (500, 30), (900, 50), (990, 50)])
def test_a_fresh_one_takes_what_so_many_of_a_thousand_took(permille: int, length: int) -> None:
    assert _usual(10, 20, 30, 40, 50).length_us(permille) == length


@pytest.mark.parametrize(("permille", "length"), [(100, 30), (500, 40), (900, 50)])
def test_one_that_runs_already_takes_what_those_took_that_lasted_longer(permille: int, length: int) -> None:
    """Twenty have gone by: only 30, 40 and 50 are left to draw from."""
    assert _usual(10, 20, 30, 40, 50).length_us(permille, ran_us=20) == length


@pytest.mark.parametrize(("permille", "length"), [(250, 1_333_333), (500, 2_000_000), (900, 10_000_000)])
def test_of_what_has_lasted_longer_than_nearly_all_half_lasts_as_long_again(permille: int, length: int) -> None:
    assert _usual(10, 20, 30, 40, 50).length_us(permille, ran_us=1_000_000) == length


def test_the_part_is_counted_exactly() -> None:
    """Half of 100,000 is more than the shorter ones count for together."""
    assert _usual(10, 20, weights=(49_960, 50_040)).length_us(500) == 20


def test_three_that_lasted_longer_are_enough_to_draw_from_and_two_are_not() -> None:
    five = _usual(10, 20, 30, 40, 50)
    assert [five.length_us(500, ran_us=ran) for ran in (29, 30)] == [40, 60]


@pytest.mark.parametrize(("lengths", "varies"), [((10,), False), ((10, 10, 10), False), ((10, 10, 20), True)])
def test_there_is_something_to_draw_where_not_all_took_the_same(lengths: tuple[int, ...], varies: bool) -> None:
    assert _usual(*lengths).varies is varies


def test_a_length_counts_for_its_weight() -> None:
    light = _usual(10, 20, weights=(1, 9))
    assert [light.length_us(permille) for permille in (50, 500)] == [10, 20]


@given(
    lengths=st.lists(st.integers(1, 10**9), min_size=1, max_size=64),
    ran_us=st.integers(0, 10**9),
    permilles=st.tuples(st.integers(1, 999), st.integers(1, 999)),
)
def test_it_always_ends_later_and_a_greater_part_is_no_sooner(
    lengths: list[int], ran_us: int, permilles: tuple[int, int]
) -> None:
    usual, (low, high) = _usual(*sorted(lengths)), sorted(permilles)
    assert ran_us < usual.length_us(low, ran_us) <= usual.length_us(high, ran_us)

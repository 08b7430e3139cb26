"""Amounts are exact thousandths; whatever is no amount is refused, and says which value and why."""

from __future__ import annotations

from decimal import Decimal

import pytest

from fairpool.core import amounts
from fairpool.core.errors import InvalidAmount, InvalidName

LARGEST = 10**15


@pytest.mark.parametrize(
    ("written", "thousandths"),
    [
        (0, 0),
        (3, 3000),
        (0.1, 100),
        (0.25, 250),
        ("0.125", 125),
        (" 2.5 ", 2500),
        ("1e3", 1_000_000),
        ("1.5000", 1500),
        (Decimal("0.001"), 1),
        (-0.0, 0),
        ("0.000000", 0),
        (LARGEST, LARGEST * 1000),
        (str(LARGEST), LARGEST * 1000),
        (Decimal(LARGEST) - Decimal("0.001"), LARGEST * 1000 - 1),
    ],
)
def test_what_people_write_becomes_exact_thousandths(written: object, thousandths: int) -> None:
    assert amounts.amount(written) == thousandths


def test_a_tenth_and_two_tenths_are_three_tenths() -> None:
    assert amounts.amount(0.1) + amounts.amount(0.2) == amounts.amount(0.3)


@pytest.mark.parametrize(
    ("written", "why"),
    [
        (-1, "is negative"),
        (-0.5, "is negative"),
        ("-1e30", "is negative"),
        (0.0001, "has more than three fractional digits"),
        ("1.0005", "has more than three fractional digits"),
        (Decimal("1e-999999"), "has more than three fractional digits"),
        (LARGEST + 1, "is too large"),
        ("1000000000000000.001", "is too large"),
        ("1e999999", "is too large"),
        (float("nan"), "is not a finite number"),
        (float("inf"), "is not a finite number"),
        ("-Infinity", "is not a finite number"),
        (True, "is not a number"),
        (False, "is not a number"),
        (None, "is not a number"),
        ([1], "is not a number"),
        ("", "is not a number"),
        ("two", "is not a number"),
        ("1,5", "is not a number"),
    ],
)
def test_what_is_no_amount_is_refused_with_the_cause(written: object, why: str) -> None:
    with pytest.raises(InvalidAmount, match=f"{why}$") as refusal:
        amounts.amount(written)
    assert refusal.value.possible == f"a number from 0 to {LARGEST} with at most three fractional digits"


def test_a_refusal_quotes_no_more_than_the_beginning_of_a_long_value() -> None:
    with pytest.raises(InvalidAmount) as refusal:
        amounts.amount("9" * 500)
    assert refusal.value.value == "9" * 40 + "…"
    with pytest.raises(InvalidAmount) as refusal:
        amounts.amount("9" * 40)
    assert refusal.value.value == "9" * 40


@pytest.mark.parametrize(
    ("thousandths", "shown", "plain"),
    [(0, "0", 0), (2000, "2", 2), (500, "0.5", 0.5), (1010, "1.01", 1.01), (10_000, "10", 10), (1, "0.001", 0.001)],
)
def test_amounts_are_shown_without_needless_zeros(thousandths: int, shown: str, plain: float) -> None:
    assert amounts.show(thousandths) == shown
    assert amounts.plain(thousandths) == plain
    assert amounts.amount(amounts.plain(thousandths)) == thousandths


def test_what_is_missing_is_shown_with_a_minus() -> None:
    assert amounts.show(-500) == "-0.5"
    assert amounts.show(-2000) == "-2"


def test_whole_numbers_stay_integers_in_json() -> None:
    assert isinstance(amounts.plain(2000), int)
    assert isinstance(amounts.plain(2500), float)


def test_a_vector_is_sorted_and_leaves_out_what_is_nothing() -> None:
    assert amounts.vector({"mcpu": 4000, "gpu": 2, "memory_mb": 0}) == (("gpu", 2000), ("mcpu", 4_000_000))
    assert amounts.vector({}) == amounts.NOTHING


def test_equal_vectors_are_equal_in_whichever_order_they_were_written() -> None:
    one, other = amounts.vector({"a": 1, "b": 2}), amounts.vector({"b": 2, "a": 1})
    assert one == other
    assert hash(one) == hash(other)


def test_a_vector_that_is_refused_names_the_key() -> None:
    with pytest.raises(InvalidAmount) as bad_amount:
        amounts.vector({"gpu": 1, "mcpu": -1})
    assert bad_amount.value.field == "mcpu"
    with pytest.raises(InvalidName) as bad_key:
        amounts.vector({"a b": 1})
    assert bad_key.value.field == "a b"


def test_vectors_add_up_key_by_key() -> None:
    parts = [amounts.vector({"gpu": 0.5, "x": 1}), amounts.vector({"gpu": 0.25}), amounts.NOTHING]
    assert amounts.total(parts) == (("gpu", 750), ("x", 1000))
    assert amounts.total([]) == amounts.NOTHING


def test_a_sum_that_comes_to_nothing_leaves_no_key_behind() -> None:
    assert amounts.total([(("gpu", 1000),), (("gpu", -1000),)]) == amounts.NOTHING


def test_a_key_that_a_vector_lacks_stands_for_nothing() -> None:
    held = amounts.vector({"gpu": 2})
    assert amounts.get(held, "gpu") == 2000
    assert amounts.get(held, "tpu") == 0
    assert amounts.get(held, "tpu", 7) == 7


def test_a_vector_travels_as_plain_numbers() -> None:
    assert amounts.plain_vector(amounts.vector({"gpu": 0.5, "mcpu": 4000})) == {"gpu": 0.5, "mcpu": 4000}

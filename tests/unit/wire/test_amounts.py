"""Amounts go over HTTP and back without losing a digit, and what is no amount is refused in words."""

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairpool.wire.amounts import MAX_UNITS, plain_amount, read_amount, show_amount
from fairpool.wire.policies import PolicyCreate
from fairpool.wire.reading import InvalidBody, read
from fairpool.wire.text import loads


@given(st.integers(min_value=0, max_value=MAX_UNITS * 1000))
def test_every_amount_survives_the_way_through_a_model_and_json(thousandths: int) -> None:
    exact = Decimal(thousandths) / 1000
    sent = PolicyCreate(pool="p", subject="team:a", reserved={"gpu": exact})
    received = read(PolicyCreate, loads(sent.model_dump_json()))
    assert received.reserved["gpu"] * 1000 == thousandths


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("2", 2),
        ("0.5", Decimal("0.5")),
        ("0.1", Decimal("0.1")),
        ("1.000", 1),
        ("1.5000", Decimal("1.5")),
        ("1e3", 1000),
        ('"0.25"', Decimal("0.25")),
        ("999999999999999.999", Decimal("999999999999999.999")),
        ("0e999999999", 0),
    ],
)
def test_numbers_and_text_are_read_exactly(text: str, amount: object) -> None:
    assert read_amount(loads(text)) == amount


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (-1, "negative"),
        (Decimal("-0.5"), "negative"),
        (Decimal("0.0001"), "more than three fractional digits"),
        (Decimal("1e-999999999"), "more than three fractional digits"),
        (MAX_UNITS + 1, "too large"),
        (Decimal("1e999999999"), "too large"),
        ("many", "not a number"),
        ("", "not a number"),
        ("NaN", "not a finite number"),
        (True, "not a number"),
        (None, "not a number"),
        ([1], "not a number"),
    ],
)
def test_what_is_no_amount_is_refused_with_what_is_possible(value: object, why: str) -> None:
    with pytest.raises(InvalidBody) as caught:
        read(PolicyCreate, {"pool": "p", "subject": "s", "reserved": {"gpu": value}})
    (problem,) = caught.value.problems
    assert problem.field == "reserved.gpu"
    assert why in problem.message
    assert str(MAX_UNITS) in problem.possible


def test_amounts_are_json_numbers_where_a_reader_keeps_their_digits() -> None:
    assert json.dumps(plain_amount(Decimal("0.125"))) == "0.125"
    assert json.dumps(plain_amount(7)) == "7"
    assert plain_amount(Decimal("999999999999999.125")) == "999999999999999.125"
    assert show_amount(Decimal("0.5")) == "0.5"

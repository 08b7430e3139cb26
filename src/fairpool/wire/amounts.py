"""Amounts as JSON carries them, exact: an integer, or a decimal with at most three fractional digits.

A body is read with `fairpool.wire.text.loads`, which keeps decimals as decimals, so that no amount passes through a
binary float on its way.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Annotated, Final

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

MAX_UNITS: Final = 10**15
"""The largest amount, in units."""

POSSIBLE: Final = f"a number from 0 to {MAX_UNITS} with at most three fractional digits"
_EXACT_AS_FLOAT: Final = 2**53
"""Up to so many thousandths a JSON reader that makes floats of decimals gets back the same three digits."""


def read_amount(value: object) -> int | Decimal:
    """The exact amount that a number, or text that reads as one, stands for; whole ones come back as int.

    Raises ValueError for what is negative, has more than three fractional digits, exceeds 10^15 or is no number.
    A float counts as the shortest decimal that reads back as it.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        raise ValueError(f"not a number; possible: {POSSIBLE}")
    if isinstance(value, int):
        return _within(value)
    try:
        exact = Decimal(str(value).strip())
    except InvalidOperation:
        raise ValueError(f"not a number; possible: {POSSIBLE}") from None
    if not exact.is_finite():
        raise ValueError(f"not a finite number; possible: {POSSIBLE}")
    _within(exact)
    if not exact:
        return 0
    # The exponent alone would refuse 1.5000; the size comes first, so that 1e-999999999 is not expanded.
    if exact.adjusted() < -3 or exact.scaleb(3) != exact.scaleb(3).to_integral_value():
        raise ValueError(f"more than three fractional digits; possible: {POSSIBLE}")
    whole = int(exact)
    return whole if whole == exact else exact.quantize(Decimal("0.001")).normalize()


def _within(value: int | Decimal) -> int | Decimal:
    if value < 0:
        raise ValueError(f"negative; possible: {POSSIBLE}")
    if value > MAX_UNITS:
        raise ValueError(f"too large; possible: {POSSIBLE}")
    return value


def plain_amount(value: int | Decimal) -> int | float | str:
    """The amount as JSON carries it: a number; text only where a reader's float could not hold its digits."""
    if isinstance(value, int):
        return value
    return float(value) if value * 1000 <= _EXACT_AS_FLOAT else str(value)


def show_amount(value: int | Decimal) -> str:
    """The amount as people write it: ``2``, ``0.5``."""
    return str(value) if isinstance(value, int) else f"{value:f}"


Amount = Annotated[
    int | Decimal,
    BeforeValidator(read_amount),
    PlainSerializer(plain_amount),
    WithJsonSchema({"type": ["number", "string"], "minimum": 0, "maximum": MAX_UNITS, "description": POSSIBLE}),
]
"""One amount, in units."""

MAX_KEYS: Final = 64
"""Resource keys in one vector that is sent: each is looked at in every decision."""

Amounts = dict[str, Amount]
"""Resource key to amount."""

SomeAmounts = Annotated[Amounts, Field(max_length=MAX_KEYS)]
"""As a caller sends them."""

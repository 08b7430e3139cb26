"""Amounts and vectors of amounts, exact.

An amount is an integer number of thousandths (1 GPU is 1000), so that 0.1 + 0.2 is 0.3 and no decision hangs on
rounding. A vector (`Amounts`) is a tuple of (resource key, amount) pairs sorted by key: it hashes, compares and
iterates fast, and equal vectors are equal objects of the same shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Final, NewType

from fairpool.core.errors import InvalidAmount, InvalidInput
from fairpool.core.ids import check_key

Amount = NewType("Amount", int)
"""Thousandths of a unit."""

Amounts = tuple[tuple[str, int], ...]
"""Pairs of resource key and thousandths, sorted by key; a key that is absent stands for nothing of it."""

WHOLE: Final = 1000
"""Thousandths in one unit."""

MAX_UNITS: Final = 10**15
"""The largest amount, in units. Sums of a thousand of them still fit a signed 64-bit column in thousandths."""

GPU: Final = "gpu"
MCPU: Final = "mcpu"
MEMORY_MB: Final = "memory_mb"
STEP_RUN: Final = "step_run"

UNMETERED_BY_DEFAULT: Final = frozenset({MCPU, MEMORY_MB, STEP_RUN})
"""Keys that are unbounded in a pool that does not list them (S5)."""

NOTHING: Final[Amounts] = ()


def amount(value: object) -> Amount:
    """The exact amount that `value` (int, Decimal, text, or a float as a parser gives it) stands for.

    Raises InvalidAmount for what is negative, has more than three fractional digits, exceeds 10^15, or is no number.
    A float counts as the shortest decimal that reads back as it: 0.1 is one tenth, not its binary neighbour.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        raise _refused(value, "is not a number")
    if isinstance(value, int):
        thousandths = value * WHOLE
    else:
        thousandths = _thousandths(value)
    if thousandths < 0:
        raise _refused(value, "is negative")
    if thousandths > MAX_UNITS * WHOLE:
        raise _refused(value, "is too large")
    return Amount(thousandths)


def _thousandths(value: float | str | Decimal) -> int:
    try:
        exact = Decimal(str(value).strip())
    except InvalidOperation:
        raise _refused(value, "is not a number") from None
    if not exact.is_finite():
        raise _refused(value, "is not a finite number")
    if abs(exact) > MAX_UNITS:
        # Refused before scaling: the context's 28 digits would round it, and 1e999999 would take for ever.
        raise _refused(value, "is negative" if exact < 0 else "is too large")
    if exact.is_zero():
        return 0
    if exact.adjusted() < -3:
        raise _refused(value, "has more than three fractional digits")
    scaled = exact.scaleb(3)
    if scaled != scaled.to_integral_value():
        raise _refused(value, "has more than three fractional digits")
    return int(scaled)


def _refused(value: object, why: str) -> InvalidAmount:
    shown = str(value)
    shown = shown if len(shown) <= 40 else shown[:40] + "…"
    return InvalidAmount(
        f"amount {shown!r} {why}",
        value=shown,
        possible=f"a number from 0 to {MAX_UNITS} with at most three fractional digits",
    )


def show(thousandths: int) -> str:
    """The amount as people write it: ``2``, ``0.5``."""
    whole, rest = divmod(abs(thousandths), WHOLE)
    sign = "-" if thousandths < 0 else ""
    return f"{sign}{whole}.{rest:03d}".rstrip("0") if rest else f"{sign}{whole}"


def plain(thousandths: int) -> int | float:
    """The amount as JSON carries it: an integer where it is one, else a decimal that reads back exactly."""
    whole, rest = divmod(thousandths, WHOLE)
    return float(show(thousandths)) if rest else whole


def vector(units: Mapping[str, object]) -> Amounts:
    """A vector from keys and values as people write them; keys with 0 are left out.

    Raises InvalidName or InvalidAmount, with the key as the field.
    """
    pairs = []
    for key, value in units.items():
        try:
            pairs.append((check_key(str(key)), int(amount(value))))
        except InvalidInput as error:
            raise error.at(str(key)) from None
    return tuple(sorted(pair for pair in pairs if pair[1]))


def of(mapping: Mapping[str, int]) -> Amounts:
    """A vector from keys and thousandths; keys with 0 are left out."""
    return tuple(sorted((key, value) for key, value in mapping.items() if value))


def get(amounts: Amounts, key: str, default: int = 0) -> int:
    """What `amounts` holds of `key`; vectors are short, so a scan beats a dictionary."""
    for name, value in amounts:
        if name == key:
            return value
    return default


def total(vectors: Iterable[Amounts]) -> Amounts:
    """The sum of the vectors."""
    sums: dict[str, int] = {}
    for amounts in vectors:
        for key, value in amounts:
            sums[key] = sums.get(key, 0) + value
    return of(sums)


def plain_vector(amounts: Iterable[tuple[str, int]]) -> dict[str, int | float]:
    """The vector as JSON carries it."""
    return {key: plain(value) for key, value in amounts}

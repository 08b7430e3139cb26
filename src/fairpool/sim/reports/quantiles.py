"""Figures of many numbers: means, quantiles, and how they are distributed. Exact: whole numbers in, fractions out."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction

from fairpool.core.ids import SECOND

MEDIAN = Fraction(1, 2)
P95 = Fraction(95, 100)
POINTS = 120
"""Points of a distribution: as many as a chart of some hundreds of pixels shows."""


def mean(numbers: Sequence[int]) -> Fraction:
    """The mean of at least one number."""
    return Fraction(sum(numbers), len(numbers))


def quantile(ordered: Sequence[int], share: Fraction) -> Fraction:
    """The number below which that share of the others lies; interpolated between two, the first and the last being
    the least and the most (as `statistics.quantiles(method="inclusive")`). `ordered` is sorted and not empty."""
    place = share * (len(ordered) - 1)
    below = place.numerator // place.denominator
    if below + 1 >= len(ordered):
        return Fraction(ordered[-1])
    return ordered[below] + (place - below) * (ordered[below + 1] - ordered[below])


def distribution(ordered: Sequence[int], *, least: int = SECOND) -> list[tuple[int, Fraction]]:
    """Pairs of a length of time and the share of numbers no larger, on steps that grow by a constant factor from
    `least` to the largest. `ordered` is sorted and not empty."""
    most = max(ordered[-1], least)
    factor = (most / least) ** (1 / (POINTS - 1))
    steps = sorted({least, most, *(min(most, round(least * factor**n)) for n in range(POINTS))})
    return [(step, Fraction(bisect_right(ordered, step), len(ordered))) for step in steps]


def in_order(parts: Sequence[array[int]]) -> array[int]:
    """The numbers of all parts, sorted."""
    return array("q", sorted(number for part in parts for number in part))

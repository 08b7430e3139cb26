"""One measured figure, its recorded range, and how both are printed."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure as measured just now.

    target: what was promised, in words. holds: whether it holds now. recorded: the range seen on the machine that
    README.md names; a figure outside of it is news, not a failure.
    """

    name: str
    value: float
    unit: str
    target: str = ""
    holds: bool | None = None
    recorded: tuple[float, float] | None = None

    def line(self) -> str:
        """The figure as a line of the report."""
        mark = {True: "holds", False: "MISSED", None: ""}[self.holds]
        beside = ""
        if self.recorded is not None:
            low, high = self.recorded
            place = "within" if low <= self.value <= high else "outside"
            beside = f"{place} {low:g} to {high:g}"
        return f"  {self.name:<58} {self.value:>12,.1f} {self.unit:<12} {self.target:<22} {mark:<7} {beside}"


def at_least(name: str, value: float, unit: str, bound: float, recorded: tuple[float, float] | None = None) -> Figure:
    """A figure that should not be lower."""
    target = f"at least {bound:,g}"
    return Figure(name=name, value=value, unit=unit, target=target, holds=value >= bound, recorded=recorded)


def at_most(name: str, value: float, unit: str, bound: float, recorded: tuple[float, float] | None = None) -> Figure:
    """A figure that should not be higher."""
    target = f"at most {bound:,g}"
    return Figure(name=name, value=value, unit=unit, target=target, holds=value <= bound, recorded=recorded)


@contextmanager
def steady() -> Iterator[None]:
    """Measure without the cyclic collector, as the server runs (it freezes what it loaded)."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def timed_s(work: Callable[[], object]) -> float:
    """How long it takes, in seconds of wall time."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def median_of(runs: int, measure: Callable[[], float]) -> float:
    """The median of several runs."""
    return statistics.median(measure() for _ in range(runs))

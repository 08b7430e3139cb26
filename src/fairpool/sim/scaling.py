"""More or less demand of the same kind: jobs drawn from those of a trace."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from random import Random

from fairpool.sim.jobs import Job


def scaled(jobs: Iterable[Job], factor: Fraction, seed: int) -> list[Job]:
    """Each job as often as the factor says: its whole part always, once more with the chance of the rest.

    Sizes, run times and hours of the day stay as they are; the same seed draws the same jobs. factor: at least 0.
    """
    random = Random(seed)
    whole, rest = divmod(factor.numerator, factor.denominator)
    found: list[Job] = []
    for job in jobs:
        times = whole + (random.randrange(factor.denominator) < rest)
        found.extend(job if copy == 0 else replace(job, name=f"{job.name}+{copy}") for copy in range(times))
    return found

"""Two replays of the same jobs: who ends later or sooner in the second, and by how much."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import nlargest, nsmallest
from itertools import count

from fairpool.core.errors import InvalidInput
from fairpool.sim.ledger import Fate, Ledger
from fairpool.sim.reports.measures import REFUSED

SHOWN = 20
"""How many jobs that lose, and how many that gain, are told of."""

ENDED = (Fate.DONE, Fate.EXPIRED)
NEVER_US = 1 << 62
"""By how much later a job ends that never runs: more than any length of time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One job. later_us: how much later it ends in the second replay, negative where sooner; NEVER_US, or less than
    nothing by as much, where it runs in one of them only. at_least: one was cut short before the job's end."""

    job: int
    later_us: int
    at_least: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """All jobs. later_sum_us: over those that ended in both, which are `both`."""

    later: int
    sooner: int
    same: int
    unknown: int
    both: int
    later_sum_us: int
    lose: tuple[Difference, ...]
    gain: tuple[Difference, ...]


def differences(first: Ledger, second: Ledger) -> Differences:
    """The second replay against the first. Raises InvalidInput where they are not of the same jobs."""
    _check_same(first, second)
    known = [one for one in _each(first, second) if one is not None]
    ended = [one.later_us for one in known if not one.at_least and abs(one.later_us) < NEVER_US]
    lose = (one for one in known if one.later_us > 0)
    gain = (one for one in known if one.later_us < 0)
    return Differences(
        later=sum(one.later_us > 0 for one in known),
        sooner=sum(one.later_us < 0 for one in known),
        same=sum(one.later_us == 0 for one in known),
        unknown=min(len(first.jobs), len(second.jobs)) - len(known),
        both=len(ended),
        later_sum_us=sum(ended),
        lose=tuple(nlargest(SHOWN, lose, key=lambda one: (one.later_us, -one.job))),
        gain=tuple(nsmallest(SHOWN, gain, key=lambda one: (one.later_us, one.job))),
    )


def _check_same(first: Ledger, second: Ledger) -> None:
    for number, one, other in zip(count(), first.jobs, second.jobs, strict=False):
        if one.name != other.name:
            raise InvalidInput(
                f"job {number} is {one.name!r} in one replay and {other.name!r} in the other",
                field="jobs",
                possible="two replays of the same jobs in the same order",
            )


def _each(first: Ledger, second: Ledger) -> Iterator[Difference | None]:
    """Each job that arrived in both; None where nothing can be said of it."""
    fates: Iterable[tuple[int, int]] = zip(first.fate, second.fate, strict=False)
    for job, (before, after) in enumerate(fates):
        if before in ENDED and after in ENDED:
            yield Difference(job=job, later_us=second.ended[job] - first.ended[job])
        else:
            yield _uneven(job, first, second)


def _uneven(job: int, first: Ledger, second: Ledger) -> Difference | None:
    """A job that did not end in both. Refused in one only: it never runs there. Cut short in one: it ends later than
    that replay did, which says something only where the other ended it before."""
    before, after = Fate(first.fate[job]), Fate(second.fate[job])
    if before in REFUSED and after in REFUSED:
        return Difference(job=job, later_us=0)
    if after in REFUSED:
        return Difference(job=job, later_us=NEVER_US)
    if before in REFUSED:
        return Difference(job=job, later_us=-NEVER_US)
    if before in ENDED and first.ended[job] < second.ended_at:
        return Difference(job=job, later_us=second.ended_at - first.ended[job], at_least=True)
    if after in ENDED and second.ended[job] < first.ended_at:
        return Difference(job=job, later_us=second.ended[job] - first.ended_at, at_least=True)
    return None

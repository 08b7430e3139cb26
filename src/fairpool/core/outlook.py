"""What a look ahead has found: when those who wait will start, as far as is known, and what that rests on (S37).

An outlook holds for one moment and all who waited then; `core.forecast` makes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from fairpool.core.ids import Instant, RequestId
from fairpool.core.usual import Basis

MOST_UNKNOWN = 3  # requests that an answer names


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """One thing that an estimate rests on. name, finished: whose run times, and how many were seen.
    request: one of those whose end is reckoned so; None where nobody's."""

    basis: Basis
    name: str = ""
    finished: int = 0
    request: RequestId | None = None

    @property
    def kind(self) -> Kind:
        """What it has in common with others that are told once."""
        return self.basis, self.name


Kind = tuple[Basis, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """That a request starts at about `about`, if nothing more arrives: as often before as after it.

    low, high: between them in about 8 of 10 cases; both are `about` where all run times are declared. high: None where
    some futures do not reach it. grounds: what counts for most first.
    """

    low: Instant
    about: Instant
    high: Instant | None
    grounds: tuple[Ground, ...]


class Why(StrEnum):
    """Why nothing can be said."""

    RUN_TIMES = "run times"  # nobody knows how long running work takes
    GIVES_UP = "gives up"  # it will have waited as long as it is willing to
    NOTHING_ENDS = "nothing ends"  # nothing that is known to end makes room for it
    TOO_FAR = "too far"  # more starts and ends before it than are looked at
    BUSY = "busy"  # too many other questions have to be answered first


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """That nothing can be said of when a request starts. requests: some of those of whom nothing is known.
    later_than: it does not start before, as far as was looked; None where that is not known either."""

    why: Why
    requests: tuple[RequestId, ...] = ()
    later_than: Instant | None = None


class Start(NamedTuple):
    """When a request starts in one future. after: how many ends came before; drawn: whether any had to be drawn."""

    at: Instant
    after: int
    drawn: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Future:
    """One way in which things may go on.

    ended: what ended, one after the other, by kind; first: one of each kind. gone: who gave up. why: what kept the
    others from starting, and until when it was looked. unknown: running work of whose end nothing is known.
    """

    starts: Mapping[RequestId, Start]
    ended: Sequence[Kind]
    first: Mapping[Kind, Ground]
    gone: frozenset[RequestId]
    why: Why
    until: Instant
    unknown: tuple[RequestId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What is said at the moment `as_of` of all who waited then. claimed: for whom others have been told to let go."""

    as_of: Instant
    futures: tuple[Future, ...]
    claimed: frozenset[RequestId]

    def of(self, request: RequestId) -> Estimate | Unknown:
        """When one of them starts."""
        futures = self.futures
        surely = futures[0].starts.get(request)
        if surely is not None and not surely.drawn:
            futures = futures[:1]  # nothing had to be drawn: all futures are alike so far
        starts = [future.starts.get(request) for future in futures]
        found = sorted(start.at for start in starts if start is not None)
        if len(found) <= len(futures) // 2:
            return _unknown(futures, request)
        return Estimate(
            low=self.as_of if request in self.claimed else found[0],  # they may let go at once
            about=found[len(futures) // 2],
            high=found[-1] if len(found) == len(futures) else None,
            grounds=_grounds(futures, starts) or (Ground(basis=Basis.GRACE_PERIOD),),
        )


def _unknown(futures: Sequence[Future], request: RequestId) -> Unknown:
    missed = next(future for future in futures if request not in future.starts)
    if request in missed.gone:
        return Unknown(why=Why.GIVES_UP)
    if missed.why is Why.NOTHING_ENDS and missed.unknown:
        return Unknown(why=Why.RUN_TIMES, requests=missed.unknown[:MOST_UNKNOWN])
    if missed.why is not Why.TOO_FAR:
        return Unknown(why=missed.why)
    reached = sorted(_start_or_end(future, request) for future in futures)
    return Unknown(why=Why.TOO_FAR, later_than=reached[len(reached) // 2])


def _start_or_end(future: Future, request: RequestId) -> Instant:
    start = future.starts.get(request)
    return start.at if start is not None else future.until


def _grounds(futures: Sequence[Future], starts: Sequence[Start | None]) -> tuple[Ground, ...]:
    """What ended before the start, each kind once."""
    counted: Counter[Kind] = Counter()
    known: dict[Kind, Ground] = {}
    for future, start in zip(futures, starts, strict=True):
        before = Counter(future.ended[: start.after] if start is not None else future.ended)
        counted += before
        known = {kind: future.first[kind] for kind in before} | known
    return tuple(known[kind] for kind in sorted(counted, key=lambda kind: (-counted[kind], kind)))

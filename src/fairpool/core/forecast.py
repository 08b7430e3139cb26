"""When a waiting request will start, as far as is known: the planner run forward over what is expected to end (S37).

How long work runs is known in part only. So the planner is run forward several times, into several futures: in each of
them all work takes one of the times that such work usually takes, drawn anew, so that over all futures together short
and long times are drawn as often as they occur, and each has a pace of its own. What is drawn follows from the
request's id: asked twice, the same is answered. Where everything is declared there is one future.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from heapq import heappop, heappush

from fairpool.core.ids import SECOND, Instant, PoolId, RequestId
from fairpool.core.plan import Plan
from fairpool.core.planner import decide
from fairpool.core.requests import Request, Status
from fairpool.core.usual import Basis, Usual, Usually, nothing_usual
from fairpool.core.world import World

MAX_STEPS = 200  # ends looked at; an estimate beyond so many endings would be worth little
MAX_DRAWN_STEPS = 50  # decisions of one future where run times are drawn: there are several of them
GRAIN = 10
"""Where run times are drawn, ends count as one that lie within this part of the time gone forward: what is drawn is not
known to a tenth, and a decision for each of hundreds of ends would keep others waiting."""

PACES = (10, 6, 18, 3, 40)
"""A future each, and how many tenths of the usual time all of its work takes. Work that arrives meanwhile and days
unlike others make whole pools faster or slower; how much, the first jobs of a public trace say
(docs/explanation/when-will-it-start.md)."""

MOST_UNKNOWN = 3  # requests that an answer names


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """One thing that an estimate rests on. name, finished: whose run times, and how many were seen.
    request: one of those whose end is reckoned so; None where nobody's."""

    basis: Basis
    name: str = ""
    finished: int = 0
    request: RequestId | None = None


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
    TOO_FAR = "too far"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """That nothing can be said of when a request starts. requests: some of those of whom nothing is known."""

    why: Why
    requests: tuple[RequestId, ...] = ()


def estimate_start(
    world: World, request: RequestId, now: Instant, usually: Usually = nothing_usual
) -> Estimate | Unknown:
    """When the request starts if nothing more arrives and all work takes what it declared, or what such work usually
    takes."""
    expected = _Expected(world, request, usually)
    first = _Future(world, request, expected, 0).run(now)
    futures = [first]
    if first.is_drawn:
        futures += [_Future(world, request, expected, number).run(now) for number in range(1, len(PACES))]
    starts = sorted(future.starts_at for future in futures if future.starts_at is not None)
    if len(starts) <= len(futures) // 2:
        return _unknown(next(future for future in futures if future.starts_at is None))
    return Estimate(
        low=now if world.claim_of(request) is not None else starts[0],  # they may let go at once
        about=starts[len(futures) // 2],
        high=starts[-1] if len(starts) == len(futures) else None,
        grounds=_grounds(futures) or (Ground(basis=Basis.GRACE_PERIOD),),
    )


def _unknown(future: _Future) -> Unknown:
    why = future.why
    if why is Why.NOTHING_ENDS and future.unknown:
        return Unknown(why=Why.RUN_TIMES, requests=tuple(sorted(future.unknown)[:MOST_UNKNOWN]))
    return Unknown(why=why)


def _grounds(futures: list[_Future]) -> tuple[Ground, ...]:
    """What ended before the start, each kind once."""
    counted: Counter[tuple[Basis, str]] = Counter()
    known: dict[tuple[Basis, str], Ground] = {}
    for future in futures:
        for ground in future.grounds:
            counted[ground.basis, ground.name] += 1
            known.setdefault((ground.basis, ground.name), ground)
    return tuple(known[kind] for kind in sorted(counted, key=lambda kind: (-counted[kind], kind)))


class _Expected:
    """What is known of how long work runs, in the pools that matter to the request."""

    def __init__(self, world: World, request: RequestId, usually: Usually) -> None:
        self._usually = usually
        self._known: dict[RequestId, Usual | None] = {}
        self.pools = _pools_that_matter(world, request)

    def usual(self, request: Request) -> Usual | None:
        """Of the request's kind. What it declared itself says more than anything but its own step's run times."""
        if request.id not in self._known:
            found = self._usually(request)
            if found is not None and request.max_runtime_s is not None and found.basis is not Basis.STEP:
                found = None
            self._known[request.id] = found
        return self._known[request.id]


def _pools_that_matter(world: World, request: RequestId) -> set[PoolId]:
    """Those where it could start, and those that others who wait there could start in."""
    home = world.queue.home(request)
    pools = {candidate.pool for candidate in home.key.candidates} if home is not None else set()
    others = [set(found) for found in world.queue.preferences()]
    while True:
        reached = pools.union(*(found for found in others if found & pools))
        if reached == pools:
            return pools
        pools = reached


class _Future:
    """One future. `run` goes into it and takes it back."""

    def __init__(self, world: World, request: RequestId, expected: _Expected, number: int) -> None:
        self.starts_at: Instant | None = None
        self.why = Why.TOO_FAR
        self.is_drawn = False
        self.grounds: list[Ground] = []
        self.unknown: set[RequestId] = set()
        self._world = world
        self._request = request
        self._expected = expected
        self._number = number
        self._ends: list[tuple[Instant, RequestId, Ground]] = []

    def run(self, now: Instant) -> _Future:
        """Go forward until the request starts, or nothing more is known."""
        with self._world.what_if():
            plan = decide(self._world, now)
            for pool in sorted(self._expected.pools):
                for held in self._world.books[pool].allocations.values():
                    self._expect(held.request, held.granted_at, now)
            self._go_on(now, plan)
        return self

    def _go_on(self, now: Instant, plan: Plan) -> None:
        world = self._world
        began = now
        for step in range(MAX_STEPS):
            status = world.status_of(self._request)
            if status in (Status.ALLOCATED, Status.PREEMPTING):
                self.starts_at = now
                return
            if self.is_drawn and step >= MAX_DRAWN_STEPS:
                return
            upcoming = self._next(now)
            if status is None or upcoming is None:
                self.why = Why.GIVES_UP if status is None else Why.NOTHING_ENDS
                return
            now = self._end_from(upcoming, began)
            plan = decide(world, now)
            for grant in plan.grants:
                if grant.allocation.pool in self._expected.pools:
                    self._expect(grant.allocation.request, now, now)

    def _expect(self, request: Request, granted_at: Instant, now: Instant) -> None:
        """Note when it will end, where anything is known of that."""
        usual, declared_s = self._expected.usual(request), request.max_runtime_s
        if usual is None:
            if declared_s is None:
                self.unknown.add(request.id)
                return
            length_us, ground = declared_s * SECOND, Ground(basis=Basis.MAX_RUNTIME, request=request.id)
        else:
            self.is_drawn |= usual.varies
            ran_us = now - granted_at
            left_us = usual.length_us(self._permille(request.id), ran_us) - ran_us
            length_us = ran_us + (left_us * PACES[self._number] // 10 if usual.varies else left_us)
            if declared_s is not None:
                length_us = min(length_us, declared_s * SECOND)
            ground = Ground(basis=usual.basis, name=usual.name, finished=usual.finished, request=request.id)
        heappush(self._ends, (Instant(max(granted_at + length_us, now)), request.id, ground))

    def _permille(self, request: RequestId) -> int:
        """Which of its usual run times it takes here: somewhere by its id, and over the futures evenly from there."""
        place = (_place(request) + self._number * 1_000 // len(PACES)) % 1_000
        return 10 + place * 98 // 100

    def _next(self, now: Instant) -> Instant | None:
        """What time brings next: an end, or a deadline that the decision itself handles."""
        while self._ends and self._ends[0][1] not in self._world.allocations:
            heappop(self._ends)  # it was evicted before
        moment = self._world.moments.next()
        ends_at = self._ends[0][0] if self._ends else None
        if moment is not None and moment > now and (ends_at is None or moment < ends_at):
            return moment
        return ends_at

    def _end_from(self, upcoming: Instant, began: Instant) -> Instant:
        """Let what ends then end, where run times are drawn with what ends hardly later; when that is."""
        world, last = self._world, upcoming
        until = Instant(upcoming + (upcoming - began) // GRAIN) if self.is_drawn else upcoming
        moment = world.moments.next()
        if moment is not None and moment > upcoming:
            until = min(until, moment)
        while self._ends and self._ends[0][0] <= until:
            last, request, ground = heappop(self._ends)
            if request in world.allocations:
                world.let_go(request)
                self.grounds.append(ground)
        return last


def _place(request: RequestId) -> int:
    """Somewhere from 0 to 999, for ids that follow each other far apart (Fowler, Noll and Vo)."""
    mixed = 2_166_136_261
    for byte in request.encode():
        mixed = (mixed ^ byte) * 16_777_619 % 2**32
    return mixed * 1_000 >> 32

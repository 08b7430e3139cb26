"""When those who wait will start, as far as is known: the planner run forward over what is expected to end (S37).

How long work runs is known in part only. So the planner is run forward several times, into several futures: in each of
them all work takes one of the times that such work usually takes, drawn anew, so that over all futures together short
and long times are drawn as often as they occur, and each has a pace of its own. What is drawn follows from the
request's id: asked twice, the same is answered. Where everything is declared there is one future.

One look ahead answers for everybody who waits. It runs on a world of its own, made of values, and pauses after every
small step: nobody who wants a decision has to wait for more than one of them.
"""

from __future__ import annotations

from heapq import heappop, heappush

from fairpool.core.front import Front, front_of, pools_of
from fairpool.core.ids import SECOND, Instant, RequestId
from fairpool.core.outlook import Estimate, Future, Ground, Kind, Outlook, Start, Unknown, Why
from fairpool.core.pauses import InSteps, at_once
from fairpool.core.plan import Plan
from fairpool.core.planner import decide
from fairpool.core.requests import Request
from fairpool.core.usual import Basis, Usual, Usually, nothing_usual
from fairpool.core.world import World

MAX_EVENTS = 4_000
"""Starts and ends in one future. What comes after so many is worth little, and others want to know something too."""

MAX_ENDS = 25
"""Ends that are looked at together: each may let somebody start, and a step is to take a few milliseconds at most."""

GRAIN = 10
"""Where run times are drawn, ends count as one that lie within this part of the time gone forward: what is drawn is not
known to a tenth, and a decision for each of hundreds of ends would keep others waiting."""

PACES = (10, 6, 18, 3, 40)
"""A future each, and how many tenths of the usual time all of its work takes. Work that arrives meanwhile and days
unlike others make whole pools faster or slower; how much, the first jobs of a public trace say
(docs/explanation/when-will-it-start.md)."""

_AT_ONCE = 50
"""Running requests that are looked at between two pauses."""


def look_ahead(
    front: Front, now: Instant, usually: Usually = nothing_usual, until: RequestId | None = None
) -> InSteps[Outlook]:
    """When everybody in front starts if nothing more arrives and all work takes what it declared, or what such work
    usually takes. until: whoever alone is of interest; when it has started nothing more is looked at."""
    expected = _Expected(usually)
    first = _Walk(front, expected, 0, until)
    futures = [(yield from first.run(now))]
    if first.is_drawn:
        for number in range(1, len(PACES)):
            futures.append((yield from _Walk(front, expected, number, until).run(now)))
    return Outlook(as_of=now, futures=tuple(futures), claimed=first.claimed)


def estimate_start(
    world: World, request: RequestId, now: Instant, usually: Usually = nothing_usual
) -> Estimate | Unknown:
    """When one request starts, without a pause. Raises UnknownObject for one that is not queued."""
    front = front_of(world, pools_of(world, world.queue.request(request)))
    return at_once(look_ahead(front, now, usually, until=request)).of(request)


class _Expected:
    """What is known of how long work runs."""

    def __init__(self, usually: Usually) -> None:
        self._usually = usually
        self._known: dict[RequestId, Usual | None] = {}

    def usual(self, request: Request) -> Usual | None:
        """Of the request's kind. What it declared itself says more than anything but its own step's run times."""
        if request.id not in self._known:
            found = self._usually(request)
            if found is not None and request.max_runtime_s is not None and found.basis is not Basis.STEP:
                found = None
            self._known[request.id] = found
        return self._known[request.id]


class _Walk:
    """The way into one future."""

    def __init__(self, front: Front, expected: _Expected, number: int, until: RequestId | None) -> None:
        self.is_drawn = False
        self.claimed: frozenset[RequestId] = frozenset()
        self._front = front
        self._last_known = {request for _, request in front.cut.values()}
        self._expected = expected
        self._number = number
        self._until = until
        self._starts: dict[RequestId, Start] = {}
        self._ended: list[Kind] = []
        self._first: dict[Kind, Ground] = {}
        self._gone: set[RequestId] = set()
        self._unknown: set[RequestId] = set()
        self._ends: list[tuple[Instant, RequestId, Ground]] = []

    def run(self, now: Instant) -> InSteps[Future]:
        """Go forward until everybody has started, nothing more is known, or it has been far enough."""
        world = yield from World.restoring(self._front.snapshot)
        running = list(world.allocations.values())
        plan = decide(world, now)
        self.claimed = frozenset(world.claims)
        for number, held in enumerate(running):
            if held.request.id in world.allocations:
                self._expect(held.request, held.granted_at, now)
            if number % _AT_ONCE == 0:
                yield
        why, until = yield from self._go_on(world, plan, now)
        return Future(
            starts=self._starts,
            ended=self._ended,
            first=self._first,
            gone=frozenset(self._gone),
            why=why,
            until=until,
            unknown=tuple(sorted(self._unknown)),
        )

    def _go_on(self, world: World, plan: Plan, now: Instant) -> InSteps[tuple[Why, Instant]]:
        """Returns what kept the rest from starting, and when that was."""
        began = now
        while True:
            yield
            if not self._last_known.isdisjoint(grant.request for grant in plan.grants):
                return Why.TOO_FAR, now  # who comes next in its class is not here: what would start now is not known
            self._note(plan, now)
            if self._is_told(world) or len(self._starts) + len(self._ended) >= MAX_EVENTS:
                return Why.TOO_FAR, now
            upcoming = self._next(world, now)
            if upcoming is None:
                return Why.NOTHING_ENDS, now
            now = self._end_from(world, upcoming, began)
            plan = decide(world, now)

    def _is_told(self, world: World) -> bool:
        """Whether everything is known that is of interest."""
        if self._until is None:
            return not len(world.queue)
        return self._until in self._starts or self._until in self._gone

    def _note(self, plan: Plan, now: Instant) -> None:
        """What a decision says of those who waited."""
        for grant in plan.grants:
            self._starts[grant.request] = Start(now, len(self._ended), self.is_drawn)
        for grant in plan.grants:
            self._expect(grant.allocation.request, now, now)
        self._gone.update(reject.request for reject in plan.rejects)
        self._gone.update(cancel.request for cancel in plan.cancels)

    def _expect(self, request: Request, granted_at: Instant, now: Instant) -> None:
        """Note when it will end, where anything is known of that."""
        usual, declared_s = self._expected.usual(request), request.max_runtime_s
        if usual is None:
            if declared_s is None:
                self._unknown.add(request.id)
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

    def _next(self, world: World, now: Instant) -> Instant | None:
        """What time brings next: an end, or a deadline that the decision itself handles."""
        while self._ends and self._ends[0][1] not in world.allocations:
            heappop(self._ends)  # it was evicted before
        moment = world.moments.next()
        ends_at = self._ends[0][0] if self._ends else None
        if moment is not None and moment > now and (ends_at is None or moment < ends_at):
            return moment
        return ends_at

    def _end_from(self, world: World, upcoming: Instant, began: Instant) -> Instant:
        """Let what ends then end, where run times are drawn with what ends hardly later; when that is."""
        last = upcoming
        until = Instant(upcoming + (upcoming - began) // GRAIN) if self.is_drawn else upcoming
        moment = world.moments.next()
        if moment is not None and moment > upcoming:
            until = min(until, moment)
        ended = 0
        while self._ends and self._ends[0][0] <= until and ended < MAX_ENDS:
            last, request, ground = heappop(self._ends)
            if request in world.allocations:
                world.let_go(request)
                self._ended.append(ground.kind)
                self._first.setdefault(ground.kind, ground)
                ended += 1
        return last


def _place(request: RequestId) -> int:
    """Somewhere from 0 to 999, for ids that follow each other far apart (Fowler, Noll and Vo).

    Their last byte moves the highest bits, which count here, by little: so the lower ones are mixed into these.
    """
    mixed = 2_166_136_261
    for byte in request.encode():
        mixed = (mixed ^ byte) * 16_777_619 % 2**32
    mixed = (mixed ^ mixed >> 15) * 2_246_822_519 % 2**32
    return mixed * 1_000 >> 32

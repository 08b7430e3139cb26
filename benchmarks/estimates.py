"""How good estimates of when something starts are: Philly's jobs in one shared pool, each estimate against the truth.

Experience is fed from the replay itself, as jobs end; nothing of the future is known to it. Beside it stands what a
scheduler says that goes by limits alone. The trace has none, so two are made up: owners who know how long each job
runs and declare the next step of a usual ladder, and one limit for all.

What an estimate costs is what a server does for it: a copy of what is needed, and a look ahead for all who wait, in
steps between which a decision may be made.
"""

from __future__ import annotations

import gc
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from statistics import median

from benchmarks import philly
from benchmarks.figures import Figure, at_most
from fairpool.app.experience import Experience, Work, owner_of
from fairpool.app.ports import Stored
from fairpool.core.forecast import estimate_start, look_ahead
from fairpool.core.front import front_of, pools_of
from fairpool.core.ids import SECOND, Instant, RequestId
from fairpool.core.outlook import Estimate, Outlook, Unknown
from fairpool.core.requests import Request, Status
from fairpool.core.usual import Basis, Usual
from fairpool.sim.jobs import Job
from fairpool.sim.ledger import Fate
from fairpool.sim.owners import Owners
from fairpool.sim.replay import Replay
from fairpool.store.memory import MemoryStore

EVERY = 30
"""Of the jobs that have to wait at their arrival, every so many."""

HOUR_S, DAY_S = 3_600, 86_400
LADDER_S = (HOUR_S, 4 * HOUR_S, 12 * HOUR_S, DAY_S, 2 * DAY_S, 4 * DAY_S, 7 * DAY_S, 14 * DAY_S, 30 * DAY_S, 90 * DAY_S)
ONE_LIMIT_S = 7 * DAY_S

MOST_HELD_MS = 20
"""For so long at most a decision may wait for estimates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What was said of one job when it arrived. laddered, limited: when it starts, by limits alone."""

    job: int
    at: Instant
    ours: Estimate | Unknown
    laddered: Estimate | Unknown
    limited: Estimate | Unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one look ahead took, for so many who waited. copy_s, longest_s: what keeps a decision waiting."""

    waiting: int
    copy_s: float
    whole_s: float
    longest_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limit(Usual):
    """Everything takes its whole limit; what is beyond it ends now."""

    def length_us(self, permille: int, ran_us: int = 0) -> int:
        return max(ran_us, self.lengths_us[0])


class _Watched(Replay):
    """A replay that asks when jobs will start which have to wait, and learns from those that end."""

    def __init__(self, rules: Stored, jobs: Iterable[Job]) -> None:
        super().__init__(rules, jobs, owners=Owners(), reader=MemoryStore().reader)
        self.asked: list[Asked] = []
        self.costs: list[Cost] = []
        self._experience = Experience()
        self._waited = 0

    def _pass(self, now: Instant) -> None:
        known = len(self.ledger.jobs)
        super()._pass(now)
        for number in range(known, len(self.ledger.jobs)):
            if self._world.status_of(RequestId(f"{number:08d}")) is Status.QUEUED:
                self._waited += 1
                if self._waited % EVERY == 0:
                    self._ask(number, now)

    def _ask(self, number: int, now: Instant) -> None:
        request = RequestId(f"{number:08d}")
        gc.disable()  # what the replay has piled up is none of a server's
        ours = self._look_ahead(request, now).of(request)
        gc.enable()
        laddered = estimate_start(self._world, request, now, self._by_limit(lambda job: _rung_s(job.run_us)))
        limited = estimate_start(self._world, request, now, self._by_limit(lambda job: ONE_LIMIT_S))
        self.asked.append(Asked(job=number, at=now, ours=ours, laddered=laddered, limited=limited))

    def _look_ahead(self, request: RequestId, now: Instant) -> Outlook:
        """As a server does for whoever asks, and all who ask beside it."""
        began = time.process_time()
        front = front_of(self._world, pools_of(self._world, self._world.request(request)))
        copied = paused = time.process_time()
        looking, longest_s = look_ahead(front, now, self._usual), 0.0
        while True:
            try:
                next(looking)
            except StopIteration as done:
                ended = time.process_time()
                longest_s = max(longest_s, ended - paused)
                waiting = len(front.waiting)
                self.costs.append(
                    Cost(waiting=waiting, copy_s=copied - began, whole_s=ended - began, longest_s=longest_s)
                )
                outlook: Outlook = done.value
                return outlook
            at = time.process_time()
            longest_s, paused = max(longest_s, at - paused), at

    def _usual(self, request: Request) -> Usual | None:
        return self._experience.usual(_work(self._job(request)))

    def _by_limit(self, limit_s: Callable[[Job], int]) -> Callable[[Request], Usual]:
        def limit(request: Request) -> Usual:
            length_us = limit_s(self._job(request)) * SECOND
            return _Limit(basis=Basis.MAX_RUNTIME, name="", lengths_us=(length_us,), cumulated=(1,))

        return limit

    def _job(self, request: Request) -> Job:
        return self.ledger.jobs[int(request.id[:8])]

    def _finish(self, number: int, request: RequestId, now: Instant, fate: Fate) -> None:
        super()._finish(number, request, now, fate)
        job = self.ledger.jobs[number]
        self._experience.saw(_work(job), self.ledger.held_us[number], now)


def _work(job: Job) -> Work:
    return Work(owner=owner_of(job.subjects), step=job.recurs_as)


def _rung_s(run_us: int) -> int:
    return LADDER_S[min(bisect_left(LADDER_S, run_us / SECOND), len(LADDER_S) - 1)]


def run() -> Iterator[Figure]:
    """All figures; they need the trace beside the checkout."""
    if not philly.TRACES.is_dir():
        print("  (no traces in ../shared: the figures of Philly are left out)")
        return
    replay = _Watched(philly.shared(), philly.jobs())
    replay.run()
    yield from _figures(replay)


def _figures(replay: _Watched) -> Iterator[Figure]:
    asked, starts = replay.asked, replay.ledger.first_start
    ours = [(one, one.ours) for one in asked if isinstance(one.ours, Estimate)]
    held = sum(
        said.low <= starts[one.job] and (said.high is None or starts[one.job] <= said.high) for one, said in ours
    )
    widths_s = [(said.high - said.low) / SECOND for _, said in ours if said.high is not None]
    waits_s = [(starts[one.job] - one.at) / SECOND for one in asked]
    yield Figure(name="Philly, jobs asked about at their arrival", value=len(asked), unit="jobs")
    yield Figure(name="… how long they waited, median", value=median(waits_s) / 60, unit="min")
    yield Figure(name="… of which something could be said", value=100 * len(ours) / len(asked), unit="%")
    yield Figure(name="ranges that held the truth", value=100 * held / len(ours), unit="%")
    yield Figure(name="… how wide they are, median", value=median(widths_s) / 60, unit="min")
    for name, said_of in (
        ("error of the estimate, median of all jobs", lambda one: one.ours),
        ("… by limits, each the next step above the truth", lambda one: one.laddered),
        ("… by one limit of 7 days for all", lambda one: one.limited),
    ):
        yield Figure(name=name, value=median(_errors_s(asked, starts, said_of)) / 60, unit="min")
    yield from _costs(replay.costs)


def _costs(costs: Sequence[Cost]) -> Iterator[Figure]:
    yield Figure(name="who waits when somebody asks, median", value=median(cost.waiting for cost in costs), unit="jobs")
    yield Figure(name="… and at most", value=max(cost.waiting for cost in costs), unit="jobs")
    whole_ms = [cost.whole_s * 1_000 for cost in costs]
    yield Figure(name="a look ahead for all of them, median", value=median(whole_ms), unit="ms")
    yield Figure(name="… and at most", value=max(whole_ms), unit="ms")
    each_us = [cost.whole_s * 1_000_000 / cost.waiting for cost in costs]
    yield Figure(name="… for each who waits, median", value=median(each_us), unit="µs")
    yield Figure(name="a decision waits for the copy at most", value=max(c.copy_s for c in costs) * 1_000, unit="ms")
    steps_ms = [cost.longest_s * 1_000 for cost in costs]
    yield Figure(name="… and for one step of the look, median of the longest", value=median(steps_ms), unit="ms")
    yield at_most(name="… and at most", value=max(steps_ms), unit="ms", bound=MOST_HELD_MS)


def _errors_s(
    asked: Sequence[Asked], starts: Sequence[int], said_of: Callable[[Asked], Estimate | Unknown]
) -> list[float]:
    """By how much each was wrong; where nothing could be said, by more than any bound."""
    said = ((one, said_of(one)) for one in asked)
    return [abs(starts[one.job] - it.about) / SECOND if isinstance(it, Estimate) else inf for one, it in said]

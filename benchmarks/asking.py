"""What a decision waits for while many ask when they start: one scheduler's thread, thousands in line.

The scheduler's thread is that of a server; the store is in memory, so that no disk is measured. Who wants decisions is
a thread beside it. Those who ask do so as soon as they are answered, and cost nothing themselves.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import count
from statistics import median, quantiles
from typing import Any

from benchmarks.figures import Figure, at_most, steady
from fairpool.app.experience import Work as Kind
from fairpool.app.forecaster import Foreseen
from fairpool.app.leading import Leading
from fairpool.app.memory import Memory
from fairpool.app.records import RequestRecord
from fairpool.app.scheduler import Command, Scheduler, Work
from fairpool.app.scheduler_loop import SchedulerLoop
from fairpool.app.transaction import Transaction
from fairpool.app.use_cases import policies, pools, requests, stacks
from fairpool.core.amounts import vector
from fairpool.core.ids import SECOND, Instant, PolicyId, PoolId, RequestId
from fairpool.core.policies import Policy, Subject
from fairpool.core.pools import Pool
from fairpool.core.requests import Demand
from fairpool.store.memory import MemoryStore
from fairpool.testing import SequentialIds

RUNNING, WAITING = 400, 4_000
TEAMS = ("team:red", "team:blue", "team:green", "team:grey")
ASKERS = 100
FOR_S = 15.0
MOST_HELD_MS = 20
"""For so long at most those who ask may keep the thread from a decision, in its own time: of that of others on the same
machine it knows nothing."""


class _Clock:
    def now(self) -> Instant:
        return Instant(time.time_ns() // 1_000)


class _Measured(Scheduler):
    """How long those who ask kept the thread, in its own time."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.asked_ms: list[float] = []
        self.ahead_ms: list[float] = []

    def cycle(self, work: Sequence[Work[Any]], asking_us: int | None = None) -> list[Work[Any]]:
        began, only_asks = time.thread_time(), bool(work) and all(item.command is None for item in work)
        left = super().cycle(work, asking_us)
        if only_asks:
            self.asked_ms.append(1_000 * (time.thread_time() - began))
        return left

    def look_ahead(self) -> None:
        began = time.thread_time()
        super().look_ahead()
        self.ahead_ms.append(1_000 * (time.thread_time() - began))


class _Nobody:
    """Nobody is told."""

    def publish(self, entries: object) -> None:
        del entries

    def elsewhere(self, leader: str) -> None:
        del leader


def _ask(number: int) -> requests.Ask:
    gpus = (1, 1, 2, 1, 4, 1, 8)[number % 7]
    return requests.Ask(
        demand=Demand.of(vector({"gpu": gpus})),
        subjects=(Subject.parse(TEAMS[number % len(TEAMS)]),),
        name="train",
        lease_s=86_400,
    )


def _submitting(number: int) -> Command[RequestRecord]:
    return partial(_submit, _ask(number))


def _submit(ask: requests.Ask, tx: Transaction) -> Callable[[], RequestRecord]:
    return requests.submit(tx, ask)


def _attach(subject: str, tx: Transaction) -> Callable[[], object]:
    return policies.attach(tx, "p", Policy(id=PolicyId(""), pool=PoolId(""), subject=Subject.parse(subject)))


def _create(tx: Transaction) -> Callable[[], object]:
    return pools.create(tx, Pool(id=PoolId(""), name="p", capacity=vector({"gpu": RUNNING})))


def _learn(memory: Memory, now: Instant) -> None:
    """Everybody's work takes from minutes to hours."""
    for subject in TEAMS:
        for number in range(64):
            kind = Kind(owner=subject, step="train")
            memory.experience.saw(kind, (60 + 300 * number) * SECOND, now)


def _busy() -> tuple[SchedulerLoop, _Measured]:
    store, clock = MemoryStore(), _Clock()
    scheduler = _Measured(store, clock, SequentialIds(), _Nobody(), leading=Leading(store.leases, holder="one"))
    loop = SchedulerLoop(scheduler, clock, opening=[stacks.ensure_defaults])
    loop.start()
    commands: list[Command[object]] = [_create, *(partial(_attach, subject) for subject in TEAMS)]
    for command in commands:
        loop.do("alice", command).result()
    loop.ask(_learn).result()
    for future in [loop.do("alice", _submitting(number)) for number in range(RUNNING + WAITING)]:
        future.result()
    return loop, scheduler


def _latencies_ms(loop: SchedulerLoop) -> list[float]:
    """How long decisions take, one after the other: something is submitted, and withdrawn."""
    found, until = [], time.monotonic() + FOR_S
    for number in count():
        if time.monotonic() > until:
            return found
        began = time.perf_counter()
        made = loop.do("alice", _submitting(number)).result()
        found.append(1_000 * (time.perf_counter() - began))
        loop.do("alice", partial(_cancel, made.id)).result()
        time.sleep(0.002)
    return found


def _cancel(request: RequestId, tx: Transaction) -> Callable[[], object]:
    return requests.cancel(tx, request)


class _Askers:
    """So many who ask when a request starts, and why it waits, and ask again as soon as they are told."""

    def __init__(self, loop: SchedulerLoop, waiting: list[RequestId]) -> None:
        self.answers = 0
        self.ages_s: list[float] = []
        self._loop = loop
        self._waiting = waiting
        self._stopping = False

    def __enter__(self) -> _Askers:
        for number in range(ASKERS):
            self._ask(number * 37)
        return self

    def __exit__(self, *of_what: object) -> None:
        self._stopping = True

    def _ask(self, turn: int) -> None:
        if not self._stopping:
            request = self._waiting[turn % len(self._waiting)]
            self._loop.foresee(request).add_done_callback(partial(self._explain, turn, request))

    def _explain(self, turn: int, request: RequestId, done: Future[Foreseen | None]) -> None:
        if done.exception() is not None:
            return  # it is over
        found = done.result()
        if found is not None:
            self.ages_s.append((_Clock().now() - found.as_of) / SECOND)
        self._loop.ask(partial(_explain, request)).add_done_callback(partial(self._told, turn))

    def _told(self, turn: int, done: Future[object]) -> None:
        if done.exception() is None:
            self.answers += 1
            self._ask(turn + 101)


def _explain(request: RequestId, memory: Memory, now: Instant) -> object:
    return requests.explain(memory, now, memory.live[request])


def run() -> Iterator[Figure]:
    """All figures."""
    before_s = sys.getswitchinterval()
    sys.setswitchinterval(0.001)  # as the server does
    loop, measured = _busy()
    try:
        waiting = loop.ask(lambda memory, now: sorted(memory.world.queue)).result()
        with steady():
            quiet = _latencies_ms(loop)
            with _Askers(loop, waiting) as askers:
                asked = _latencies_ms(loop)
    finally:
        loop.stop()
        sys.setswitchinterval(before_s)
    yield Figure(name="a decision while nobody asks, median", value=median(quiet), unit="ms")
    yield Figure(name=f"… while {ASKERS} ask without a pause, median", value=median(asked), unit="ms")
    yield Figure(name="… 99th of 100", value=quantiles(asked, n=100)[98], unit="ms")
    held_ms = max(measured.asked_ms) + max(measured.ahead_ms)
    yield at_most("those who ask keep the thread from it, at most", held_ms, "ms", MOST_HELD_MS)
    yield Figure(name="answers in a second", value=askers.answers / FOR_S, unit="/s")
    yield Figure(name="how old an answer is, median", value=median(askers.ages_s), unit="s")
    yield Figure(name="… and at most", value=max(askers.ages_s), unit="s")

"""The decision core by itself, in one process and without a store."""

from __future__ import annotations

import heapq
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from typing import TypeVar

from benchmarks.figures import Figure, at_least, at_most, median_of, steady
from fairpool.core import events as ev
from fairpool.core.amounts import vector
from fairpool.core.ids import SECOND, Instant, PolicyId, PoolId, RequestId
from fairpool.core.planner import decide
from fairpool.core.policies import Policy, Subject
from fairpool.core.pools import Pool
from fairpool.core.requests import Demand, Request, Status
from fairpool.core.world import World

START = Instant(0)
Result = TypeVar("Result")


def run() -> Iterator[Figure]:
    """All figures of the core."""
    runs = [_steadily(_churn) for _ in range(7)]
    rate = max(rate for rate, _ in runs)  # neighbours on a shared host only make it slower
    yield at_least("grants with churn, 30 policies, 15,000 requests", rate, "per s", 20_000, (17_000, 24_000))
    yield at_most("… time the workload takes, of 66 s that it needs", runs[0][1], "virtual s", 70, (66, 70))
    saturated = median_of(5, lambda: _steadily(_saturated_pass_ms))
    yield at_most("pass over 1,000 policies, 50,000 waiting", saturated, "ms", 20, (7, 12))
    small, large = (_steadily(partial(_marginal_us, queued)) for queued in (1_000, 1_000_000))
    yield Figure(name="one submit and one release, 1,000 queued", value=small, unit="µs", recorded=(160, 300))
    yield Figure(name="one submit and one release, 1,000,000 queued", value=large, unit="µs", recorded=(160, 300))
    yield at_most("… ratio of the two", large / small, "×", 2, (0.9, 1.2))
    evicting = median_of(5, lambda: _steadily(_evict_many_ms))
    yield at_most("one request that evicts 1,000", evicting, "ms", 100, (28, 75))
    yield at_most("memory per queued request beyond 1,000", _bytes_per_request(), "bytes", 1024, (320, 350))


def _steadily(measure: Callable[[], Result]) -> Result:
    """Measure on a clean heap: what earlier measurements left behind would make it slower."""
    with steady():
        return measure()


# ---- churn: the workload of Kueue's own benchmark -------------------------------------------------------------------

GROUPS, QUEUES = 5, 6
# per queue: how many, units, one every so many ms, running so many ms
LOAD = ((350, 1, 100, 200), (100, 5, 500, 500), (50, 20, 1_200, 1_000))


def _churn() -> tuple[float, float]:
    """(grants per second of wall time in the core, virtual seconds until the last one ended)."""
    world = World()
    subjects = []
    for group in range(GROUPS):
        pool = Pool(id=PoolId(f"g{group}"), name=f"g{group}", capacity=vector({"slot": 20 * QUEUES}))
        world.apply(ev.PoolSet(pool=pool), START)
        for queue in range(QUEUES):
            subject = Subject.parse(f"team:g{group}-q{queue}")
            subjects.append(subject)
            policy = Policy(
                id=PolicyId(f"g{group}/q{queue}"),
                pool=pool.id,
                subject=subject,
                reserved=vector({"slot": 20}),
                limit=vector({"slot": 120}),
            )
            world.apply(ev.PolicySet(policy=policy), START)
    return _run_churn(world, _arrivals(subjects))


def _arrivals(subjects: list[Subject]) -> list[tuple[int, int, Request]]:
    """(arrival in ms, run time in ms, request), by arrival."""
    numbers = count()
    arrivals = []
    for jobs, units, every_ms, runs_ms in LOAD:
        demand = Demand.of(vector({"slot": units}))
        for job in range(jobs):
            for subject in subjects:
                at_ms = job * every_ms
                request = Request(
                    id=RequestId(f"r{next(numbers):06d}"),
                    subjects=(subject,),
                    demand=demand,
                    queued_at=Instant(at_ms * 1_000),
                )
                arrivals.append((at_ms, runs_ms, request))
    arrivals.sort(key=lambda arrival: (arrival[0], arrival[2].id))
    return arrivals


def _run_churn(world: World, arrivals: list[tuple[int, int, Request]]) -> tuple[float, float]:
    runs_ms = {request.id: runs for _, runs, request in arrivals}
    requests = {request.id: request for _, _, request in arrivals}
    ends: list[tuple[int, RequestId]] = []
    again = count()
    granted = spent = now_ms = at = 0
    while at < len(arrivals) or ends:
        upcoming = [entry[0] for entry in (*ends[:1], *arrivals[at : at + 1])]
        now_ms = min(upcoming)
        due = []
        while at < len(arrivals) and arrivals[at][0] <= now_ms:
            due.append(ev.Submitted(request=arrivals[at][2]))
            at += 1
        over: list[ev.Event] = []
        while ends and ends[0][0] <= now_ms:
            _, request = heapq.heappop(ends)
            if world.status_of(request) is Status.ALLOCATED:
                over.append(ev.Ended(request=request, how=Status.RELEASED))
        now = Instant(now_ms * 1_000)
        start = time.perf_counter_ns()
        for event in [*over, *due]:
            world.apply(event, now)
        plan = decide(world, now)
        while plan.evictions:  # victims let go at once and queue again with their place
            for evict in plan.evictions:
                old = world.allocations[evict.request].request
                world.apply(ev.Ended(request=evict.request, how=Status.RELEASED), now)
                retry = _retry(old, f"{old.id[:7]}x{next(again):05d}")
                requests[retry.id], runs_ms[retry.id] = retry, runs_ms[old.id]
                world.apply(ev.Submitted(request=retry), now)
            granted += len(plan.grants)
            for grant in plan.grants:
                heapq.heappush(ends, (now_ms + runs_ms[grant.request], grant.request))
            plan = decide(world, now)
        spent += time.perf_counter_ns() - start
        granted += len(plan.grants)
        for grant in plan.grants:
            heapq.heappush(ends, (now_ms + runs_ms[grant.request], grant.request))
    return granted / (spent / 1e9), now_ms / 1_000


def _retry(old: Request, name: str) -> Request:
    return Request(id=RequestId(name), subjects=old.subjects, demand=old.demand, queued_at=old.queued_at)


# ---- the others -----------------------------------------------------------------------------------------------------


def _teams(world: World, teams: int, gpus_each: int) -> list[Subject]:
    pool = Pool(id=PoolId("p"), name="p", capacity=vector({"gpu": teams * gpus_each}))
    subjects = [Subject.parse(f"team:t{team}") for team in range(teams)]
    world.apply(ev.PoolSet(pool=pool), START)
    for team, subject in enumerate(subjects):
        policy = Policy(id=PolicyId(f"p/t{team}"), pool=pool.id, subject=subject, reserved=vector({"gpu": gpus_each}))
        world.apply(ev.PolicySet(policy=policy), START)
    return subjects


def _submit(world: World, subjects: list[Subject], how_many: int) -> None:
    demand = Demand.of(vector({"gpu": 1}))
    subjects_of = [(subject,) for subject in subjects]
    for number in range(how_many):
        request = Request(
            id=RequestId(f"r{number:08d}"),
            subjects=subjects_of[number % len(subjects)],
            demand=demand,
            queued_at=Instant(number),
        )
        world.apply(ev.Submitted(request=request), START)


def _saturated_pass_ms() -> float:
    """A pass in which a thousand policies have work waiting and nothing can start."""
    world = World()
    _submit(world, _teams(world, 1_000, 1), 51_000)
    decide(world, START)
    world.touched.add(PoolId("p"))
    start = time.perf_counter()
    plan = decide(world, Instant(SECOND))
    took = time.perf_counter() - start
    assert plan.is_empty
    assert len(world.queue) == 50_000
    return took * 1e3


def _marginal_us(queued: int) -> float:
    """One submission and its decision, one release and its decision, with so many waiting."""
    world = World()
    subjects = _teams(world, 10, 10)
    _submit(world, subjects, queued)
    running = [grant.request for grant in decide(world, START).grants]
    demand = Demand.of(vector({"gpu": 1}))
    took = []
    for number in range(2_000):
        now = Instant(SECOND + number)
        request = Request(
            id=RequestId(f"s{number:08d}"), subjects=(subjects[number % 10],), demand=demand, queued_at=now
        )
        start = time.perf_counter()
        world.apply(ev.Submitted(request=request), now)
        decide(world, now)
        world.apply(ev.Ended(request=running.pop(0), how=Status.RELEASED), now)
        plan = decide(world, now)
        took.append(time.perf_counter() - start)
        running.extend(grant.request for grant in plan.grants)
    return statistics.median(took) * 1e6


def _evict_many_ms() -> float:
    """One request that needs the GPUs of a thousand others."""
    world = World()
    world.apply(ev.PoolSet(pool=Pool(id=PoolId("p"), name="p", capacity=vector({"gpu": 1_000}))), START)
    for name, priority in (("low", 0), ("high", 9)):
        subject = Subject.parse(f"team:{name}")
        policy = Policy(id=PolicyId(name), pool=PoolId("p"), subject=subject, priority=priority)
        world.apply(ev.PolicySet(policy=policy), START)
    _submit(world, [Subject.parse("team:low")], 1_000)
    decide(world, START)
    demand = Demand.of(vector({"gpu": 1_000}))
    big = Request(id=RequestId("z"), subjects=(Subject.parse("team:high"),), demand=demand, queued_at=START)
    start = time.perf_counter()
    world.apply(ev.Submitted(request=big), Instant(SECOND))
    plan = decide(world, Instant(SECOND))
    took = time.perf_counter() - start
    assert len(plan.evictions) == 1_000
    return took * 1e3


def _bytes_per_request() -> float:
    """What each further queued request costs, its own id and value included."""
    world = World()
    subjects = _teams(world, 10, 10)
    _submit(world, subjects, 1_000)
    decide(world, START)
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    demand = Demand.of(vector({"gpu": 1}))
    subjects_of = [(subject,) for subject in subjects]
    for number in range(100_000):
        request = Request(
            id=RequestId(f"x{number:08d}"), subjects=subjects_of[number % 10], demand=demand, queued_at=Instant(number)
        )
        world.apply(ev.Submitted(request=request), START)
    decide(world, START)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return (after - before) / 100_000

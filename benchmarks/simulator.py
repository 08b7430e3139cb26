"""The simulator: published results to the second, whom sharing hurts, and how fast that is found out."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator

from benchmarks import philly
from benchmarks.figures import Figure, at_least, at_most, steady
from fairpool.core.amounts import GPU, vector
from fairpool.core.ids import SECOND, Instant, PolicyId, PoolId
from fairpool.core.policies import Policy, Subject
from fairpool.core.pools import Node, Pool
from fairpool.core.requests import Demand
from fairpool.sim.jobs import Job, Order, in_order
from fairpool.sim.ledger import Fate, Ledger
from fairpool.sim.owners import Owners, Progress
from fairpool.sim.replay import Replay
from fairpool.sim.rulebook import rulebook
from fairpool.store.memory import MemoryStore

BOUND_S = 3_600
"""How long the first blocked request is overtaken at most in the shared pool (S25)."""


def run() -> Iterator[Figure]:
    """All figures. Those of Philly need the trace beside the checkout."""
    yield from _unsaturated()
    if not philly.TRACES.is_dir():
        print("  (no traces in ../shared: the figures of Philly are left out)")
        return
    yield from _published()
    yield from _sharing()


# ---- speed ----------------------------------------------------------------------------------------------------------


def _unsaturated() -> Iterator[Figure]:
    """Jobs of one GPU through nodes of which some are always free."""
    jobs = _steady_stream(200_000)
    with steady():
        start = time.perf_counter()
        ledger = _unlimited(jobs)
        took_s = time.perf_counter() - start
    assert all(fate == Fate.DONE for fate in ledger.fate)
    assert ledger.first_start[-1] == jobs[-1].submitted_at
    yield at_least("jobs through a pool of nodes that is never full", len(jobs) / took_s, "jobs/s", 100_000)
    del ledger, jobs
    tracemalloc.start()
    kept = _unlimited(_steady_stream(100_000))
    _, peak = tracemalloc.get_traced_memory()
    assert len(kept.jobs) == 100_000
    tracemalloc.stop()
    yield at_most("memory for a million such jobs, by 100,000", peak * 10 / 2**30, "GiB", 1)


def _steady_stream(count: int) -> list[Job]:
    demand, subjects = Demand.of(vector({GPU: 1})), (Subject.parse("team:t"),)
    return [
        Job(
            name=str(number),
            submitted_at=Instant(number * SECOND),
            run_us=(60 + number % 240) * SECOND,
            subjects=subjects,
            demand=demand,
        )
        for number in range(count)
    ]


def _unlimited(jobs: list[Job]) -> Ledger:
    nodes = tuple(Node(name=f"n{at:03}", capacity=vector({GPU: 8})) for at in range(64))
    policy = Policy(id=PolicyId("t"), pool=PoolId("p"), subject=Subject.parse("team:t"))
    rules = rulebook([Pool(id=PoolId("p"), name="p", nodes=nodes)], [policy])
    return Replay(rules, jobs, owners=Owners(), reader=MemoryStore().reader).run()


# ---- published results ----------------------------------------------------------------------------------------------


def _published() -> Iterator[Figure]:
    total_s = 0.0
    for team in philly.nodes():
        ledger = philly.played(philly.on_nodes(team), philly.of_team(team))
        mean_s = philly.mean_wait_s(ledger)
        total_s += mean_s * len(ledger.jobs)
        published = philly.PUBLISHED_MEAN_WAIT_S.get(team)
        if published is not None:
            yield Figure(
                name=f"Philly, team {team} alone on its nodes: mean wait",
                value=mean_s,
                unit="s",
                target=f"{published} published",
                holds=f"{mean_s:.2f}" == published,
            )
    yield Figure(name="… all teams: mean wait, first come, first served", value=total_s / philly.JOBS, unit="s")
    shortest = [
        philly.played(philly.on_nodes(team), in_order(philly.of_team(team), Order.SHORTEST)) for team in philly.nodes()
    ]
    waits_s = sum(philly.mean_wait_s(ledger) * len(ledger.jobs) for ledger in shortest)
    yield Figure(name="… and shortest job first", value=waits_s / philly.JOBS, unit="s")


def _sharing() -> Iterator[Figure]:
    alone = [philly.played(philly.on_a_count(team), philly.of_team(team)) for team in philly.nodes()]
    waits_s = sum(philly.mean_wait_s(ledger) * len(ledger.jobs) for ledger in alone)
    yield Figure(name="GPU counts only, each team alone: mean wait", value=waits_s / philly.JOBS, unit="s")
    jobs = philly.oldest_first()
    for progress in Progress:
        with steady():
            start = time.perf_counter()
            ledger = philly.played(philly.shared(BOUND_S), jobs, progress)
            took_s = time.perf_counter() - start
        later = philly.later_than_alone(ledger)
        yield at_most(f"shared with reservations, work {progress}: jobs later than alone", later, "jobs", 0)
        if progress is Progress.KEPT:
            yield at_most("… mean wait", philly.mean_wait_s(ledger), "s", 560)
            yield at_most("… time that the replay takes", took_s, "s", 5)
        else:
            yield Figure(name="… mean wait", value=philly.mean_wait_s(ledger), unit="s")
        yield Figure(name="… evictions", value=len(ledger.evictions), unit="")
    ledger = philly.played(philly.one_queue(), philly.jobs())
    yield Figure(name="one queue without reservations: mean wait", value=philly.mean_wait_s(ledger), unit="s")
    yield Figure(name="… jobs later than alone", value=philly.later_than_alone(ledger), unit="jobs")

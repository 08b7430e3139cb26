"""What a look at all metrics costs those who wait for a grant: 100 pools of 100 policies, and a full queue."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from benchmarks.figures import Figure, at_most, steady, timed_s
from fairpool.app import gauges
from fairpool.app.memory import Memory
from fairpool.app.ports import Stored
from fairpool.app.records import Declared, Kind, RequestRecord, State, Submission
from fairpool.core.amounts import vector
from fairpool.core.ids import Instant, PolicyId, PoolId, RequestId
from fairpool.core.planner import decide
from fairpool.core.policies import Policy, Subject
from fairpool.core.pools import Pool
from fairpool.core.requests import Demand, Request, Status
from fairpool.core.world import Snapshot
from fairpool.server.metrics import Metrics, samples

POOLS = POLICIES = 100
QUEUED = 100_000
NOW = Instant(QUEUED)


def run() -> Iterator[Figure]:
    """The longest time for which the scheduler is held, and what it takes in all."""
    memory = _memory()
    decide(memory.world, NOW)
    with steady():
        held = [_held_ms(memory) for _ in range(5)]
        found = gauges.gauges(memory, NOW)
        told_s = min(timed_s(lambda: Metrics().text(samples("default", found))) for _ in range(3))
    yield at_most("the longest hold of the scheduler", min(max(each) for each in held), "ms", 20)
    yield Figure(name="… all holds together", value=min(map(sum, held)), unit="ms")
    yield Figure(name="writing it down, beside other calls", value=told_s * 1000, unit="ms")


def _held_ms(memory: Memory) -> list[float]:
    found = []
    began = time.perf_counter()
    parts = gauges.parts(memory, NOW)
    found.append((time.perf_counter() - began) * 1000)
    for part in parts:
        began = time.perf_counter()
        gauges.part_of(memory, NOW, part)
        found.append((time.perf_counter() - began) * 1000)
    return found


def _memory() -> Memory:
    pools = [
        Pool(id=PoolId(f"pool-{number:03}"), name=f"p{number}", capacity=vector({"gpu": 10})) for number in range(POOLS)
    ]
    policies = [
        Policy(id=PolicyId(f"{pool.id}-{number:03}"), pool=pool.id, subject=Subject.parse(f"team:t{number}"))
        for pool in pools
        for number in range(POLICIES)
    ]
    records = [_queued(number) for number in range(QUEUED)]
    snapshot = Snapshot(
        pools=tuple(pools),
        policies=tuple(policies),
        profiles=(),
        queued=tuple(record.request for record in records),
        allocations=(),
        require_policy=False,
    )
    declared = (
        *(_declared(Kind.POOL, pool, pool.name) for pool in pools),
        *(_declared(Kind.POLICY, policy, f"{policy.pool}/{policy.subject}") for policy in policies),
    )
    live = {record.id: record for record in records}
    return Memory(Stored(snapshot=snapshot, live=live, declared=declared, history_seq=0), NOW)


def _declared(kind: Kind, spec: Any, name: str) -> Declared[Any]:
    return Declared(kind=kind, id=spec.id, name=name, spec=spec, created_at=Instant(0), updated_at=Instant(0))


def _queued(number: int) -> RequestRecord:
    request = Request(
        id=RequestId(f"r{number:06}"),
        subjects=(Subject.parse(f"team:t{number % POLICIES}"),),
        demand=Demand.of(vector({"gpu": 10})),
        queued_at=Instant(number),
        pool=f"p{number // POLICIES % POOLS}",
    )
    return RequestRecord(
        request=request,
        submission=Submission(created_at=Instant(number)),
        state=State(status=Status.QUEUED),
        lease=None,
    )

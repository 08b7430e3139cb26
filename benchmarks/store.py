"""What the memory that survives costs: durable commits, one-row answers, a restart. On a real file, synchronised."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.figures import Figure, at_least, timed_s
from fairpool.app.records import (
    Batch,
    Change,
    Grant,
    KeyUse,
    Kind,
    Lease,
    RequestRecord,
    State,
    Submission,
)
from fairpool.core.amounts import vector
from fairpool.core.ids import Instant, PolicyId, PoolId, RequestId
from fairpool.core.policies import Subject
from fairpool.core.requests import Demand, PartPlacement, Request, Status
from fairpool.store.opening import open_store
from fairpool.store.sql import SqlStore

BULK = 20_000
SINGLES = 1_000
GROUP = 8  # client processes that submit one at a time share a commit
DEMAND = Demand.of(vector({"gpu": 1, "mcpu": 4000, "memory_mb": 17_180, "step_run": 1}))
SUBJECTS = (Subject.parse("k8s"), Subject.parse("team:vision"))

Ranges = Mapping[str, tuple[float, float]]
_ON_SQLITE: Ranges = {
    "bulk": (9_000, 25_000),
    "shared": (2_500, 10_000),
    "single": (250, 2_000),
    "grants": (2_500, 10_000),
    "id": (30, 150),
    "key": (20, 150),
    "restart": (15, 50),
}


def run() -> Iterator[Figure]:
    """The figures."""
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(f"sqlite:///{Path(folder) / 'fairpool.db'}")
        try:
            yield from figures(store)
        finally:
            store.close()


def figures(store: SqlStore, ranges: Ranges = _ON_SQLITE) -> Iterator[Figure]:
    """What commits and answers of one row cost in an empty store, and a restart. ranges: what was recorded of each."""
    token = store.leases.acquire("bench", Instant(0), 3600).token
    recorded = ranges.get
    bulk, singles, grouped = _requests(0, BULK), _requests(BULK, SINGLES), _requests(BULK * 2, SINGLES * GROUP)

    def submit(records: Sequence[RequestRecord], size: int) -> float:
        """Requests a second, committed so many at a time."""
        batches = [_submitted(records[start : start + size]) for start in range(0, len(records), size)]
        return len(records) / timed_s(lambda: [store.commit(batch, token) for batch in batches])

    yield at_least("submissions, 1,000 to a commit", submit(bulk, 1000), "/s", 5_000, recorded("bulk"))
    yield at_least("submissions, 8 to a commit", submit(grouped, GROUP), "/s", 1_000, recorded("shared"))
    yield _plain("submissions, each a commit", submit(singles, 1), "/s", recorded("single"))
    granted = [_granted(grouped[start : start + GROUP], start) for start in range(0, len(grouped), GROUP)]
    seconds = timed_s(lambda: [store.commit(batch, token) for batch in granted])
    yield _plain("grants, 8 to a commit", len(grouped) / seconds, "/s", recorded("grants"))
    read = store.reader.requests
    yield _plain("a request by its id", _each_us(lambda at: read.get([f"r{at:09}"])), "µs", recorded("id"))
    yield _plain("an idempotency key", _each_us(lambda at: read.key(Kind.REQUEST, f"k{at:09}")), "µs", recorded("key"))
    yield _plain(
        "a restart, per live request", timed_s(store.load) * 1e6 / (BULK + 9 * SINGLES), "µs", recorded("restart")
    )


def _plain(name: str, value: float, unit: str, recorded: tuple[float, float] | None) -> Figure:
    return Figure(name=name, value=value, unit=unit, recorded=recorded)


def _each_us(ask: Callable[[int], object]) -> float:
    return timed_s(lambda: [ask(at) for at in range(SINGLES)]) * 1e6 / SINGLES


def _requests(first: int, count: int) -> list[RequestRecord]:
    return [
        RequestRecord(
            request=Request(id=RequestId(f"r{number:09}"), subjects=SUBJECTS, demand=DEMAND, queued_at=Instant(number)),
            submission=Submission(created_at=Instant(number), created_by="user:bench", name="train"),
            state=State(status=Status.QUEUED),
            lease=Lease(until=Instant(10**15), length_s=60),
        )
        for number in range(first, first + count)
    ]


def _submitted(records: Sequence[RequestRecord]) -> Batch:
    return Batch(
        inserted=tuple(records),
        keys=tuple(
            KeyUse(key=f"k{record.id[1:]}", kind=Kind.REQUEST, object=record.id, fingerprint="0" * 32, at=Instant(1))
            for record in records
        ),
        changes=tuple(_change(record, "queued") for record in records),
    )


def _granted(records: Sequence[RequestRecord], first: int) -> Batch:
    def granted(number: int, record: RequestRecord) -> State:
        grant = Grant(
            pool=PoolId(f"pool-{number}"),
            policy=PolicyId("policy"),
            parts=(PartPlacement("", ((0, 1000),)),),
            granted_at=Instant(5),
            sequence=number + 1,
            pool_name="shared",
            subject="team:vision",
        )
        return replace(record.state, status=Status.ALLOCATED, version=2, grant=grant)

    states = [(record.id, granted(first + at, record)) for at, record in enumerate(records)]
    changes = tuple(_change(record, "allocated") for record in records)
    return Batch(updated=tuple(states), changes=changes, sequence=first + len(records))


def _change(record: RequestRecord, what: str) -> Change:
    return Change(
        at=record.submission.created_at,
        kind=Kind.REQUEST,
        object=record.id,
        what=what,
        actor="user:bench",
        cause="bench",
    )

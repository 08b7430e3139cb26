"""A PostgreSQL database with as much in it as a large team makes in years: a million requests, their history, runs.

Some thousands are written by the store itself, as different as requests are; the database then multiplies those that
have ended, which takes a tenth of the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import psycopg
from sqlalchemy import Table

from fairpool.app.records import (
    Batch,
    Change,
    Declared,
    Grant,
    Kind,
    Lease,
    RequestRecord,
    RunRecord,
    RunStatus,
    State,
    Submission,
)
from fairpool.core.amounts import vector
from fairpool.core.ids import SECOND, Instant, PolicyId, PoolId, ProfileId, RequestId
from fairpool.core.policies import Policy, Profile, Subject
from fairpool.core.pools import Pool
from fairpool.core.reasons import Code, Reason
from fairpool.core.requests import Because, Demand, Eviction, PartPlacement, Request, Status
from fairpool.store import schema
from fairpool.store.opening import open_store

POOLS, TEAMS, USERS, NAMES = 10, 20, 200, 500
EVERY_S: Final = 10
"""A request is made every so many seconds; the first one so many times that before the last."""

START: Final = Instant(1_700_000_000 * SECOND)
_FOR_EVER: Final = Instant(4_000_000_000 * SECOND)
_DEMAND: Final = Demand.of(vector({"gpu": 1, "mcpu": 4000, "memory_mb": 16_000, "step_run": 1}))
_WHOLE_POOL: Final = Demand.of(vector({"gpu": 100, "step_run": 1}))
_ENDS: Final = (*[Status.RELEASED] * 17, Status.CANCELLED, Status.REJECTED, Status.PREEMPTED)


def fill(url: str, *, base: int = 10_000, times: int = 99, waiting: int = 10_000) -> None:
    """Make the database of that URL, with so many requests that have ended, so many times, and so many that wait."""
    store = open_store(url)
    token = store.leases.acquire("filling", START, 3600).token
    try:
        store.commit(Batch(put=tuple(_declared())), token)
        for batch in _batches(0, base, ended=True):
            store.commit(batch, token)
        with psycopg.connect(url) as connection:
            for statement in _MULTIPLY:
                connection.execute(statement, {"times": times, "base": base, "every": EVERY_S * SECOND})
        for batch in _batches(base * times, waiting, ended=False):
            store.commit(batch, token)
        store.leases.release(token)
    finally:
        store.close()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM (ANALYZE)")  # which the database does by itself, a minute later


def _declared() -> Iterator[Declared[Any]]:
    for number in range(POOLS):
        pool = Pool(id=PoolId(f"pool-{number}"), name=f"p{number}", capacity=vector({"gpu": 100, "step_run": 100}))
        yield _one(Kind.POOL, pool.id, pool.name, pool)
        for team in range(TEAMS):
            subject = Subject.parse(f"team:t{team}")
            policy = Policy(id=PolicyId(_policy(number, team)), pool=pool.id, subject=subject)
            yield _one(Kind.POLICY, policy.id, f"{pool.name}/{subject}", policy)
    profile = Profile(id=ProfileId("profile-half"), name="half", demand=vector({"gpu": "0.5"}), pools=("p1", "p2"))
    yield _one(Kind.PROFILE, profile.id, profile.name, profile)


def _one(kind: Kind, object_id: str, name: str, spec: object) -> Declared[Any]:
    return Declared(kind=kind, id=object_id, name=name, spec=spec, created_at=START, updated_at=START)


def _policy(pool: int, team: int) -> str:
    return f"policy-{pool}-{team}"


def _batches(first: int, count: int, *, ended: bool) -> Iterator[Batch]:
    for start in range(first, first + count, 1000):
        numbers = range(start, start + 1000)
        records = tuple(_record(number, ended=ended) for number in numbers)
        yield Batch(
            inserted=records,
            runs=tuple(_run(number) for number in numbers[::10]),
            changes=tuple(_change(record) for record in records),
        )


def _record(number: int, *, ended: bool) -> RequestRecord:
    team, user = number % TEAMS, number % USERS
    at = Instant(START + number * EVERY_S * SECOND)
    return RequestRecord(
        request=Request(
            id=RequestId(f"r{number:09}"),
            subjects=(Subject.parse(f"team:t{team}"), Subject.parse(f"user:u{user}")),
            demand=_DEMAND if ended else _WHOLE_POOL,
            queued_at=at,
            profile="half" if number % 5 == 0 else "",
            pool="" if number % 3 else f"p{number % POOLS}",
        ),
        submission=Submission(
            created_at=at,
            created_by=f"user:u{user}",
            name=f"train-{number % NAMES}",
            run=_run_id(number) if number % 10 == 0 else "",
            step="s" if number % 10 == 0 else "",
            labels=_labels(number),
        ),
        state=_ended(number, at) if ended else State(status=Status.QUEUED),
        lease=Lease(until=_FOR_EVER, length_s=3600),
    )


def _labels(number: int) -> dict[str, str]:
    """One that a few carry, of a few of those one besides that most carry."""
    common = {} if number % 7 == 3 else {"env": "prod"}
    return common | ({"project": f"x{number % 50}"} if number % 10 == 1 else {})


def _ended(number: int, at: Instant) -> State:
    status = _ENDS[number % 7919 % len(_ENDS)]
    pool, later = number % POOLS, Instant(at + 60 * SECOND)
    eviction = Eviction(cause=None, because=Because.RECLAIM, deadline_at=later)
    grant = Grant(
        pool=PoolId(f"pool-{pool}"),
        policy=PolicyId(_policy(pool, number % TEAMS)),
        parts=(PartPlacement("", ((number % 8, 1000),)),),
        granted_at=Instant(at + SECOND),
        sequence=number + 1,
        eviction=eviction if status is Status.PREEMPTED else None,
        pool_name=f"p{pool}",
        subject=f"team:t{number % TEAMS}",
    )
    return State(
        status=status,
        version=3,
        grant=grant if status in (Status.RELEASED, Status.PREEMPTED) else None,
        ended_at=later,
        ended_by="owner",
        reasons=(Reason(code=Code.POOL_GONE, name="p"),) if status is Status.REJECTED else (),
    )


def _run_id(number: int) -> str:
    return f"n{number:09}"


def _run(number: int) -> RunRecord:
    return RunRecord(
        id=_run_id(number),
        name=f"nightly-{number % NAMES}",
        kind="pipeline",
        status=RunStatus.COMPLETED,
        stack="default",
        user=f"u{number % USERS}",
        created_by=f"user:u{number % USERS}",
        created_at=Instant(START + number * EVERY_S * SECOND),
    )


def _change(record: RequestRecord) -> Change:
    said = record.submission
    return Change(
        at=said.created_at,
        kind=Kind.REQUEST,
        object=record.id,
        what=record.status.value,
        name=said.name,
        actor=said.created_by,
        cause="bench",
        run=said.run,
    )


# Each ended one again and again, with a number, an id and times of its own.
_ID: Final = "overlay({0} placing lpad((substr({0}, 2)::bigint + again * %(base)s)::text, 9, '0') from 2)"
_LATER: Final = "{0} + again * %(base)s * %(every)s::bigint"


def _again(table: Table, **changed: str) -> str:
    names = [column.name for column in table.columns]
    values = ", ".join(changed[name].format(f"old.{name}") if name in changed else f"old.{name}" for name in names)
    number = "old.seq + again * %(base)s" if "seq" in names else "again"
    return (
        f"INSERT INTO {table.name} ({', '.join(names)}) SELECT {values} FROM {table.name} old "
        f"CROSS JOIN generate_series(1, %(times)s - 1) AS again ORDER BY {number}"
    )


_MULTIPLY: Final = (
    _again(
        schema.requests,
        seq="{0} + again * %(base)s",
        id=_ID,
        run=_ID,
        queued_at=_LATER,
        created_at=_LATER,
        granted_at=_LATER,
        ended_at=_LATER,
        grant_sequence="{0} + again * %(base)s",
    ),
    _again(schema.history, seq="{0} + again * %(base)s", object_id=_ID, run=_ID, at=_LATER),
    _again(schema.runs, seq="{0} + again * %(base)s / 10", id=_ID, created_at=_LATER),
    _again(schema.labels, object_id=_ID, seq="{0} + again * %(base)s"),
)

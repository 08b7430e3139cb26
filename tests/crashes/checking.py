"""What must hold of a database and its server whenever it is opened, whatever happened before."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from fairpool.app.memory import Memory
from fairpool.app.records import Kind
from fairpool.core import lifecycle
from fairpool.core.audit import audit
from fairpool.core.ids import Instant
from fairpool.core.requests import Status
from fairpool.store import maintenance
from tests.crashes.databases import Dump, Row
from tests.crashes.living import Life

_HOLDING: Final = ("allocated", "preempting")
_NEXT: Final = {
    status: {after for (before, _), after in lifecycle.TABLE.items() if before is status} for status in Status
}


def problems_at_rest(url: str) -> list[str]:
    """Of a database that nobody has opened yet since the crash."""
    return [f"db check: {problem}" for problem in maintenance.check(url).problems]


def problems_of(life: Life, dump: Dump) -> list[str]:
    """Of a server that has just decided, and what is committed there."""
    return [*_of_memory(life, life.clock.now()), *problems_in(dump)]


def problems_in(dump: Dump) -> list[str]:
    """Of what is committed alone."""
    return [*_of_evictions(dump), *_of_sums(dump), *_of_keys(dump), *_of_history(dump)]


def _of_memory(life: Life, now: Instant) -> Iterator[str]:
    scheduler = life.server.scheduler
    for violation in audit(scheduler.memory.world, now):
        yield f"{violation.invariant}: {violation.text}"
    loaded, memory = Memory(life.server.store.load(), now), scheduler.memory
    if loaded.world.snapshot() != memory.world.snapshot():
        yield "the server decides on something else than what it would load"


def _of_evictions(dump: Dump) -> Iterator[str]:
    """An eviction for a request, and what is kept for that request, are there together or not at all."""
    requests = {row["id"]: row for row in dump["requests"]}
    told = {row["id"] for row in requests.values() if row["status"] == "preempting" and row["evicted_for"]}
    for request in sorted(told):
        cause = requests.get(requests[request]["evicted_for"])
        if cause is None:
            yield f"{request} is evicted for a request that does not exist"
        elif cause["status"] == "queued" and cause["claim"] is None:
            yield f"{request} is evicted for {cause['id']}, for which nothing is kept"
        elif cause["status"] in _HOLDING:
            yield f"{request} is still evicted for {cause['id']}, which has started"
    for row in requests.values():
        evicted = [one for one in requests.values() if one["evicted_for"] == row["id"]]
        if row["claim"] is not None and not evicted:
            yield f"something is kept for {row['id']}, and nobody is evicted for it"
        if row["status"] == "preempted" and row["evicted_until"] is None:
            yield f"{row['id']} was preempted without a deadline"


def _of_sums(dump: Dump) -> Iterator[str]:
    """INV-1 and INV-4, added up from the rows alone. A pool that was made smaller is let off until it fits (S9)."""
    shares: dict[tuple[str, ...], int] = defaultdict(int)
    for row in dump["held_devices"]:
        shares[row["workspace"], row["pool_id"], row["node"], str(row["device"])] += row["share"]
    for device, share in shares.items():
        if share > 1000:
            yield f"INV-4: device {device} is given out {share} thousandths"
    used: dict[tuple[str, str], int] = defaultdict(int)
    for row in dump["requests"]:
        if row["status"] in _HOLDING and row["pool_id"]:
            for number, part in json.loads(row["demand"]):
                for key, value in part.items():
                    used[row["pool_id"], key] += number * value
    capacity: dict[tuple[str, str], int] = defaultdict(int)
    for row in dump["pool_amounts"]:
        capacity[row["pool_id"], row["key"]] += row["amount"]
    shrunk = {row["object_id"] for row in dump["history"] if row["what"] == "borrowers told to leave"}
    for (pool, key), amount in used.items():
        if key == "gpu" and amount > capacity[pool, key] and pool not in shrunk:
            yield f"INV-1: {amount} of {key} is given out in {pool}, which has {capacity[pool, key]}"


def _of_keys(dump: Dump) -> Iterator[str]:
    """A call with an idempotency key happened once: one object of that key, and a key for each that was sent."""
    sent = [row["idempotency_key"] for row in dump["requests"] if row["idempotency_key"]]
    kept = {row["key"]: row["object_id"] for row in dump["idempotency_keys"] if row["kind"] == Kind.REQUEST.value}
    for key in sorted({key for key in sent if sent.count(key) > 1}):
        yield f"the key {key!r} made {sent.count(key)} requests"
    for row in dump["requests"]:
        if row["idempotency_key"] and row["id"] not in kept.values():
            yield f"the key of {row['id']} is not kept: sent again, it would make another request"
    there = {row["id"] for table in ("requests", "runs", "steps", "tokens") for row in dump[table]}
    for row in dump["idempotency_keys"]:
        if row["object_id"] not in there:
            yield f"the key {row['key']!r} is kept for {row['object_id']}, which does not exist"


Place = tuple[str, str, str]


def _place(row: Row, kind: str, object_id: str) -> Place:
    """Where an object is: its workspace, kind and id."""
    return row["workspace"], str(kind), object_id


# ---- history ---------------------------------------------------------------------------------------------------------


def _of_history(dump: Dump) -> Iterator[str]:
    history = sorted(dump["history"], key=lambda row: row["seq"])
    yield from _of_numbers(history)
    of: dict[Place, list[Row]] = defaultdict(list)
    for entry in history:
        of[_place(entry, entry["kind"], entry["object_id"])].append(entry)
    for row in dump["requests"]:
        yield from _of_request(row, [entry["what"] for entry in of.pop(_place(row, Kind.REQUEST, row["id"]), [])])
    for kind, table in ((Kind.RUN, "runs"), (Kind.STEP, "steps")):
        for row in dump[table]:
            entries = of.pop(_place(row, kind, row["id"]), [])
            if not entries or entries[-1]["what"] != row["status"]:
                yield f"{kind} {row['id']} is {row['status']}, which history does not say"
    yield from _of_declared(dump, of)


def _of_numbers(history: list[Row]) -> Iterator[str]:
    """Without gaps; but a workspace that is removed takes its entries along, and that is written down before."""
    numbers = [row["seq"] for row in history]
    erased = max((row["seq"] for row in history if row["what"] == "erased"), default=0)
    gaps = [number for number in set(range(1, (numbers or [0])[-1] + 1)) - set(numbers) if number > erased]
    if gaps:
        yield f"history has no entries {sorted(gaps)}"
    if len(set(numbers)) != len(numbers):
        yield "history has two entries of one number"


def _of_request(row: Row, said: list[str]) -> Iterator[str]:
    """From the queue to where it is, by the lifecycle's table, step by step."""
    if not said or said[0] != Status.QUEUED or said[-1] != row["status"]:
        yield f"{row['id']} is {row['status']}, history says {said}"
    for before, after in pairwise(said):
        if Status(after) not in _NEXT[Status(before)]:
            yield f"{row['id']} went from {before} to {after}"


_TABLE_OF: Final = {Kind.POOL: "pools", Kind.POLICY: "policies", Kind.PROFILE: "profiles", Kind.TOKEN: "tokens"}


def _of_declared(dump: Dump, of: dict[Place, list[Row]]) -> Iterator[str]:
    """What history says is there, and nothing else."""
    there = {_place(row, kind, row["id"]) for kind, table in _TABLE_OF.items() for row in dump[table]}
    there |= {_place(row, row["kind"], row["id"]) for row in dump["documents"]}
    for place, entries in of.items():
        said = [entry["what"] for entry in entries]
        if said[0] != "created" or said.count("created") > 1:
            yield f"{place}: history begins with {said[0]!r}, and says {said.count('created')} times that it was made"
        if (said[-1] == "deleted") == (place in there):
            yield f"{place} is {'' if place in there else 'not '}there, history says {said}"
    for place in sorted(there - set(of)):
        yield f"{place} is there, and history does not know of it"

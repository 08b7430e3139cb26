"""A scheduler over a store in memory, with time, ids and failures in the test's hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

from fairpool.app.forecaster import Foreseen, Wanted
from fairpool.app.leading import Leading
from fairpool.app.memory import Memory
from fairpool.app.ports import Leases, Reader, Store, Stored
from fairpool.app.records import Batch, Declared, HistoryEntry, HistoryQuery, Leadership, RequestRecord
from fairpool.app.scheduler import Command, Scheduler, Work
from fairpool.app.store_errors import StoreError
from fairpool.app.use_cases import policies, pools, requests, stacks
from fairpool.core import amounts
from fairpool.core.ids import SECOND, Instant, PolicyId, PoolId
from fairpool.core.policies import Policy, Subject
from fairpool.core.pools import Pool
from fairpool.core.requests import Demand
from fairpool.store.memory import MemoryStore
from fairpool.testing import ManualClock, SequentialIds

Result = TypeVar("Result")

START = Instant(1_700_000_000 * SECOND)


class Unreliable:
    """A store that refuses when it is told to."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.refusals: list[StoreError | None] = []  # what the next commits raise; None lets one through
        self.renewals: list[StoreError] = []  # what the next renewals of the leadership raise
        self.batches: list[Batch] = []  # what was committed

    @property
    def leases(self) -> Leases:
        return self

    @property
    def reader(self) -> Reader:
        return self.store.reader

    def commit(self, batch: Batch, token: int) -> int:
        refusal = self.refusals.pop(0) if self.refusals else None
        if refusal is not None:
            raise refusal
        last = self.store.commit(batch, token)
        self.batches.append(batch)
        return last

    def erase(self, token: int) -> bool:
        return self.store.erase(token)

    def load(self) -> Stored:
        return self.store.load()

    def close(self) -> None:
        self.store.close()

    def acquire(self, holder: str, now: Instant, ttl_s: float, address: str = "") -> Leadership:
        return self.store.leases.acquire(holder, now, ttl_s, address)

    def renew(self, token: int, now: Instant, ttl_s: float) -> Leadership:
        if self.renewals:
            raise self.renewals.pop(0)
        return self.store.leases.renew(token, now, ttl_s)

    def release(self, token: int) -> None:
        self.store.leases.release(token)

    def current(self) -> Leadership | None:
        return self.store.leases.current()


class Told:
    """Remembers what was published."""

    def __init__(self) -> None:
        self.entries: list[HistoryEntry] = []
        self.leaders: list[str] = []  # who led, whenever something happened elsewhere

    def publish(self, entries: Sequence[HistoryEntry]) -> None:
        self.entries.extend(entries)

    def elsewhere(self, leader: str) -> None:
        self.leaders.append(leader)


class Office:
    """One server's scheduler. `restarted` is the next process's, over the same store."""

    def __init__(self, store: Store | None = None, clock: ManualClock | None = None, *, holder: str = "one") -> None:
        self.clock = clock or ManualClock(START)
        self.store = Unreliable(store or MemoryStore())
        self.told = Told()
        self.ids = SequentialIds()
        leading = Leading(self.store, holder=holder, address=f"http://{holder}")
        self.scheduler = Scheduler(self.store, self.clock, self.ids, self.told, leading=leading)

    @property
    def memory(self) -> Memory:
        return self.scheduler.memory

    def begin(self, command: Command[Result], actor: str = "alice") -> Work[Result]:
        """A command that has arrived."""
        return Work(Future(), actor=actor, command=command)

    def round(self, *commands: Command[Any], actor: str = "alice") -> list[Future[Any]]:
        """One round with these commands."""
        work = [self.begin(command, actor) for command in commands]
        self.scheduler.cycle(work)
        return [item.future for item in work]

    def do(
        self, use_case: Callable[..., Callable[[], Result]], *args: Any, actor: str = "alice", **named: Any
    ) -> Result:
        """One round with one use case; what it answers, or raises."""
        work = self.begin(lambda tx: use_case(tx, *args, **named), actor)
        self.scheduler.cycle([work])
        return work.future.result(timeout=0)

    def ask(self, look: Callable[[Memory, Instant], Result]) -> Result:
        """Something looked up between rounds."""
        work: Work[Result] = Work(Future(), ask=look)
        self.scheduler.cycle([work])
        return work.future.result(timeout=0)

    def foresee(self, wanted: Wanted) -> Foreseen | None:
        """When a request starts, once somebody has looked ahead."""
        work: Work[Foreseen | None] = Work(Future(), wanted=wanted)
        self.scheduler.cycle([work])
        self.scheduler.look_ahead()
        return work.future.result(timeout=0)

    def pass_time(self, seconds: float) -> None:
        """Time goes by, and the scheduler wakes as often as it wants to."""
        until = Instant(self.clock.now() + round(seconds * SECOND))
        self.scheduler.cycle([])
        while self.scheduler.wake_at is not None and self.scheduler.wake_at <= until:
            assert self.scheduler.wake_at > self.clock.now(), "it wants to be woken at once, for ever"
            self.clock.move_to(self.scheduler.wake_at)
            self.scheduler.cycle([])
        self.clock.move_to(until)
        self.scheduler.cycle([])

    def restarted(self) -> Office:
        """The next process over the same store, with the same clock."""
        after = Office(self.store.store, self.clock)
        after.ids = self.ids
        leading = Leading(after.store, holder="one")
        after.scheduler = Scheduler(after.store, after.clock, self.ids, after.told, leading=leading)
        after.scheduler.cycle([])
        return after

    # ---- short ways to say things -----------------------------------------------------------------------------------

    def pool(self, name: str = "p", capacity: Mapping[str, object] | None = None, **settings: Any) -> Declared[Pool]:
        spec = Pool(id=PoolId(""), name=name, capacity=amounts.vector(capacity or {"gpu": 8}), **settings)
        return self.do(pools.create, spec)

    def policy(
        self, subject: str = "team:red", reserved: Mapping[str, object] | None = None, *, pool: str = "p", **named: Any
    ) -> Declared[Policy]:
        return self.do(policies.attach, pool, policy(subject, reserved, **named))

    def submit(self, subject: str = "team:red", gpus: object = 1, **named: Any) -> RequestRecord:
        return self.do(requests.submit, ask(subject, gpus, **named))

    def get(self, request: str) -> RequestRecord:
        """A request as it is now."""
        return self.ask(lambda memory, now: requests.get(memory, self.store.reader, request))

    def status(self, request: str) -> str:
        return self.get(request).status.value

    def history(self, object_id: str = "") -> list[str]:
        """What happened, oldest first."""
        page = self.store.reader.history.page(HistoryQuery(object=object_id), limit=10_000)
        return [entry.change.what for entry in page.items]


def ask(subject: str = "team:red", gpus: object = 1, **named: Any) -> requests.Ask:
    """What somebody asks for."""
    demand = Demand.of(amounts.vector({"gpu": gpus}))
    return dataclasses.replace(requests.Ask(demand=demand, subjects=(Subject.parse(subject),)), **named)


def policy(subject: str = "team:red", reserved: Mapping[str, object] | None = None, **named: Any) -> Policy:
    """A policy that is not attached yet."""
    return Policy(
        id=PolicyId(""),
        pool=PoolId(""),
        subject=Subject.parse(subject),
        reserved=amounts.vector(reserved or {}),
        **named,
    )


def submitting(*asks: requests.Ask) -> list[Command[RequestRecord]]:
    """Commands that submit these."""
    return [partial(_submit, given) for given in asks]


def _submit(given: requests.Ask, tx: Any) -> Callable[[], RequestRecord]:
    return requests.submit(tx, given)


def opened(clock: ManualClock | None = None) -> Office:
    """An office with the workspace's defaults, one pool of 8 GPUs and two teams of which each has 2 reserved."""
    office = Office(clock=clock)
    office.do(stacks.ensure_defaults)
    office.pool()
    office.policy("team:red", {"gpu": 2})
    office.policy("team:blue", {"gpu": 2})
    return office


def same_as_stored(office: Office) -> bool:
    """Whether the memory is what a restart would load (but for leases, which are written down later)."""
    now = office.clock.now()
    loaded, memory = Memory(office.store.load(), now), office.memory
    live = {request: (record.request, record.submission, record.state) for request, record in memory.live.items()}
    stored = {request: (record.request, record.submission, record.state) for request, record in loaded.live.items()}
    return (memory.world.snapshot(), live, memory.retries) == (loaded.world.snapshot(), stored, loaded.retries)

"""One run of the simulated world: servers, a database, people, and everything that goes wrong, from one seed."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from fairpool.app.records import HistoryEntry, HistoryQuery, Kind, RequestQuery
from fairpool.app.scheduler import Command
from fairpool.app.use_cases import policies, pools, requests, stacks
from fairpool.core.amounts import vector
from fairpool.core.audit import audit
from fairpool.core.ids import SECOND, Instant, PolicyId, PoolId, RequestId
from fairpool.core.lifecycle import TABLE
from fairpool.core.policies import Policy, Subject
from fairpool.core.pools import Pool
from fairpool.core.requests import Demand, Status
from fairpool.core.world import World
from fairpool.store import opening
from fairpool.testing import SequentialIds
from tests.simulation.faults import Chance, FailingStore, Time
from tests.simulation.people import LEASE_S, Owner
from tests.simulation.servers import Server

START = Instant(1_700_000_000 * SECOND)
TROUBLE_S = 60
"""How long things go wrong, and people ask."""
CALM_S = 600
"""How long all may take to come to rest afterwards: longer than anybody waits, runs, or keeps a lease."""
GPUS = 8
TEAMS = ("team:red", "team:blue", "team:grey")


Event = tuple[Instant, int, Callable[[], None]]


@dataclass(frozen=True)
class Ran:
    """What came of a run."""

    seed: int
    seconds: int
    requests: int
    faults: Counter[str]
    leaderships: int


class Simulation:
    """Events by time. The story says what happened, for when a seed fails."""

    def __init__(self, seed: int, template: Path, folder: Path) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.chance = Chance(Random(seed + 1))
        self.time = Time(START)
        self.story: list[str] = []
        self.asked: set[str] = set()
        self.acknowledged: dict[str, RequestId] = {}
        self.released: set[RequestId] = set()
        self._events: list[Event] = []
        self._numbers = count()
        self.url = f"sqlite:///{folder / f'{seed}.db'}"
        shutil.copyfile(template, folder / f"{seed}.db")
        ids = SequentialIds()
        self.store = opening.open_store(self.url)
        self.servers = [
            Server(name, FailingStore(self.store, self.chance, self.time), self.time, self.chance, ids)
            for name in ("north", "south")
        ]
        for server in self.servers:
            server.store.stand_still = partial(self._stand_still, server)
        self.owners = [self._owner(number) for number in range(self.random.randint(3, 12))]

    # ---- events -----------------------------------------------------------------------------------------------------

    def later(self, seconds: float, what: Callable[[], None]) -> None:
        self._push(Instant(self.time.now + round(seconds * SECOND)), what)

    def _push(self, at: Instant, what: Callable[[], None]) -> None:
        heappush(self._events, (at, next(self._numbers), what))

    def tell(self, text: str) -> None:
        self.story.append(f"{(self.time.now - START) / SECOND:9.3f} {text}")

    def deliver(self, actor: str, command: Command[Any], reply: Callable[[Future[Any]], None]) -> None:
        """Send a call to some server: it may be late, lost, or there twice; and so may its answer."""
        copies = 2 if self.chance.goes_wrong("message doubled", 0.03) else 1
        for _ in range(copies):
            if self.chance.goes_wrong("message lost", 0.03):
                continue
            server = self.random.choice(self.servers)
            self.later(self._delay_s(), partial(self._arrive, server, actor, command, reply))

    def _arrive(self, server: Server, actor: str, command: Command[Any], reply: Callable[[Future[Any]], None]) -> None:
        server.call(actor, command, partial(self._answer, reply))
        self._wake(server, self.time.now)

    def _answer(self, reply: Callable[[Future[Any]], None], future: Future[Any]) -> None:
        if not self.chance.goes_wrong("answer lost", 0.03):
            self.later(self._delay_s(), partial(reply, future))

    def _delay_s(self) -> float:
        if self.chance.goes_wrong("message late", 0.03):
            return self.random.choice([2, 8, 40])
        return self.random.random() / 50

    def _wake(self, server: Server, at: Instant) -> None:
        """Have the server's next round at that moment, if none comes before."""
        if server.due is None or at < server.due:
            server.due = at
            self._push(at, partial(self._turn, server, at))

    def _stand_still(self, server: Server, seconds: int) -> None:
        """The server stops in the middle of its round, and the world goes on without it."""
        server.is_stopped = True
        self._pass_until(Instant(self.time.now + seconds * SECOND))
        server.is_stopped = False

    def _turn(self, server: Server, due: Instant) -> None:
        if server.is_stopped:
            self._push(Instant(self.time.now + SECOND), partial(self._turn, server, due))
            return
        if server.due != due:
            return  # it was woken before
        server.due, led = None, server.leads
        at = server.tick()
        if server.leads != led:
            self.tell(f"{server.name} {'leads' if server.leads else 'leads no more'}")
        self._wake(server, at)

    # ---- the run ----------------------------------------------------------------------------------------------------

    def run(self) -> Ran:
        self._set_up()
        for server in self.servers:
            self._wake(server, self.time.now)
        for owner in self.owners:
            self.later(self.random.randint(0, TROUBLE_S - 10), owner.submit)
        for _ in range(self.random.randint(0, 4)):
            self.later(self.random.randint(1, TROUBLE_S), self._operate)
        self._pass_until(Instant(START + TROUBLE_S * SECOND))
        self.chance.calm = True
        self.tell("nothing goes wrong any more")
        self._pass_until(Instant(START + (TROUBLE_S + CALM_S) * SECOND), at_rest=self._is_at_rest)
        self._check_end()
        return Ran(
            seed=self.seed,
            seconds=(self.time.now - START) // SECOND,
            requests=len(self.acknowledged),
            faults=self.chance.faults,
            leaderships=self._leaderships(),
        )

    def close(self) -> None:
        self.store.close()

    def _pass_until(self, until: Instant, at_rest: Callable[[], bool] = lambda: False) -> None:
        while self._events and self._events[0][0] <= until and not at_rest():
            at, _, what = heappop(self._events)
            self.time.now = max(self.time.now, at)
            what()

    def _is_at_rest(self) -> bool:
        """Everybody's last request was answered, and none of them lives any more."""
        leader = next((server.scheduler for server in self.servers if server.knows), None)
        return leader is not None and not leader.memory.live and all(owner.is_through for owner in self.owners)

    def _set_up(self) -> None:
        self.chance.calm = True
        server = self.servers[0]
        commands: list[Command[Any]] = [
            stacks.ensure_defaults,
            lambda tx: pools.create(tx, Pool(id=PoolId(""), name="p", capacity=vector({"gpu": GPUS}), max_bypass_s=20)),
        ]
        for team in TEAMS:
            reserved = self.random.randint(0, GPUS // 3)
            commands.append(partial(_attach, team, reserved, self.random.choice([0, 3, 10])))
        for command in commands:
            answers: list[Future[Any]] = []
            server.call("local", command, answers.append)
            server.tick()
            answers[0].result(timeout=0)
        self.chance.calm = False

    def _operate(self) -> None:
        """An operator changes how much there is; twice, late or lost does no harm."""
        gpus = self.random.randint(GPUS - 2, GPUS + 4)
        self.tell(f"an operator asks for {gpus} GPUs")
        change = pools.PoolChange(capacity=vector({"gpu": gpus}))
        self.deliver("local", lambda tx: pools.update(tx, "p", change), lambda future: None)

    def _owner(self, number: int) -> Owner:
        random = self.random
        ask = requests.Ask(
            demand=Demand.of(vector({"gpu": random.choice([1, 1, 2, 4, 0.5])})),
            subjects=(Subject.parse(random.choice(TEAMS)),),
            preemptible=True,
            priority=random.choice([0, 0, 1]),
            max_runtime_s=random.choice([None, None, 10]),
            wait_timeout_s=random.choice([None, None, 30]),
            lease_s=LEASE_S,
        )
        vanishes = random.random() < 0.15
        return Owner(
            world=self,
            number=number,
            ask=ask,
            run_s=random.choice([1, 5, 20]),
            lets_go_after_s=random.choice([1, 3, 20]),
            vanishes_at=Instant(START + random.randint(5, TROUBLE_S) * SECOND) if vanishes else None,
        )

    # ---- what must hold ---------------------------------------------------------------------------------------------

    def _check_end(self) -> None:
        """All came to rest; what was acknowledged is there once, and the history is whole."""
        store = self.store
        stored = store.load()
        assert not audit(World.restore(stored.snapshot), self.time.now)
        assert not stored.live, f"never ended: {sorted(stored.live)}"
        read = store.reader
        records = list(read.requests.page(RequestQuery(), limit=10_000).items)
        by_key = Counter(record.submission.idempotency_key for record in records)
        assert all(times == 1 for times in by_key.values()), f"made more than once: {by_key}"
        assert set(self.acknowledged) <= set(by_key), "acknowledged, and not there"
        assert set(by_key) <= self.asked
        there = {record.id: record for record in records}
        assert all(there[request].status.is_final for request in self.released)
        self._check_history([*read.history.page(HistoryQuery(), limit=100_000).items])

    def _check_history(self, entries: list[HistoryEntry]) -> None:
        assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1)), "the history has a gap"
        by_seq = {entry.seq: entry for entry in entries}
        for server in self.servers:
            for told in server.told.entries:
                assert by_seq[told.seq].change == told.change, f"{server.name} told what was never committed"
        last: dict[str, Status] = {}
        for change in (entry.change for entry in entries if entry.change.kind is Kind.REQUEST):
            now, before = Status(change.what), last.get(change.object)
            legal = now is Status.QUEUED if before is None else now in _following(before)
            assert legal, f"{change.object} went from {before} to {now}"
            last[change.object] = now
        assert all(status.is_final for status in last.values())

    def _leaderships(self) -> int:
        leader = self.store.leases.current()
        return leader.token if leader is not None else 0


def _attach(team: str, reserved: int, grace_s: int, tx: Any) -> Any:
    policy = Policy(
        id=PolicyId(""),
        pool=PoolId(""),
        subject=Subject.parse(team),
        reserved=vector({"gpu": reserved}),
        grace_s=grace_s,
    )
    return policies.attach(tx, "p", policy)


def _following(status: Status) -> set[Status]:
    return {after for (before, _), after in TABLE.items() if before is status}

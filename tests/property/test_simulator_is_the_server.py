"""The simulator leaves out what decides nothing. So a server with its scheduler, records, history and a store must
grant and evict the same at the same moments, for the same demand and the same owners."""

from collections.abc import Callable, Sequence
from functools import partial
from heapq import heappop, heappush
from random import Random
from typing import Any

import pytest

from fairpool.app.records import Kind, RequestRecord
from fairpool.app.use_cases import requests, stacks
from fairpool.core.amounts import vector
from fairpool.core.ids import SECOND, Instant, RequestId
from fairpool.core.policies import Subject
from fairpool.core.pools import Node, Ordering, Placement
from fairpool.core.requests import Demand, Status
from fairpool.sim.jobs import Job
from fairpool.sim.ledger import Fate, Ledger
from fairpool.sim.owners import Owners, Progress
from fairpool.sim.replay import Replay
from fairpool.sim.rulebook import without_work
from tests.unit.app.office import Office, ask

FOR_EVER_S = 10**8
SEEDS = 50
TEAMS = ("team:red", "team:blue", "team:grey")

ENDED_BY_TIME = ("grace period over", "max_runtime_s is over")

Happened = tuple[int, str, int]
"""A moment, what happened, and to which job."""


class Served:
    """Jobs that a whole server serves, round by round. Their owners hear of what was committed, and do as those of the
    simulator do."""

    def __init__(self, office: Office, jobs: Sequence[Job], owners: Owners) -> None:
        self.office, self.jobs, self.owners = office, jobs, owners
        self.arriving = list(enumerate(jobs))
        self.number_of: dict[str, int] = {}  # by request
        self.current: dict[int, str] = {}  # by job: its latest request
        self.done_us = dict.fromkeys(range(len(jobs)), 0)
        self.due: list[tuple[int, int, str]] = []
        self.heard = len(office.told.entries)
        self.happened: list[Happened] = []

    def run(self) -> list[Happened]:
        while (now := self.next_moment()) is not None:
            self.office.clock.move_to(Instant(max(now, self.office.clock.now())))
            commands: list[Any] = []
            while self.due and self.due[0][0] <= now:
                commands += self.end(*heappop(self.due))
            while self.arriving and self.arriving[0][1].submitted_at <= now:
                commands.append(self.submitting(*self.arriving.pop(0)))
            self.do(commands)
            while follow := self.hear():
                self.do(follow)
        return self.happened

    def do(self, commands: Sequence[Any]) -> None:
        """A round in which everything is carried out: a call that failed unnoticed would prove nothing."""
        for done in self.office.round(*commands):
            done.result(timeout=0)

    def next_moment(self) -> int | None:
        if not self.arriving and not self.due and not self.office.memory.live:
            return None
        moments = [at for at, _, _ in self.due[:1]] + [job.submitted_at for _, job in self.arriving[:1]]
        memory = self.office.memory
        by_time_alone = (memory.world.moments.next(), memory.runtimes.next_end())
        return min([*moments, *(at for at in by_time_alone if at is not None)], default=None)

    def submitting(self, number: int, job: Job, retry_of: str = "") -> Callable[[Any], Any]:
        given = ask(
            str(job.subjects[0]),
            demand=job.demand,
            priority=job.priority,
            preemptible=job.preemptible,
            max_runtime_s=job.max_runtime_s,
            wait_timeout_s=job.wait_timeout_s,
            lease_s=FOR_EVER_S,
            retry_of=retry_of,
        )

        def submit(tx: Any) -> Callable[[], RequestRecord]:
            answer = requests.submit(tx, given)
            request = next(reversed(tx.memory.live))
            self.number_of[request], self.current[number] = number, request
            return answer

        return submit

    def end(self, at: int, number: int, request: str) -> list[Any]:
        record = self.office.memory.live.get(RequestId(request))  # looking it up by a round would let time decide first
        if self.current[number] != request or record is None:
            return []
        assert record.state.grant is not None
        left_us = self.jobs[number].run_us - self.done_us[number]
        if record.status is Status.PREEMPTING and at - record.state.grant.granted_at < left_us:
            return self.let_go(number, record)
        self.happened.append((at, "done", number))
        return [partial(requests.release, ref=request)]

    def hear(self) -> list[Any]:
        """What owners do at once about what was committed."""
        news, self.heard = self.office.told.entries[self.heard :], len(self.office.told.entries)
        commands: list[Any] = []
        for change in (entry.change for entry in news if entry.change.kind is Kind.REQUEST):
            number = self.number_of.get(change.object, -1)
            if change.what == "allocated":
                self.happened.append((change.at, "start", number))
                left_us = self.jobs[number].run_us - self.done_us[number]
                heappush(self.due, (change.at + left_us, number, change.object))
            elif change.what == "preempting":
                self.happened.append((change.at, "evicted", number))
                record = self.office.get(change.object)
                if record.status is not Status.PREEMPTING:
                    continue  # without a grace period: its end comes next
                if not self.owners.release_after_s:
                    commands += self.let_go(number, record)
                else:
                    heappush(self.due, (change.at + self.owners.release_after_s * SECOND, number, change.object))
            elif change.what == "preempted" and change.cause in ENDED_BY_TIME:
                commands += self.again(number, self.office.get(change.object))
            elif change.what in ("rejected", "cancelled", "expired"):
                self.happened.append((change.at, change.what, number))
        return commands

    def let_go(self, number: int, record: RequestRecord) -> list[Any]:
        return [partial(requests.release, ref=record.id), *self.again(number, record)]

    def again(self, number: int, record: RequestRecord) -> list[Any]:
        assert record.state.grant is not None
        ran_us = self.office.clock.now() - record.state.grant.granted_at
        self.done_us[number] = self.owners.done_us(self.done_us[number], ran_us)
        return [self.submitting(number, self.jobs[number], retry_of=record.id)]


def simulated(ledger: Ledger) -> list[Happened]:
    """The same of a replay."""
    names = {Fate.DONE: "done", Fate.REJECTED: "rejected", Fate.CANCELLED: "cancelled", Fate.EXPIRED: "expired"}
    moves = zip(ledger.move_at, ledger.move_job, ledger.move_sign, strict=True)
    found: list[Happened] = [(at, "start", job) for at, job, sign in moves if sign > 0]
    found += [(evicted.at, "evicted", evicted.job) for evicted in ledger.evictions]
    found += [
        (ended, names[Fate(fate)], job)
        for job, (fate, ended) in enumerate(zip(ledger.fate, ledger.ended, strict=True))
        if Fate(fate) in names
    ]
    return found


def some_rules(random: Random) -> Office:
    office = Office()
    office.do(stacks.ensure_defaults)
    nodes = tuple(Node(name=f"n{at}", capacity=vector({"gpu": 4})) for at in range(random.randint(0, 3)))
    settings: dict[str, Any] = {
        "ordering": random.choice(list(Ordering)),
        "placement": random.choice([Placement.PACK, Placement.SPREAD]),
        "backfill": random.random() < 0.8,
        "max_bypass_s": random.choice([0, 30, 600]),
    }
    office.pool("p", {"licence": 3} if nodes else {"gpu": 12}, nodes=nodes, **settings)
    if random.random() < 0.5:
        office.pool("q", {"gpu": 4})
    total = 4 * len(nodes) if nodes else 12
    for team in TEAMS:
        reserved = random.randint(0, total // 3)
        office.policy(
            team,
            {"gpu": reserved},
            priority=random.randint(0, 2),
            grace_s=random.choice([0, 20, 30]),
            min_runtime_s=random.choice([0, 0, 45]),
        )
        if "q" in {pool.name for pool in office.memory.all(Kind.POOL)}:
            office.policy(team, {}, pool="q", priority=random.randint(0, 2))
    return office


def some_jobs(random: Random, start: Instant) -> list[Job]:
    at, jobs = start, []
    for number in range(random.randint(10, 40)):
        at = Instant(at + random.choice([0, 0, 1, 7, 30]) * SECOND)
        jobs.append(
            Job(
                name=str(number),
                submitted_at=at,
                run_us=random.choice([1, 10, 60, 200]) * SECOND,
                subjects=(Subject.parse(random.choice(TEAMS)),),
                demand=Demand.of(vector({"gpu": random.choice([0.5, 1, 2, 4, 9])}), random.choice([1, 1, 2])),
                preemptible=random.random() < 0.8,
                priority=random.choice([0, 0, 1]),
                max_runtime_s=random.choice([None, None, 30, 300]),
                wait_timeout_s=random.choice([None, None, None, 90]),
            )
        )
    return jobs


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_server_with_a_store_decides_the_same_as_the_simulator(seed: int) -> None:
    random = Random(seed)
    office = some_rules(random)
    jobs = some_jobs(random, office.clock.now())
    owners = Owners(
        progress=random.choice(list(Progress)),
        checkpoint_interval_s=random.choice([0, 20]),
        release_after_s=random.choice([0, 10, 25, 300]),
    )
    rules = without_work(office.store.load())
    ledger = Replay(rules, jobs, owners=owners, reader=office.store.reader).run()
    served = Served(office, jobs, owners).run()
    assert sorted(simulated(ledger)) == sorted(served)
    assert len(served) >= 2 * sum(fate == Fate.DONE for fate in ledger.fate)

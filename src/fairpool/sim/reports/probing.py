"""Why jobs waited: the replay once more, asking the core whenever one of them is queued and not served at once."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from fairpool.app.ports import Reader, Stored
from fairpool.core.amounts import get
from fairpool.core.explain import CandidateView, Explanation, explain
from fairpool.core.ids import Instant, PolicyId, RequestId
from fairpool.core.requests import Status
from fairpool.sim.jobs import Job
from fairpool.sim.ledger import Fate
from fairpool.sim.owners import Owners
from fairpool.sim.replay import Replay
from fairpool.sim.reports.outcome import Enough, Listening, Outcome
from fairpool.store.memory import MemoryStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the core says of a job that was queued at that moment and waits on."""

    job: int
    at: Instant
    explanation: Explanation
    uses: tuple[Use, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """How much of a resource that was missing a policy used then, in all of its pools. Thousandths."""

    policy: PolicyId
    key: str
    used: int
    reserved: int


def closest(explanation: Explanation) -> CandidateView | None:
    """The candidate in which the job's turn comes first."""
    return min(explanation.candidates, key=lambda view: view.position, default=None)


def ask_why(outcome: Outcome, jobs: Collection[int], listening: Listening) -> dict[tuple[int, Instant], Answer]:
    """The answers for these jobs, by number and the moment at which one was queued: on its arrival, after an eviction.

    The replay is repeated until they have all ended, or there is enough: then these are the answers so far.
    """
    replay = _Probing(
        outcome.rules, outcome.ledger.jobs, owners=outcome.owners, reader=MemoryStore().reader, watched=jobs
    )
    try:
        replay.run(outcome.ledger.ended_at, listening.hears_of(f"why jobs waited: {outcome.name}"))
    except Enough:
        listening.enough = True
    return replay.answers


class _Probing(Replay):
    """A replay that asks about the jobs that it watches, and decides nothing otherwise."""

    def __init__(
        self, rules: Stored, jobs: Collection[Job], *, owners: Owners, reader: Reader, watched: Collection[int]
    ) -> None:
        super().__init__(rules, jobs, owners=owners, reader=reader)
        self.answers: dict[tuple[int, Instant], Answer] = {}
        self._watched = set(watched)
        self._arrived = self._moved = 0  # how many of the ledger's jobs and moves have been looked at

    def _pass(self, now: Instant) -> None:
        super()._pass(now)
        ledger = self.ledger
        arrived, moved = len(ledger.jobs), len(ledger.move_job)
        concerned = {*range(self._arrived, arrived), *ledger.move_job[self._moved : moved]} & self._watched
        self._arrived, self._moved = arrived, moved
        for job in sorted(concerned):
            if ledger.fate[job] == Fate.WAITING:
                self._ask(job, now)
            elif ledger.fate[job] != Fate.RUNNING:
                self._watched.remove(job)
        if not self._watched:
            self.stop()

    def _ask(self, job: int, now: Instant) -> None:
        request = self._request(job)
        if request is not None:
            explanation = explain(self._world, request, now)
            uses = tuple(self._uses(explanation))
            self.answers[job, now] = Answer(job=job, at=now, explanation=explanation, uses=uses)

    def _uses(self, explanation: Explanation) -> Iterator[Use]:
        """Who uses what is missing where the job comes closest, the largest first."""
        view = closest(explanation)
        if view is None:
            return
        keys = sorted({reason.key for reason in view.reasons if reason.key})
        found = [
            Use(policy=policy, key=key, used=used, reserved=get(self._world.policies[policy].reserved, key))
            for policy in self._world.books[view.pool].policies
            for key in keys
            if (used := self._world.policy_usage(policy).get(key, 0))
        ]
        yield from sorted(found, key=lambda use: (use.key, -use.used, use.policy))

    def _request(self, job: int) -> RequestId | None:
        """The request that the job waits as."""
        attempt = self._attempts[job]
        request = RequestId(f"{job:08d}.{attempt}" if attempt else f"{job:08d}")
        return request if self._world.status_of(request) is Status.QUEUED else None

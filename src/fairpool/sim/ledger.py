"""What became of the jobs of a replay, in columns: a million jobs take little room, and reports read them in one go."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypeVar

from fairpool.core.ids import Instant, PolicyId, PoolId
from fairpool.core.reasons import Reason
from fairpool.core.requests import Because
from fairpool.sim.jobs import Job

Id = TypeVar("Id", PoolId, PolicyId)

NO_MOMENT = Instant(0)

NEVER = -1
"""In a column of moments or places: it did not happen."""


class Fate(IntEnum):
    """How a job stands when the replay ends."""

    WAITING = 0
    RUNNING = 1
    DONE = 2
    REJECTED = 3
    CANCELLED = 4
    EXPIRED = 5  # it ran for longer than it had said


@dataclass(frozen=True, slots=True)
class Evicted:
    """That a job had to let go. cause: the job that took its place, NEVER for an operator's wish. lost_us: work that
    has to be done again."""

    at: Instant
    job: int
    cause: int
    because: Because
    lost_us: int


@dataclass(slots=True)
class Ledger:
    """One row for each job, by its number; and what happened, in the order in which it did.

    fate: a Fate. first_start, last_start, ended: moments, or NEVER. held_us: how long it held something, all attempts
    together. lost_us: how much of that was done again. pool, policy: the numbers of those that it held last.
    moves: every grant and every end of one, as (moment, job, pool, policy, +1 or -1) in five columns; numbers as above.
    """

    jobs: list[Job] = field(default_factory=list)
    began_at: Instant = NO_MOMENT
    ended_at: Instant = NO_MOMENT
    fate: array[int] = field(default_factory=lambda: array("b"))
    first_start: array[int] = field(default_factory=lambda: array("q"))
    last_start: array[int] = field(default_factory=lambda: array("q"))
    ended: array[int] = field(default_factory=lambda: array("q"))
    held_us: array[int] = field(default_factory=lambda: array("q"))
    lost_us: array[int] = field(default_factory=lambda: array("q"))
    pool: array[int] = field(default_factory=lambda: array("h"))
    policy: array[int] = field(default_factory=lambda: array("h"))
    move_at: array[int] = field(default_factory=lambda: array("q"))
    move_job: array[int] = field(default_factory=lambda: array("l"))
    move_pool: array[int] = field(default_factory=lambda: array("h"))
    move_policy: array[int] = field(default_factory=lambda: array("h"))
    move_sign: array[int] = field(default_factory=lambda: array("b"))
    evictions: list[Evicted] = field(default_factory=list)
    refusals: dict[int, tuple[Reason, ...]] = field(default_factory=dict)  # why jobs were rejected or cancelled
    pools: list[PoolId] = field(default_factory=list)
    policies: list[PolicyId] = field(default_factory=list)
    decisions: int = 0
    _pool_numbers: dict[PoolId, int] = field(default_factory=dict)
    _policy_numbers: dict[PolicyId, int] = field(default_factory=dict)

    def arrive(self, job: Job) -> int:
        """A row for a job; its number."""
        number = len(self.jobs)
        self.jobs.append(job)
        self.fate.append(Fate.WAITING)
        for moments in (self.first_start, self.last_start, self.ended):
            moments.append(NEVER)
        self.held_us.append(0)
        self.lost_us.append(0)
        self.pool.append(NEVER)
        self.policy.append(NEVER)
        return number

    def start(self, job: int, at: Instant, pool: PoolId | None, policy: PolicyId | None) -> None:
        """A job begins to hold something."""
        self.fate[job] = Fate.RUNNING
        self.last_start[job] = at
        if self.first_start[job] == NEVER:
            self.first_start[job] = at
        self.pool[job] = _number(pool, self._pool_numbers, self.pools)
        self.policy[job] = _number(policy, self._policy_numbers, self.policies)
        self._move(job, at, 1)

    def stop(self, job: int, at: Instant, fate: Fate) -> None:
        """A job holds nothing any more."""
        self.fate[job] = fate
        self.held_us[job] += at - self.last_start[job]
        if fate is not Fate.WAITING:
            self.ended[job] = at
        self._move(job, at, -1)

    def leave(self, job: int, at: Instant, fate: Fate, reasons: tuple[Reason, ...]) -> None:
        """A waiting job goes away unserved."""
        self.fate[job] = fate
        self.ended[job] = at
        self.refusals[job] = reasons

    def _move(self, job: int, at: Instant, sign: int) -> None:
        self.move_at.append(at)
        self.move_job.append(job)
        self.move_pool.append(self.pool[job])
        self.move_policy.append(self.policy[job])
        self.move_sign.append(sign)

    def wait_us(self, job: int) -> int:
        """How long the job has spent neither running nor finished, until it ended or the replay did."""
        ended = self.ended[job]
        if ended != NEVER:
            return ended - self.jobs[job].submitted_at - self.held_us[job]
        running_us = self.ended_at - self.last_start[job] if self.fate[job] == Fate.RUNNING else 0
        return self.ended_at - self.jobs[job].submitted_at - self.held_us[job] - running_us


def _number(found: Id | None, numbers: dict[Id, int], names: list[Id]) -> int:
    if found is None:
        return NEVER
    number = numbers.get(found)
    if number is None:
        number = numbers[found] = len(names)
        names.append(found)
    return number

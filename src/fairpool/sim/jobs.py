"""What a trace says: jobs, each with when it was asked for, what it asks and how long it runs once it has that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from fairpool.core.ids import SECOND, Instant
from fairpool.core.policies import Subject
from fairpool.core.requests import Demand


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job.

    name: as the trace names it. run_us: microseconds that it runs once it holds everything, at least one.
    subjects: as whom it is asked for (S13); where no team is named, a user or service account brings those along
    that the rules put it in.
    demand: None where the profile says it. max_runtime_s: what its owner declared, whether true or not.
    recurs_as: what jobs of one kind have in common (a step, a user), for estimates from experience; "" for nothing.
    """

    name: str
    submitted_at: Instant
    run_us: int
    subjects: tuple[Subject, ...]
    demand: Demand | None
    preemptible: bool = True
    priority: int = 0
    profile: str = ""
    pool: str = ""
    max_runtime_s: int | None = None
    wait_timeout_s: int | None = None
    recurs_as: str = ""


class Order(StrEnum):
    """In which order a policy's own jobs are served: what the simulator offers for comparison.

    Each is the request's own priority (S23, criterion 6), which never counts against another policy.
    """

    TRACE = "trace"
    OLDEST = "oldest"
    SHORTEST = "shortest"


def in_order(jobs: Iterable[Job], order: Order) -> list[Job]:
    """The jobs by time of arrival, with the priority that the order gives them."""
    arrived = sorted(jobs, key=lambda job: job.submitted_at)
    match order:
        case Order.TRACE:
            return arrived
        case Order.OLDEST:
            return [replace(job, priority=-place) for place, job in enumerate(arrived)]
        case Order.SHORTEST:
            return [replace(job, priority=-(job.run_us // SECOND)) for job in arrived]


def until(jobs: Sequence[Job], moment: Instant | None) -> Sequence[Job]:
    """The jobs that were asked for before that moment."""
    return jobs if moment is None else [job for job in jobs if job.submitted_at < moment]

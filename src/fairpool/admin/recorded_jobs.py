"""The demand that a server has recorded, as a trace: its requests as the API tells them.

What an evicted request has run and all that repeated it is one job (S24). How long a job runs is how long it held
something, all attempts together: what was done twice because no checkpoint held it counts twice. Work that still ran
counts as if it had ended when the records were read; what never started tells nothing of how long it would run, and
is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from fairpool.core.amounts import vector
from fairpool.core.ids import Instant
from fairpool.core.policies import Subject
from fairpool.core.requests import Demand
from fairpool.sim.jobs import Job
from fairpool.sim.traces.reading import instant_of
from fairpool.wire.requests import RequestView


def recorded_jobs(views: Iterable[RequestView], read_at: Instant) -> list[Job]:
    """The jobs by time of arrival."""
    attempts = sorted(views, key=lambda view: (view.created_at, view.id))
    jobs: dict[str, Job] = {}
    first_of: dict[str, str] = {}
    for view in attempts:
        first = first_of[view.id] = first_of.get(view.retry_of or "", view.id)
        held_us = _held_us(view, read_at)
        if first in jobs:
            jobs[first] = replace(jobs[first], run_us=jobs[first].run_us + held_us)
        elif held_us > 0:
            jobs[first] = _job(view, held_us)
    return sorted(jobs.values(), key=lambda job: job.submitted_at)


def _held_us(view: RequestView, read_at: Instant) -> int:
    if view.allocation is None:
        return 0
    return (instant_of(view.ended_at) if view.ended_at else read_at) - instant_of(view.allocation.granted_at)


def _job(view: RequestView, run_us: int) -> Job:
    return Job(
        name=view.name or view.id,
        submitted_at=instant_of(view.queued_at),
        run_us=run_us,
        subjects=tuple(Subject.parse(subject) for subject in view.subjects),
        demand=Demand(tuple(vector(part) for part in view.parts or [view.demand])),
        preemptible=view.preemptible,
        priority=view.priority,
        profile=view.profile or "",
        pool=view.pool or "",
        max_runtime_s=view.max_runtime_s,
        wait_timeout_s=view.wait_timeout_s,
        recurs_as=_recurs_as(view.labels, view.name),
    )


def _recurs_as(labels: Mapping[str, str], name: str) -> str:
    return labels.get("step", "") or name

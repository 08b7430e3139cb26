"""The Standard Workload Format of the Parallel Workloads Archive: one job per line, 18 fields, ``;`` before remarks.

``; UnixStartTime: N`` gives the moment that times are counted from. A job's user is ``user:u<number>``, its group
``team:g<number>``. The processors that it was given, else those it asked for, are what it demands, of the key that the
reader is told. What it asked for as its time is its ``max_runtime_s``.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from typing import IO

from fairpool.core.amounts import MCPU, WHOLE
from fairpool.core.errors import InvalidInput
from fairpool.core.ids import SECOND, Instant
from fairpool.core.policies import Subject, SubjectKind
from fairpool.core.requests import Demand
from fairpool.sim.jobs import Job
from fairpool.sim.traces.reading import TraceFault, opened

START = "UnixStartTime:"
UNKNOWN = -1


class Field(IntEnum):
    """The fields of a line that are read, by their place."""

    NUMBER = 0
    SUBMITTED = 1
    RUN = 3
    PROCESSORS = 4
    ASKED_PROCESSORS = 7
    ASKED_TIME = 8
    USER = 11
    GROUP = 12
    EXECUTABLE = 13


FIELDS = 18


def read(path: Path, key: str = MCPU) -> list[Job]:
    """The jobs that ran, in the order of the file. key: of what a processor is one; of `mcpu` it is a thousand.

    Raises TraceFault.
    """
    with opened(path) as stream:
        return list(_jobs(stream, path, key))


def _jobs(stream: IO[str], path: Path, key: str) -> Iterator[Job]:
    start_s = 0
    for line, text in enumerate(stream, start=1):
        if text.startswith(";"):
            _, found, said = text.partition(START)
            start_s = _whole(said.split()[0], path, line, START) if found and said.split() else start_s
        elif text.strip():
            job = _job(_fields(text, path, line), start_s, key, path, line)
            if job is not None:
                yield job


def _fields(text: str, path: Path, line: int) -> list[int]:
    said = text.split()
    if len(said) != FIELDS:
        raise TraceFault(
            f"{len(said)} fields; a line of the Standard Workload Format has 18", file=str(path), line=line
        )
    return [_whole(each, path, line, f"field {place}") for place, each in enumerate(said, start=1)]


def _whole(said: str, path: Path, line: int, field: str) -> int:
    """A number; what some archives write with a fraction is rounded down."""
    try:
        return int(float(said))
    except (ValueError, OverflowError):
        raise TraceFault(f"{said!r} is no number", file=str(path), line=line, field=field) from None


def _job(fields: list[int], start_s: int, key: str, path: Path, line: int) -> Job | None:
    """None for one that never ran or asked for nothing."""
    processors = fields[Field.PROCESSORS] if fields[Field.PROCESSORS] > 0 else fields[Field.ASKED_PROCESSORS]
    if processors <= 0 or fields[Field.RUN] < 0:
        return None
    user, group, asked_s = fields[Field.USER], fields[Field.GROUP], fields[Field.ASKED_TIME]
    try:
        demand = Demand((((key, processors * WHOLE * (1000 if key == MCPU else 1)),),))
    except InvalidInput as error:
        raise TraceFault(error.message, file=str(path), line=line, field=key) from None
    return Job(
        name=str(fields[Field.NUMBER]),
        submitted_at=Instant((start_s + max(0, fields[Field.SUBMITTED])) * SECOND),
        run_us=max(1, fields[Field.RUN]) * SECOND,
        subjects=_subjects(user, group),
        demand=demand,
        max_runtime_s=asked_s if asked_s > 0 else None,
        recurs_as=f"u{user}/{fields[Field.EXECUTABLE]}",
    )


def _subjects(user: int, group: int) -> tuple[Subject, ...]:
    team = [Subject(SubjectKind.TEAM, f"g{group}")] if group != UNKNOWN else []
    person = [Subject(SubjectKind.USER, f"u{user}")] if user != UNKNOWN else []
    return (*team, *person) or (Subject(SubjectKind.USER, "unknown"),)

"""Fairpool's own format of traces: a table (CSV) with a header.

``submitted_at`` (ISO 8601, UTC where it names no zone; or seconds since 1970), ``run_s`` and ``subject`` (several with
spaces between) are needed. What is asked for stands in one column per resource key (``gpu``, ``mcpu``, ``memory_mb``,
or any other as ``demand.KEY``) or follows from ``profile``. Besides: ``name``, ``parts`` (how many equal ones, 1),
``preemptible`` (true), ``priority`` (0), ``pool``, ``max_runtime_s``, ``wait_timeout_s``, ``recurs_as``.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from pathlib import Path

from fairpool.core.amounts import GPU, MCPU, MEMORY_MB, vector
from fairpool.core.errors import InvalidInput
from fairpool.core.ids import Instant, seconds
from fairpool.core.policies import Subject
from fairpool.core.requests import Demand
from fairpool.sim.jobs import Job
from fairpool.sim.traces.reading import Row, TraceFault, instant_of, opened, table

NEEDED = ("submitted_at", "run_s", "subject")
KEYS = (GPU, MCPU, MEMORY_MB)
OTHER_KEYS = "demand."
COLUMNS = (
    *NEEDED, "name", "parts", "preemptible", "priority", "profile", "pool", "max_runtime_s", "wait_timeout_s",
    "recurs_as", *KEYS,
)  # fmt: skip


def read(path: Path) -> list[Job]:
    """The jobs, in the order of the file. Raises TraceFault."""
    with opened(path) as stream:
        found = []
        for number, row in enumerate(table(stream, path, NEEDED), start=1):
            if number == 1:
                _check_columns(row)
            found.append(_job(number, row))
        return found


def _check_columns(row: Row) -> None:
    """A misspelt column would silently ask for nothing."""
    unknown = [name for name in row.cells if name not in COLUMNS and not str(name).startswith(OTHER_KEYS)]
    if unknown:
        told = f"no such column; possible: {', '.join(COLUMNS)}, {OTHER_KEYS}KEY"
        raise TraceFault(told, file=row.file, line=1, field=str(unknown[0]))


def _job(number: int, row: Row) -> Job:
    demand = _demand(row)
    profile = row.text("profile")
    if demand is None and not profile:
        row.wrong("profile", "asks for nothing: a column of a resource key, or a profile")
    try:
        return Job(
            name=row.text("name") or str(number),
            submitted_at=_moment(row),
            run_us=max(1, _seconds(row, "run_s")),
            subjects=_subjects(row.text("subject")),
            demand=demand,
            preemptible=_flag(row, "preemptible"),
            priority=int(row.text("priority") or 0),
            profile=profile,
            pool=row.text("pool"),
            max_runtime_s=row.number("max_runtime_s", least=1) if row.text("max_runtime_s") else None,
            wait_timeout_s=row.number("wait_timeout_s") if row.text("wait_timeout_s") else None,
            recurs_as=row.text("recurs_as"),
        )
    except InvalidInput as error:
        raise TraceFault(error.message, file=row.file, line=row.line, field="subject") from None
    except ValueError:
        row.wrong("priority", f"{row.text('priority')!r} is no whole number")


def _moment(row: Row) -> Instant:
    said = row.text("submitted_at")
    if said.replace(".", "", 1).isdigit():
        return Instant(_seconds(row, "submitted_at"))
    try:
        found = datetime.fromisoformat(said)
    except ValueError:
        row.wrong("submitted_at", f"{said!r} is neither a date and time nor seconds")
    return instant_of(found)


def _seconds(row: Row, field: str) -> int:
    """Microseconds, from seconds with a fraction where there is one."""
    said = row.text(field)
    try:
        found = seconds(float(said)) if "." in said else seconds(int(said))
    except (ValueError, OverflowError):
        row.wrong(field, f"{said!r} is no number of seconds")
    if found < 0:
        row.wrong(field, f"{said} is below 0")
    return found


def _flag(row: Row, field: str) -> bool:
    said = row.text(field).lower() or "true"
    if said not in ("true", "false", "1", "0", "yes", "no"):
        row.wrong(field, f"{said!r} is neither true nor false")
    return said in ("true", "1", "yes")


@lru_cache(maxsize=10_000)
def _subjects(said: str) -> tuple[Subject, ...]:
    return tuple(Subject.parse(each) for each in said.split())


def _demand(row: Row) -> Demand | None:
    said = [(key.removeprefix(OTHER_KEYS), row.text(key)) for key in row.cells if _is_key(key)]
    asked = tuple((key, value) for key, value in said if value)
    if not asked:
        return None
    try:
        return _of(asked, row.number("parts", least=1) if row.text("parts") else 1)
    except InvalidInput as error:
        row.refused(error)


def _is_key(column: str | None) -> bool:
    return column is not None and (column in KEYS or column.startswith(OTHER_KEYS))


@lru_cache(maxsize=10_000)
def _of(asked: Iterable[tuple[str, str]], parts: int) -> Demand:
    return Demand.of(vector(dict(asked)), parts)

"""Microsoft's Philly trace: deep learning jobs of eleven virtual clusters, 2017 (``timestamp, duration, num_gpus, …``).

Times of the trace are local without a time zone; they are taken as UTC, so that lengths between them stay exact but
for the hour that the clocks went back. A virtual cluster is a team.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from pathlib import Path

from fairpool.core.amounts import GPU, WHOLE
from fairpool.core.ids import SECOND, Instant
from fairpool.core.policies import Subject, SubjectKind
from fairpool.core.requests import Demand
from fairpool.sim.jobs import Job
from fairpool.sim.traces.reading import Row, instant_of, opened, table

COLUMNS = ("timestamp", "duration", "num_gpus", "cluster")
GPUS_OF_A_NODE = 8


def read(path: Path) -> list[Job]:
    """The jobs, in the order of the file; such as use no GPU are left out. Raises TraceFault."""
    with opened(path) as stream:
        rows = [(number, row) for number, row in enumerate(table(stream, path, COLUMNS), start=1)]
        return [_job(number, row, gpus) for number, row in rows if (gpus := row.number("num_gpus")) > 0]


def _job(number: int, row: Row, gpus: int) -> Job:
    """Run times of less than a second are taken as one."""
    return Job(
        name=f"philly-{number}",
        submitted_at=_moment(row),
        run_us=max(1, row.number("duration")) * SECOND,
        subjects=(_team(row.text("cluster")),),
        demand=demand(gpus),
        recurs_as=f"{row.text('cluster')}/{gpus}",
    )


def _moment(row: Row) -> Instant:
    said = row.text("timestamp")
    try:
        return instant_of(datetime.fromisoformat(said))
    except ValueError:
        row.wrong("timestamp", f"{said!r} is no date and time")


@lru_cache
def _team(cluster: str) -> Subject:
    return Subject(SubjectKind.TEAM, cluster)


@lru_cache(maxsize=1024)
def demand(gpus: int) -> Demand:
    """One part on one node; of more than a node has, whole nodes and one part for the rest (S3)."""
    whole, rest = divmod(gpus, GPUS_OF_A_NODE)
    if gpus <= GPUS_OF_A_NODE:
        return Demand((((GPU, gpus * WHOLE),),))
    parts = [((GPU, GPUS_OF_A_NODE * WHOLE),)] * whole + [((GPU, rest * WHOLE),)] * bool(rest)
    return Demand(tuple(parts))


def read_nodes(path: Path) -> Mapping[str, int]:
    """How many nodes each virtual cluster has (``vc, node num``). Raises TraceFault."""
    with opened(path) as stream:
        return {row.text("vc"): row.number("node num", least=1) for row in table(stream, path, ("vc", "node num"))}

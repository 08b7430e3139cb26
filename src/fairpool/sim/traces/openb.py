"""Alibaba's openb trace: tasks with whole GPUs or a fraction of one (``cluster-trace-gpu-v2023``, list of pods).

Times are seconds from an unknown beginning, taken as 1970. A task's quality of service is its team (``team:LS``).
A task that names GPU models asks for a profile of these names joined by hyphens (``V100M16-V100M32``), so that the
rules say which pools have them. How long a task runs is from when it was scheduled until it was deleted.
"""

from __future__ import annotations

from pathlib import Path

from fairpool.core.amounts import GPU, MCPU, MEMORY_MB, WHOLE, of
from fairpool.core.ids import SECOND, Instant
from fairpool.core.policies import Subject, SubjectKind
from fairpool.core.pools import Node
from fairpool.core.requests import Demand
from fairpool.sim.jobs import Job
from fairpool.sim.traces.reading import Row, opened, table

COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "creation_time", "deletion_time")
NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")


def read(path: Path) -> list[Job]:
    """The tasks, in the order of the file. Raises TraceFault."""
    with opened(path) as stream:
        return [_job(row) for row in table(stream, path, COLUMNS)]


def read_nodes(path: Path) -> list[Node]:
    """The machines, in the order of the file. Raises TraceFault."""
    with opened(path) as stream:
        return [_node(row) for row in table(stream, path, NODE_COLUMNS)]


def _job(row: Row) -> Job:
    created, deleted = row.number("creation_time"), row.number("deletion_time")
    started = row.number("scheduled_time") if row.text("scheduled_time") else created
    return Job(
        name=row.text("name"),
        submitted_at=Instant(created * SECOND),
        run_us=max(1, deleted - started) * SECOND,
        subjects=(Subject(SubjectKind.TEAM, row.text("qos") or "all"),),
        demand=demand(row),
        profile="-".join(row.text("gpu_spec").split("|")),
    )


def demand(row: Row) -> Demand:
    """What a task asks for, in one part: a fraction of one GPU, or whole ones."""
    gpus = row.number("num_gpu")
    share = row.number("gpu_milli") if gpus == 1 else gpus * WHOLE
    return Demand((of({GPU: share, MCPU: row.number("cpu_milli") * WHOLE, MEMORY_MB: _megabytes(row) * WHOLE}),))


def _node(row: Row) -> Node:
    capacity = {
        GPU: row.number("gpu") * WHOLE,
        MCPU: row.number("cpu_milli") * WHOLE,
        MEMORY_MB: _megabytes(row) * WHOLE,
    }
    return Node(name=row.text("sn"), capacity=of(capacity), gpu_type=row.text("model"))


def _megabytes(row: Row) -> int:
    """The trace counts in 2^20 bytes, a demand in 10^6 (S1)."""
    return -(-row.number("memory_mib") * 2**20 // 10**6)

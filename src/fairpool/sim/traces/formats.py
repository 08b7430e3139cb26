"""Which formats of traces there are, and telling them apart by how a file begins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType

from fairpool.core.amounts import MCPU
from fairpool.sim.jobs import Job
from fairpool.sim.traces import openb, philly, swf, table
from fairpool.sim.traces.reading import TraceFault, opened

FORMATS: Mapping[str, Callable[[Path], list[Job]]] = MappingProxyType(
    {"csv": table.read, "philly": philly.read, "openb": openb.read, "swf": swf.read}
)
"""Readers by the names of their formats. All raise TraceFault."""

_HEADERS = {"csv": table.NEEDED, "philly": philly.COLUMNS, "openb": openb.COLUMNS}


def read_trace(path: Path, named: str = "", *, processors_as: str = MCPU) -> list[Job]:
    """The jobs of a trace. named: its format, where that is known. processors_as: the key of which processors of the
    Standard Workload Format are. Raises TraceFault."""
    found = named or detected(path)
    read = partial(swf.read, key=processors_as) if found == "swf" else FORMATS[found]
    jobs = read(path)
    if not jobs:
        raise TraceFault("holds no job", file=str(path))
    return jobs


def detected(path: Path) -> str:
    """The name of the format. Raises TraceFault where it is none of them."""
    with opened(path) as stream:
        first = next((line for line in stream if line.strip()), "")
    columns = {column.strip() for column in first.split(",")}
    for name, needed in _HEADERS.items():
        if columns.issuperset(needed):
            return name
    if first.startswith(";") or len(first.split()) == swf.FIELDS:
        return "swf"
    told = f"is of no format that is known ({', '.join(FORMATS)}): it begins with {first.strip()[:60]!r}"
    raise TraceFault(told, file=str(path), line=1)

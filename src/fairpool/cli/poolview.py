"""What several commands show of pools and their nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairpool.cli import render
from fairpool.cli.options import note
from fairpool.cli.render import Column

if TYPE_CHECKING:
    from fairpool.wire.pools import NodeView, PoolView


@dataclass(frozen=True, slots=True)
class Placed:
    """A node, and the pool that it belongs to."""

    pool: PoolView
    node: NodeView


NAMES = (Column("NODE", lambda placed: placed.node.name), Column("POOL", lambda placed: placed.pool.name))
COLUMNS = (
    Column("STATE", lambda placed: placed.node.state),
    Column("USED", lambda placed: render.shares(placed.node.used, placed.node.capacity)),
    Column("GPU-TYPE", lambda placed: placed.node.gpu_type),
    Column("REQUESTS", lambda placed: len(placed.node.requests)),
    Column("LABELS", lambda placed: _labels(placed.node.labels), wide=True),
)


def warn(made: PoolView) -> None:
    """Tell what a pool that was changed has too little of."""
    for warning in made.warnings:
        note(f"warning: {warning}")


def _labels(labels: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))

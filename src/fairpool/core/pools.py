"""Supply: pools, their nodes, and what of them counts (S5 to S10)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from fairpool.core.amounts import GPU, UNMETERED_BY_DEFAULT, WHOLE, Amounts, get, total
from fairpool.core.errors import InvalidRules
from fairpool.core.ids import PoolId, check_name

DEFAULT_MAX_BYPASS_S = 600  # S25


class NodeState(StrEnum):
    """Whether a node takes new work. Only `ready` adds free capacity (S6)."""

    READY = "ready"
    CORDONED = "cordoned"
    DOWN = "down"
    UNKNOWN = "unknown"


class PoolState(StrEnum):
    """A draining pool grants nothing and goes away when its last allocation ends (S10)."""

    ACTIVE = "active"
    DRAINING = "draining"


class Ordering(StrEnum):
    """Whether equals are served by dominant borrowed share or plainly by age (S23, criterion 5)."""

    FAIR = "fair"
    FIFO = "fifo"


class Placement(StrEnum):
    """Which fitting node a part takes: the fullest (`pack`), the emptiest (`spread`), or the one where it spoils least
    for the kinds of demand that run and wait in the pool (`defragment`) (S8)."""

    PACK = "pack"
    SPREAD = "spread"
    DEFRAGMENT = "defragment"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One machine of a pool."""

    name: str
    capacity: Amounts
    state: NodeState = NodeState.READY
    gpu_type: str = ""
    labels: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        check_name(self.name, what="node name")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A named, shared bucket of countable resources.

    capacity: of a pool without nodes, all there is; of a pool with nodes, its pool-level keys (licences, `step_run`).
    nodes: the machines it is made of; empty for a pool that is one bucket (S7).
    components: where not empty, only requests that run on one of these have a candidate here (S13b).
    max_bypass_s: how long the first blocked request is overtaken before capacity is held for it (S25).
    """

    id: PoolId
    name: str
    capacity: Amounts = ()
    nodes: tuple[Node, ...] = ()
    state: PoolState = PoolState.ACTIVE
    ordering: Ordering = Ordering.FAIR
    backfill: bool = True
    placement: Placement = Placement.PACK
    max_bypass_s: int = DEFAULT_MAX_BYPASS_S
    components: frozenset[str] = field(default_factory=frozenset)

    def __post_init__(self) -> None:
        check_name(self.name, what="pool name")
        names = [node.name for node in self.nodes]
        if len(set(names)) != len(names):
            twice = sorted({name for name in names if names.count(name) > 1})
            raise InvalidRules(f"pool {self.name!r} lists node {twice[0]!r} twice", field="nodes", value=twice[0])
        from_nodes = {key for node in self.nodes for key, _ in node.capacity}
        for key, _ in self.capacity:
            if key in from_nodes:
                raise InvalidRules(
                    f"pool {self.name!r} has {key!r} both from its nodes and as a pool-level key",
                    field=f"capacity.{key}",
                    possible="either on the nodes or on the pool",
                )
        if self.max_bypass_s < 0:
            raise InvalidRules("max_bypass_s may not be negative", field="max_bypass_s", value=str(self.max_bypass_s))


def nominal_capacity(pool: Pool) -> Amounts:
    """Everything the pool would have with all of its nodes healthy: what could ever be, so what S16 and S11 go by."""
    return total([pool.capacity, *(node.capacity for node in pool.nodes)])


def healthy_capacity(pool: Pool) -> Amounts:
    """The pool's capacity as S6 has it: its healthy nodes and its pool-level keys."""
    ready = (node.capacity for node in pool.nodes if node.state is NodeState.READY)
    return total([pool.capacity, *ready])


def is_bounded(pool: Pool, key: str) -> bool:
    """Whether the pool meters `key` (S5): it lists it, or the key is none of those that are unmetered by default."""
    if key not in UNMETERED_BY_DEFAULT:
        return True
    return any(key == name for name, _ in pool.capacity) or any(
        key == name for node in pool.nodes for name, _ in node.capacity
    )


def device_count(capacity: Amounts) -> int:
    """How many GPU devices a node of that capacity has; a fractional rest is no device, since no grant could be on it
    and stay exact about which hardware it names."""
    return get(capacity, GPU) // WHOLE

"""Pools and their nodes over HTTP."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from fairpool.wire.amounts import Amounts, SomeAmounts
from fairpool.wire.model import Body, Flag, Labels, Line, Prose, Seconds, View
from fairpool.wire.policies import PolicyView

NodeState = Literal["ready", "cordoned", "down", "unknown"]


class NodeSpec(Body):
    """One machine of a pool: what it has, and whether it takes new work."""

    name: str
    capacity: SomeAmounts
    state: NodeState = "ready"
    gpu_type: Line = ""
    labels: Labels = Field(default_factory=dict, max_length=64)


class PoolCreate(Body):
    """A pool that does not exist yet.

    capacity: of a pool without nodes, all there is; of one with nodes, its pool-level keys (licences, ``step_run``).
    components: where not empty, only requests that run on one of these have a candidate here (S13b).
    max_bypass_s: how long the first blocked request is overtaken before capacity is held for it (S25).
    """

    name: str
    capacity: SomeAmounts = Field(default_factory=dict)
    nodes: list[NodeSpec] = Field(default_factory=list)
    ordering: Literal["fair", "fifo"] = "fair"
    backfill: Flag = True
    placement: Literal["pack", "spread", "defragment"] = "pack"
    max_bypass_s: Seconds = 600
    components: list[str] = Field(default_factory=list)
    description: Prose = ""


class PoolUpdate(Body):
    """What changes of a pool; fields that are left out stay.

    capacity: the keys given change, the others stay; 0 removes a key (S9).
    nodes: the whole new list.
    evict_borrowers: also tell borrowers to leave until what is in use fits the new capacity (S9).
    """

    name: str | None = None
    capacity: SomeAmounts | None = None
    nodes: list[NodeSpec] | None = None
    ordering: Literal["fair", "fifo"] | None = None
    backfill: Flag | None = None
    placement: Literal["pack", "spread", "defragment"] | None = None
    max_bypass_s: Seconds | None = None
    components: list[str] | None = None
    description: Prose | None = None
    evict_borrowers: Flag = False


class NodeUpdate(Body):
    """What changes of one node."""

    state: NodeState | None = None
    labels: Labels | None = Field(default=None, max_length=64)


class NodeView(View):
    """One machine of a pool, with what is used of it."""

    name: str
    capacity: Amounts
    used: Amounts = Field(default_factory=dict)
    state: str = "ready"
    gpu_type: str = ""
    labels: dict[str, str] = Field(default_factory=dict)
    requests: list[str] = Field(default_factory=list)


class PoolView(View):
    """A pool as it is now.

    state: ``active``, ``draining``, ``degraded`` (nodes are missing, S6) or ``over capacity`` (S9).
    capacity: what counts now; with nodes, what the healthy ones add up to. nominal: with all nodes healthy.
    reserved: what policies promise here; what they promise over several pools together is theirs alone.
    borrowed: what is used beyond reservations. warnings: what it has less of than is in use or reserved, in words.
    """

    kind: str = "pool"
    id: str
    name: str
    version: int
    state: str = "active"
    capacity: Amounts
    nominal: Amounts = Field(default_factory=dict)
    used: Amounts = Field(default_factory=dict)
    free: Amounts = Field(default_factory=dict)
    reserved: Amounts = Field(default_factory=dict)
    borrowed: Amounts = Field(default_factory=dict)
    queued: int = 0
    active: int = 0
    nodes: list[NodeView] = Field(default_factory=list)
    ordering: str = "fair"
    backfill: bool = True
    placement: str = "pack"
    max_bypass_s: int = 600
    components: list[str] = Field(default_factory=list)
    description: str = ""
    policies: list[PolicyView] = Field(default_factory=list)
    warnings: list[str] = Field(default_factory=list)
    created_at: datetime | None = None
    updated_at: datetime | None = None


class PoolDeletion(View):
    """What deleting a pool did, or with ``dry_run`` would do.

    outcome: ``deleted``, or ``draining`` until the last work there has ended.
    """

    pool: str
    outcome: Literal["deleted", "draining"]
    queued: list[str] = Field(default_factory=list)
    active: list[str] = Field(default_factory=list)
    policies: list[str] = Field(default_factory=list)

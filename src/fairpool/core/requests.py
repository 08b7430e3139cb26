"""Demand: requests, and the allocations that granted ones hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from fairpool.core.amounts import GPU, WHOLE, Amounts, get, show, total
from fairpool.core.errors import InvalidInput
from fairpool.core.ids import Instant, PolicyId, PoolId, RequestId
from fairpool.core.policies import Subject


class Status(StrEnum):
    """Where a request is in its life (section 9 of the semantics)."""

    QUEUED = "queued"
    ALLOCATED = "allocated"
    PREEMPTING = "preempting"
    RELEASED = "released"
    PREEMPTED = "preempted"
    REJECTED = "rejected"
    CANCELLED = "cancelled"
    EXPIRED = "expired"

    __hash__ = str.__hash__  # an enum's own is a call into Python, and every event looks its status up

    @property
    def is_final(self) -> bool:
        """Whether nothing can happen to the request any more."""
        return self not in (Status.QUEUED, Status.ALLOCATED, Status.PREEMPTING)


class Because(StrEnum):
    """Why an allocation is evicted (S28; `capacity` is an operator's choice, S9)."""

    RECLAIM = "reclaim"
    PRIORITY = "priority"
    CAPACITY = "capacity"


@dataclass(frozen=True, slots=True)
class Demand:
    """What a request asks for: one or more parts, each placed whole on one node, all together or not at all (S3).

    total: the sum over the parts, which is what quotas count.
    """

    parts: tuple[Amounts, ...]
    total: Amounts = field(default=(), init=False, compare=False)
    _hash: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.parts:
            raise InvalidInput("a demand needs at least one part", field="parts", possible="one or more")
        for part in self.parts:
            gpus = get(part, GPU)
            if gpus > WHOLE and gpus % WHOLE:
                raise InvalidInput(
                    f"{show(gpus)} GPUs in one part: a fraction lives on one device",
                    field=GPU,
                    value=show(gpus),
                    possible="a whole number, or a fraction below one (S2)",
                )
        object.__setattr__(self, "total", total(self.parts))
        object.__setattr__(self, "_hash", hash(self.parts))

    def __hash__(self) -> int:
        return self._hash

    @classmethod
    def of(cls, part: Amounts, count: int = 1) -> Demand:
        """`count` equal parts."""
        if count < 1:
            raise InvalidInput(f"node_count {count}", field="node_count", value=str(count), possible="1 or more")
        return cls((part,) * count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One indivisible ask for resources. Its status is not here: the world holds it by where the request is.

    subjects: as whom it is made: its component, its user's teams, its user or service account (S13).
    pool: the one pool it wants by name, or empty for any.
    queued_at: when it was first queued; a retry after preemption keeps that of the request it repeats (S24).
    """

    id: RequestId
    subjects: tuple[Subject, ...]
    demand: Demand
    queued_at: Instant
    preemptible: bool = True
    priority: int = 0
    profile: str = ""
    pool: str = ""
    max_runtime_s: int | None = None
    wait_timeout_s: int | None = None


@dataclass(frozen=True, slots=True)
class PartPlacement:
    """Where one part lies: its node ("" in a pool without nodes) and how many thousandths of which GPU devices."""

    node: str
    devices: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Eviction:
    """That an allocation must let go: for which request (None: an operator's wish), why, and until when (S31)."""

    cause: RequestId | None
    because: Because
    deadline_at: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """What a granted request holds.

    pool, policy: None for work that no policy governs (S15) or that was let go by a deleted pool (S10).
    parts: one placement per part of the demand, in its order.
    sequence: counts grants, so that "the order of granting" (S20, S29) is total.
    """

    request: Request
    pool: PoolId | None
    policy: PolicyId | None
    parts: tuple[PartPlacement, ...]
    granted_at: Instant
    sequence: int
    eviction: Eviction | None = None

    @property
    def status(self) -> Status:
        """`preempting` while it is told to let go, else `allocated`."""
        return Status.PREEMPTING if self.eviction else Status.ALLOCATED

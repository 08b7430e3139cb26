"""Requests, what they hold, and their leases over HTTP."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from fairpool.wire.amounts import Amount, Amounts, SomeAmounts
from fairpool.wire.model import Body, Flag, Key, Labels, Line, Priority, Prose, Ref, Seconds, SomeSeconds, View, Whole
from fairpool.wire.problems import Problem
from fairpool.wire.values import RequestStatus

DEFAULT_LEASE_S = 60
MAX_PARTS = 1_000
"""Nodes that one request can span."""

MAX_BULK = 10_000
"""Requests in one bulk creation, and leases in one bulk renewal."""


class RequestCreate(Body):
    """One indivisible ask for resources.

    demand: what one part needs; `node_count` equal parts of it, or `parts` for unequal ones (S3). With a `profile` it
        may be left out: the profile says it. So do its defaults of `preemptible`, `max_runtime_s` and `labels`.
    preemptible: whether it may be interrupted; true where neither it nor its profile says (S4).
    subjects: as whom: the component it runs on and whose it is (``team:vision``); ``component:`` may be left off.
        Whoever the token is of is added, and their teams.
    team: which of their teams it is made as; all of them if left out.
    pool: the one pool that will do, or None for any. profile: a named demand with pools in order of preference.
    priority: counts only against other requests of the same policy (S23).
    wait_timeout_s: rejected when it waited so long. max_runtime_s: how long it will hold its resources at most.
    lease_s: how long it is believed alive without a renewal (S35).
    retry_of: the preempted request that this one repeats; it keeps that one's place in the queue (S24).
    idempotency_key: the same key returns the same request; the ``Idempotency-Key`` header says it for a single one.
    """

    demand: SomeAmounts | None = None
    parts: list[SomeAmounts] | None = Field(default=None, max_length=MAX_PARTS)
    node_count: Whole = Field(default=1, ge=1, le=MAX_PARTS)
    subjects: list[Ref] = Field(default_factory=list, max_length=100)
    team: Ref | None = None
    pool: Ref | None = None
    profile: Ref | None = None
    preemptible: Flag | None = None
    priority: Priority = 0
    max_runtime_s: SomeSeconds | None = None
    wait_timeout_s: Seconds | None = None
    lease_s: Whole = Field(default=DEFAULT_LEASE_S, ge=1, le=86_400)
    retry_of: Ref | None = None
    name: Line = ""
    run: Ref | None = None
    step: Ref | None = None
    labels: Labels = Field(default_factory=dict, max_length=64)
    idempotency_key: Key | None = None


class RequestBulkCreate(Body):
    """Many requests at once: each succeeds or fails for itself."""

    requests: list[RequestCreate] = Field(max_length=MAX_BULK)


class DeviceView(View):
    """One GPU of a grant: its index on the node, and how much of it."""

    index: int
    share: Amount = 1


class PlacementView(View):
    """Where one part lies."""

    node: str = ""
    demand: Amounts = Field(default_factory=dict)
    devices: list[DeviceView] = Field(default_factory=list)


class AllocationView(View):
    """What a granted request holds, or held.

    pool, policy: None for work that no policy governs (S15). subject: whose policy it is.
    in_share: whether it lies inside the reservation; None when it is over or ungoverned.
    vault: of the team whose settings its step gets; None for none. ``POST /requests/{id}/environment`` tells them.
    """

    pool: str | None = None
    pool_id: str | None = None
    policy: str | None = None
    subject: str | None = None
    parts: list[PlacementView] = Field(default_factory=list)
    granted_at: datetime
    in_share: bool | None = None
    vault: str | None = None


class EvictionView(View):
    """That a request must let go, or had to: for which request, why, and until when."""

    cause: str | None = None
    because: Literal["reclaim", "priority", "capacity"] | str = "reclaim"
    deadline_at: datetime | None = None
    pool: str | None = None
    policy: str | None = None


class ReasonView(View):
    """One condition that fails, with the numbers that decided; message says it in a sentence."""

    code: str
    message: str = ""
    pool: str | None = None
    policy: str | None = None
    key: str | None = None
    asked: Amount | None = None
    possible: Amount | None = None
    free: Amount | None = None
    used: Amount | None = None
    reserved: Amount | None = None
    limit: Amount | None = None
    blocker: str | None = None
    degraded: bool = False
    opens_at: datetime | None = None


class RequestView(View):
    """A request as it is now.

    queued_at: when it was first queued (a retry keeps that of the request it repeats). ended_at: when it became final.
    demand: the sum over its parts. eviction: set while it is told to let go, and after it had to.
    reasons: why it was rejected, or which right it lost while it waited; why one waits is what ``explain`` says.
    foreign: it is of others, and only what explains one's own wait is told.
    """

    id: str
    version: int
    status: RequestStatus
    name: str = ""
    demand: Amounts
    parts: list[Amounts] = Field(default_factory=list)
    subjects: list[str] = Field(default_factory=list)
    pool: str | None = None
    profile: str | None = None
    preemptible: bool = True
    priority: int = 0
    max_runtime_s: int | None = None
    wait_timeout_s: int | None = None
    lease_s: int = DEFAULT_LEASE_S
    lease_until: datetime | None = None
    retry_of: str | None = None
    run: str | None = None
    step: str | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    idempotency_key: str | None = None
    created_at: datetime
    queued_at: datetime
    ended_at: datetime | None = None
    allocation: AllocationView | None = None
    eviction: EvictionView | None = None
    reasons: list[ReasonView] = Field(default_factory=list)
    ended_by: str | None = None
    foreign: bool = False


class BulkItem(View):
    """What became of one request of a bulk creation: the request, or the problem with it."""

    index: int
    request: RequestView | None = None
    problem: Problem | None = None


class BulkResult(View):
    """The results of a bulk creation, in the order of what was sent."""

    items: list[BulkItem]


class LeaseRenew(Body):
    """Renews the lease of one request. lease_s: its new length; None keeps the length."""

    lease_s: Whole | None = Field(default=None, ge=1, le=86_400)


class LeaseBulkRenew(Body):
    """Renews many leases at once, by request id."""

    requests: list[str] = Field(max_length=MAX_BULK)


class LeaseView(View):
    """A lease after its renewal, with what its owner must know: the status, and until when to let go if evicted."""

    request: str
    status: RequestStatus
    lease_until: datetime | None = None
    eviction: EvictionView | None = None


class LeaseBulkResult(View):
    """The leases after a bulk renewal. missing: requests that do not exist."""

    items: list[LeaseView]
    missing: list[str] = Field(default_factory=list)


class RequestRelease(Body):
    """Lets go of what a request holds. force: by an operator, though it is not theirs. reason: for the history."""

    force: Flag = False
    reason: Prose = ""


class RequestCancel(Body):
    """Withdraws a request. reason: for the history."""

    reason: Prose = ""

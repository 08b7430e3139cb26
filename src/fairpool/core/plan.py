"""What a decision says, in full: whoever carries it out has no choices left."""

from __future__ import annotations

from dataclasses import dataclass

from fairpool.core.ids import Instant, PolicyId, PoolId, RequestId
from fairpool.core.reasons import Reason
from fairpool.core.requests import Allocation, Because, PartPlacement, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """A hold or a wait that time has ended: a grace period that ran out (S31). Status: `preempted`."""

    request: RequestId
    status: Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Reject:
    """A queued request that can never run (S17) or waited longer than it was willing to (S36)."""

    request: RequestId
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    """A queued request that has lost its last right to wait by a change of the rules (S17)."""

    request: RequestId
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A queued request that starts: `allocation` names pool, policy, nodes and devices."""

    allocation: Allocation

    @property
    def request(self) -> RequestId:
        """Who is granted."""
        return self.allocation.request.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Evict:
    """An allocation that must let go for `cause`, until `deadline_at`."""

    request: RequestId
    cause: RequestId | None
    because: Because
    deadline_at: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What evictions are freeing for `request`: kept for it until it is granted or withdrawn (S31).

    Stored with the request, so that a restart keeps the very same nodes and devices.
    """

    request: RequestId
    pool: PoolId
    policy: PolicyId
    parts: tuple[PartPlacement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Capacity of `pool` that is held for the first blocked request, which has waited its max_bypass_s (S25).
    Not stored: it follows from the world and the time."""

    pool: PoolId
    request: RequestId


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that one decision changes, in the order in which it happens.

    claims: new ones, and old ones whose place moved; unclaims: requests whose claim no longer stands. A claim also ends
    when its request is granted or ends, which nothing here repeats.
    wake_at: the next moment at which time alone may change the decision; None where only an event can.
    """

    at: Instant
    finishes: tuple[Finish, ...] = ()
    rejects: tuple[Reject, ...] = ()
    cancels: tuple[Cancel, ...] = ()
    grants: tuple[Grant, ...] = ()
    evictions: tuple[Evict, ...] = ()
    claims: tuple[Claim, ...] = ()
    unclaims: tuple[RequestId, ...] = ()
    holds: tuple[Hold, ...] = ()
    wake_at: Instant | None = None

    @property
    def is_empty(self) -> bool:
        """Whether it changes nothing. Holds do not count: they are a view, not a change."""
        ends = self.finishes or self.rejects or self.cancels
        return not (ends or self.grants or self.evictions or self.claims or self.unclaims)

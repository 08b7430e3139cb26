"""Why a request is refused or waits: a closed set of codes with the numbers that decided; no sentences here."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from fairpool.core.ids import Instant, PolicyId, PoolId, RequestId


class Code(StrEnum):
    """The reason codes. Those of `NEVER` mean never (S16), those of `LAPSED` that a change of the rules took away what
    a queued request waited for (S17), WAIT_TIMEOUT ends a wait (S36), the rest mean not yet."""

    KEY_NOT_IN_POOL = "KEY_NOT_IN_POOL"
    EXCEEDS_POOL_CAPACITY = "EXCEEDS_POOL_CAPACITY"
    EXCEEDS_POLICY_LIMIT = "EXCEEDS_POLICY_LIMIT"
    EXCEEDS_RESERVATION = "EXCEEDS_RESERVATION"
    NO_NODE_FITS = "NO_NODE_FITS"
    PROFILE_NOT_OFFERED = "PROFILE_NOT_OFFERED"
    NO_POLICY = "NO_POLICY"
    POOL_FULL = "POOL_FULL"
    LIMIT_IN_USE = "LIMIT_IN_USE"
    RESERVATION_IN_USE = "RESERVATION_IN_USE"
    WAITS_FOR_WINDOW = "WAITS_FOR_WINDOW"
    FRAGMENTED = "FRAGMENTED"
    HELD_FOR_OLDER = "HELD_FOR_OLDER"
    DEDICATED_TO_OTHERS = "DEDICATED_TO_OTHERS"
    WAITING_FOR_EVICTION = "WAITING_FOR_EVICTION"
    POOL_OVER_CAPACITY = "POOL_OVER_CAPACITY"
    POOL_DRAINING = "POOL_DRAINING"
    WAIT_TIMEOUT = "WAIT_TIMEOUT"
    POLICY_GONE = "POLICY_GONE"
    POLICY_OF_OTHERS = "POLICY_OF_OTHERS"
    PROFILE_GONE = "PROFILE_GONE"
    PROFILE_WITHDRAWN = "PROFILE_WITHDRAWN"
    POOL_OUT_OF_REACH = "POOL_OUT_OF_REACH"
    POOL_GONE = "POOL_GONE"


NEVER = frozenset(
    {
        Code.KEY_NOT_IN_POOL,
        Code.EXCEEDS_POOL_CAPACITY,
        Code.EXCEEDS_POLICY_LIMIT,
        Code.EXCEEDS_RESERVATION,
        Code.NO_NODE_FITS,
        Code.PROFILE_NOT_OFFERED,
        Code.NO_POLICY,
    }
)
"""Codes that make a candidate impossible rather than busy."""

RIGHT_LOST = frozenset(
    {
        Code.POLICY_GONE,
        Code.POLICY_OF_OTHERS,
        Code.PROFILE_GONE,
        Code.PROFILE_WITHDRAWN,
        Code.POOL_OUT_OF_REACH,
    }
)
"""Codes of a right that a queued request had and lost: with its last one it is cancelled (S17)."""

LAPSED = RIGHT_LOST | {Code.POOL_GONE}
"""Codes of what a queued request waited for and is there no more. A pool that goes takes nobody's right away: what is
left without any is rejected (S10)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One condition that fails, with what decided it. Amounts are thousandths; None where a number means nothing.

    possible: the most that could be asked for here (the capacity, the limit, the reservation, the largest node).
    blocker: the request that capacity is held or kept for, where that is what stands in the way.
    degraded: the pool has nodes that are not ready, so that less is there than was promised (S6).
    opens_at: when the policy's numbers change next, where that is what is waited for.
    name: how that was called which is there no more (`LAPSED`): the policy's subject, the profile, the pool.
    """

    code: Code
    pool: PoolId | None = None
    policy: PolicyId | None = None
    key: str = ""
    asked: int | None = None
    possible: int | None = None
    free: int | None = None
    used: int | None = None
    reserved: int | None = None
    limit: int | None = None
    blocker: RequestId | None = None
    degraded: bool = False
    name: str = ""
    opens_at: Instant | None = None

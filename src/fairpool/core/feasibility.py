"""One small function per condition. Each says None where the condition holds, else the Reason with its numbers.

First what can never be (S16), then what cannot be yet. The planner stops at the first condition that fails; `explain`
asks for all of them. Both use these functions and nothing else.
"""

from __future__ import annotations

from typing import TypedDict, Unpack

from fairpool.core.accounts import PolicyBooks
from fairpool.core.amounts import GPU, UNMETERED_BY_DEFAULT, WHOLE, Amounts, get
from fairpool.core.books import PoolBooks
from fairpool.core.ids import Instant, RequestId
from fairpool.core.placement import PoolNodes
from fairpool.core.pools import PoolState
from fairpool.core.reasons import Code, Reason
from fairpool.core.requests import Demand, PartPlacement


class Facts(TypedDict, total=False):
    """The numbers of a Reason; their meaning is told there."""

    key: str
    asked: int | None
    possible: int | None
    free: int | None
    used: int | None
    reserved: int | None
    limit: int | None
    blocker: RequestId | None
    degraded: bool
    opens_at: Instant | None


# ---- never ----------------------------------------------------------------------------------------------------------


def impossible(pool: PoolBooks, policy: PolicyBooks, demand: Demand, preemptible: bool, profile: str) -> Reason | None:
    """Why this candidate can never serve the demand (S16), first condition first; None where it can."""
    return (
        _lacks_key(pool, policy, demand.total)
        or _exceeds_capacity(pool, policy, demand.total)
        or _exceeds_limit(policy, demand.total)
        or _exceeds_reservation(policy, demand.total, preemptible)
        or _no_node_fits(pool, policy, demand)
        or _not_offered(policy, profile)
    )


def _lacks_key(pool: PoolBooks, policy: PolicyBooks, amounts: Amounts) -> Reason | None:
    for key, value in amounts:
        if key not in pool.bounded and key not in UNMETERED_BY_DEFAULT:
            return _reason(Code.KEY_NOT_IN_POOL, policy, key=key, asked=value, possible=0)
    return None


def _exceeds_capacity(pool: PoolBooks, policy: PolicyBooks, amounts: Amounts) -> Reason | None:
    for key, value in amounts:
        if key in pool.nominal and value > pool.nominal[key]:
            return _reason(Code.EXCEEDS_POOL_CAPACITY, policy, key=key, asked=value, possible=pool.nominal[key])
    return None


def _exceeds_limit(policy: PolicyBooks, amounts: Amounts) -> Reason | None:
    for key, value in amounts:
        limit = policy.policy.most_allowed(key)
        if limit is not None and value > limit:
            return _reason(Code.EXCEEDS_POLICY_LIMIT, policy, key=key, asked=value, possible=limit, limit=limit)
    return None


def _exceeds_reservation(policy: PolicyBooks, amounts: Amounts, preemptible: bool) -> Reason | None:
    if preemptible:
        return None
    for key, value in amounts:
        reserved = policy.policy.most_reserved(key)
        if key in policy.bounded and value > reserved:
            return _reason(Code.EXCEEDS_RESERVATION, policy, key=key, asked=value, possible=reserved, reserved=reserved)
    return None


def _no_node_fits(pool: PoolBooks, policy: PolicyBooks, demand: Demand) -> Reason | None:
    empty = pool.empty_nodes()
    if empty.place(demand.parts) is not None:
        return None
    key, asked, largest = _tightest(empty, demand)
    return _reason(Code.NO_NODE_FITS, policy, key=key, asked=asked, possible=largest)


def _tightest(nodes: PoolNodes, demand: Demand) -> tuple[str, int, int]:
    """(key, what one part asks, the most one node has) for the key that no node satisfies, else the first key."""
    most: dict[str, int] = {}
    for node in nodes.nodes:
        for key, value in node.free_now.items():
            most[key] = max(most.get(key, 0), value)
        most[GPU] = max(most.get(GPU, 0), node.devices.total * WHOLE)
    asked = [(key, value) for part in demand.parts for key, value in part if key in nodes.keys]
    key, value = next(((key, value) for key, value in asked if value > most[key]), asked[0])
    return key, value, most[key]


def _not_offered(policy: PolicyBooks, profile: str) -> Reason | None:
    offered = policy.policy.profiles
    if not profile or offered is None or profile in offered:
        return None
    return _reason(Code.PROFILE_NOT_OFFERED, policy)


# ---- not yet: what the policy's own rights hold back ----------------------------------------------------------------


def limit_in_use(policy: PolicyBooks, amounts: Amounts) -> Reason | None:
    """The policy's stated limit has no room, counting what is kept for its own requests (S31, S37)."""
    if not policy.limit:
        return None
    for key, value in amounts:
        limit = policy.limit.get(key)
        if limit is not None:
            used = max(policy.used_now.get(key, 0), policy.used_after.get(key, 0))
            if value > limit:
                most = policy.policy.most_allowed(key)
                return _not_now(policy, key=key, asked=value, limit=limit, possible=most)
            if used + value > limit:
                return _reason(
                    Code.LIMIT_IN_USE, policy, key=key, asked=value, used=used, limit=limit, free=max(0, limit - used)
                )
    return None


def reservation_in_use(policy: PolicyBooks, amounts: Amounts, preemptible: bool) -> Reason | None:
    """A firm request is granted only when entitled (S22)."""
    if preemptible:
        return None
    for key, value in amounts:
        if key not in policy.bounded:
            continue
        used = max(policy.firm_now.get(key, 0), policy.firm_after.get(key, 0))
        reserved = policy.reserved.get(key, 0)
        if value > reserved:
            most = policy.policy.most_reserved(key)
            return _not_now(policy, key=key, asked=value, reserved=reserved, possible=most)
        if used + value > reserved:
            return _reason(
                Code.RESERVATION_IN_USE,
                policy,
                key=key,
                asked=value,
                used=used,
                reserved=reserved,
                free=max(0, reserved - used),
            )
    return None


def _not_now(policy: PolicyBooks, **facts: Unpack[Facts]) -> Reason:
    """More than the policy allows now, even if nothing else ran through it: at another time it allows more."""
    possible = policy.policy.possible
    if possible is not None:
        facts["opens_at"] = possible.opens_at
    return _reason(Code.WAITS_FOR_WINDOW, policy, **facts)


# ---- not yet: what the pool holds back ------------------------------------------------------------------------------


def pool_draining(pool: PoolBooks, policy: PolicyBooks) -> Reason | None:
    """A pool on its way out grants nothing (S10)."""
    return _reason(Code.POOL_DRAINING, policy) if pool.pool.state is PoolState.DRAINING else None


def pool_full(pool: PoolBooks, policy: PolicyBooks, amounts: Amounts) -> Reason | None:
    """Some key has less free than is asked; over capacity where less than nothing is free (S9)."""
    short = _short_of(pool.free_now, amounts)
    return None if short is None else _full(pool, policy, *short)


def _short_of(free: dict[str, int], amounts: Amounts) -> tuple[str, int] | None:
    """The first key, with what is asked of it, that has less free than that."""
    for key, value in amounts:
        if key in free and value > free[key]:
            return key, value
    return None


def _full(pool: PoolBooks, policy: PolicyBooks, key: str, value: int) -> Reason:
    left = pool.free_now[key]
    return _reason(
        Code.POOL_FULL if left >= 0 else Code.POOL_OVER_CAPACITY,
        policy,
        key=key,
        asked=value,
        free=max(0, left),
        used=pool.capacity[key] - left,
        possible=pool.capacity[key],
        degraded=pool.degraded,
    )


def dedicated_to_others(pool: PoolBooks, policy: PolicyBooks, amounts: Amounts) -> Reason | None:
    """What is free is a carve-out of other policies (S14)."""
    if not pool.dedicated:
        return None
    for key, value in amounts:
        if key not in pool.free_now:
            continue
        now, after = pool.kept_for_others(policy, key)
        free_now, free_after = pool.free_now[key] - now, pool.free_after[key] - after
        if (now or after) and (value > free_now or value > free_after):
            return _reason(
                Code.DEDICATED_TO_OTHERS, policy, key=key, asked=value, free=max(0, min(free_now, free_after))
            )
    return None


def kept_for_eviction(pool: PoolBooks, policy: PolicyBooks, amounts: Amounts) -> Reason | None:
    """What is free, or is being freed, is kept for the requests that evictions are under way for (S31)."""
    short = _short_of(pool.free_after, amounts)
    if short is None:
        return None
    key, value = short
    blocker = next(iter(pool.claims), None)
    free = max(0, pool.free_after[key])
    return _reason(Code.WAITING_FOR_EVICTION, policy, key=key, asked=value, free=free, blocker=blocker)


def place(pool: PoolBooks, policy: PolicyBooks, demand: Demand) -> tuple[PartPlacement, ...] | Reason:
    """Where the demand can lie now, or that the free units are too scattered for it (S8)."""
    places = pool.nodes.place(demand.parts)
    if places is not None:
        return places
    key, asked = _first_placed_key(pool, demand)
    return _reason(Code.FRAGMENTED, policy, key=key, asked=asked, free=max(0, pool.free_now.get(key, 0)))


def _first_placed_key(pool: PoolBooks, demand: Demand) -> tuple[str, int]:
    keys = [key for key, _ in demand.total if key in pool.nodes.keys] or [key for key, _ in demand.total]
    key = GPU if GPU in keys else keys[0]
    return key, get(demand.total, key)


def own_obstacle(policy: PolicyBooks, demand: Demand, preemptible: bool) -> Reason | None:
    """What the policy's own rights hold back: such a request blocks nobody and holds nothing (S25)."""
    limit = limit_in_use(policy, demand.total) if policy.limit else None
    return limit or (None if preemptible else reservation_in_use(policy, demand.total, preemptible))


def room(pool: PoolBooks, policy: PolicyBooks, demand: Demand) -> tuple[PartPlacement, ...] | None:
    """Where the pool has room for the demand now; None where any of the conditions above fails. Decisions ask this
    far more often than anybody asks why, so that no Reason is made."""
    amounts = demand.total
    if _short_of(pool.free_now, amounts) or _short_of(pool.free_after, amounts) or pool_draining(pool, policy):
        return None
    if pool.dedicated and dedicated_to_others(pool, policy, amounts):
        return None
    return pool.nodes.place(demand.parts)


def startable(
    pool: PoolBooks, policy: PolicyBooks, demand: Demand, preemptible: bool
) -> tuple[PartPlacement, ...] | None:
    """Where the demand could lie at this moment, whoever else stands in line; None where anything holds it back."""
    if own_obstacle(policy, demand, preemptible) is not None:
        return None
    return room(pool, policy, demand)


def amounts_fit_after(pool: PoolBooks, policy: PolicyBooks, amounts: Amounts) -> bool:
    """Whether limit and free units would do once all evictions under way have ended; nodes are another question."""
    for key, value in amounts:
        limit = policy.limit.get(key)
        if limit is not None and policy.used_after.get(key, 0) + value > limit:
            return False
        if key in pool.free_after:
            free = pool.free_after[key]
            if pool.dedicated:
                free -= pool.kept_for_others(policy, key)[1]
            if value > free:
                return False
    return True


def _reason(code: Code, policy: PolicyBooks, **facts: Unpack[Facts]) -> Reason:
    return Reason(code=code, pool=policy.pool, policy=policy.policy.id, **facts)

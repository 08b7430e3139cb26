"""What a change of the rules took away from a queued request that it leaves without a candidate (S17)."""

from __future__ import annotations

from dataclasses import dataclass

from fairpool.core.books import PoolBooks
from fairpool.core.feasibility import impossible
from fairpool.core.ids import PolicyId, PoolId
from fairpool.core.policies import Policy
from fairpool.core.reasons import LAPSED, Code, Reason
from fairpool.core.requests import Request
from fairpool.core.routes import Routes
from fairpool.core.waiting import Candidate


@dataclass(frozen=True, slots=True)
class Before:
    """How things were called before the change."""

    policies: dict[PolicyId, Policy]
    pools: dict[PoolId, str]

    @classmethod
    def of(cls, routes: Routes, books: dict[PoolId, PoolBooks]) -> Before:
        """As they are called now."""
        return cls(dict(routes.policies), {pool: each.pool.name for pool, each in books.items()})


def lapses(
    before: Before, routes: Routes, books: dict[PoolId, PoolBooks], request: Request, lost: tuple[Candidate, ...]
) -> tuple[Reason, ...]:
    """One reason per candidate that is lost; () where only numbers stand in the way now, which the route tells."""
    reasons = [reason for each in lost if (reason := _lapse(before, routes, books, request, each)) is not None]
    return tuple(reasons) if any(reason.code in LAPSED for reason in reasons) else ()


def _lapse(
    before: Before, routes: Routes, books: dict[PoolId, PoolBooks], request: Request, lost: Candidate
) -> Reason | None:
    pool, policy = books.get(lost.pool), routes.policies.get(lost.policy)
    subject = str(before.policies[lost.policy].subject)
    if pool is None:
        return Reason(code=Code.POOL_GONE, pool=lost.pool, policy=lost.policy, name=before.pools[lost.pool])
    if policy is None or lost.pool not in policy.pools:
        return _reason(Code.POLICY_GONE, lost, subject)
    if policy.subject not in request.subjects:
        return _reason(Code.POLICY_OF_OTHERS, lost, subject)
    if request.profile:
        profile, offered = routes.profiles.get(request.profile), policy.profiles
        if profile is None:
            return _reason(Code.PROFILE_GONE, lost, request.profile)
        if pool.pool.name not in profile.pools or (offered is not None and request.profile not in offered):
            return _reason(Code.PROFILE_WITHDRAWN, lost, request.profile)
    if request.pool not in ("", pool.pool.name):
        return Reason(code=Code.POOL_GONE, name=request.pool)
    if not pool.admits(request.subjects):
        return _reason(Code.POOL_OUT_OF_REACH, lost, pool.pool.name)
    return impossible(pool, pool.policies[policy.id], request.demand, request.preemptible, request.profile)


def _reason(code: Code, lost: Candidate, name: str) -> Reason:
    return Reason(code=code, pool=lost.pool, policy=lost.policy, name=name)

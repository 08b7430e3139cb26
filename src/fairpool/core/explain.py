"""Why a request waits and what it would take (S37). Built from the functions that decide.

Everything here is asked of the real world inside `what_if`; nothing is re-derived. Reasons carry numbers; sentences are
made by whoever shows them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from heapq import nsmallest

from fairpool.core import events as ev
from fairpool.core.accounts import PolicyBooks
from fairpool.core.books import PoolBooks
from fairpool.core.errors import UnknownObject
from fairpool.core.feasibility import (
    dedicated_to_others,
    kept_for_eviction,
    limit_in_use,
    place,
    pool_draining,
    pool_full,
    reservation_in_use,
)
from fairpool.core.ids import Instant, PolicyId, PoolId, RequestId
from fairpool.core.ordering import Standing, in_order, standing
from fairpool.core.outlook import Estimate, Ground, Unknown
from fairpool.core.plan import Hold, Plan
from fairpool.core.planner import decide
from fairpool.core.reasons import Code, Reason
from fairpool.core.requests import Allocation, Because, Request, Status
from fairpool.core.shares import is_entitled
from fairpool.core.usual import Basis
from fairpool.core.waiting import Candidate, Origin, place_of
from fairpool.core.world import World

MAX_HOLDERS = 20  # as many as a person reads; the largest holders come first


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Somebody who holds some of what is missing."""

    request: RequestId
    policy: PolicyId | None
    amounts: tuple[tuple[str, int], ...]
    borrowed: bool
    preemptible: bool
    since: Instant
    ends_at: Instant | None  # by its declared run time, or by its grace period


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateView:
    """A waiting request as one of its candidates sees it.

    position: 1 for whom the pool considers first.
    reasons: every condition that fails here. missing: how much more would have to be free, per key.
    """

    pool: PoolId
    policy: PolicyId
    position: int
    entitled: bool
    reasons: tuple[Reason, ...]
    missing: tuple[tuple[str, int], ...]
    holders: tuple[Holder, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictionView:
    """An eviction: one under way for the request, or one that makes the request itself let go."""

    victims: tuple[RequestId, ...]
    because: Because
    deadline_at: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What can be said about one request at one moment.

    status: of a request that is only checked, the one that it would have at once.
    allocation: what it holds, or would hold at once.
    reasons: of a rejected request why never; of one that loses its right what went; of a waiting one the distinct
        reasons over its candidates. refused: per candidate that is none, why.
    estimate: of a waiting one, when it starts, where somebody has looked ahead (`foretold`).
    starts_if_preemptible: a firm request waits, and would start now if it could be interrupted.
    """

    request: Request
    status: Status
    allocation: Allocation | None = None
    candidates: tuple[CandidateView, ...] = ()
    refused: tuple[Reason, ...] = ()
    reasons: tuple[Reason, ...] = ()
    eviction: EvictionView | None = None
    estimate: Estimate | Unknown | None = None
    starts_if_preemptible: bool = False


def explain(world: World, request_id: RequestId, now: Instant) -> Explanation:
    """Everything about a live request but when it starts. Raises UnknownObject for one that is not live."""
    status = world.status_of(request_id)
    if status is None:
        raise UnknownObject("request", request_id)
    request = world.request(request_id)
    if status is not Status.QUEUED:
        held = world.allocations[request_id]
        return Explanation(request=request, status=status, allocation=held, eviction=_own_eviction(held))
    with world.what_if():
        world.touched.update(candidate.pool for candidate in _candidates(world, request))
        outcome = decide(world, now)
        if world.status_of(request_id) is not Status.QUEUED:
            return _outcome(world, request, outcome)
        return _waiting(world, request, outcome, now)


def check(world: World, request: Request, now: Instant) -> Explanation:
    """The same for a request that nobody has submitted: would it run, and why not."""
    with world.what_if():
        decide(world, now)
        world.apply(ev.Submitted(request=request), now)
        outcome = decide(world, now)
        if world.status_of(request.id) is not Status.QUEUED:
            return _outcome(world, request, outcome)
        return _waiting(world, request, outcome, now)


def positions(world: World, request_id: RequestId) -> dict[PoolId, int]:
    """A queued request's place in the order of each pool where it waits (S23), 1 for the first.

    Raises UnknownObject for one that is not queued.
    """
    request = world.queue.request(request_id)
    found = ((world.books[candidate.pool], candidate) for candidate in _candidates(world, request))
    return {
        candidate.pool: _position(world, pool, pool.policies[candidate.policy], request) for pool, candidate in found
    }


def _outcome(world: World, request: Request, outcome: Plan) -> Explanation:
    """What becomes of a request at once: granted, rejected, or cancelled."""
    held = world.allocations.get(request.id)
    if held is not None:
        return Explanation(request=request, status=Status.ALLOCATED, allocation=held)
    for cancel in outcome.cancels:
        if cancel.request == request.id:
            return Explanation(request=request, status=Status.CANCELLED, reasons=cancel.reasons)
    reasons = tuple(reason for reject in outcome.rejects if reject.request == request.id for reason in reject.reasons)
    return Explanation(request=request, status=Status.REJECTED, reasons=reasons)


def foretold(explanation: Explanation, found: Estimate | Unknown) -> Explanation:
    """The explanation of one that waits, with what a look ahead has found. Rules do not change in one: of what waits
    for a window it knows only when the next one opens."""
    opening = [reason.opens_at for reason in explanation.reasons if reason.opens_at is not None]
    if isinstance(found, Unknown) and opening:
        opens_at = min(opening)
        found = Estimate(low=opens_at, about=opens_at, high=None, grounds=(Ground(basis=Basis.WINDOW),))
    return replace(explanation, estimate=found)


def _waiting(world: World, request: Request, outcome: Plan, now: Instant) -> Explanation:
    holds = {hold.pool: hold for hold in outcome.holds}
    views = tuple(
        _candidate_view(world, request, candidate, holds.get(candidate.pool), now)
        for candidate in _candidates(world, request)
    )
    reasons = tuple(reason for view in views for reason in view.reasons)
    return Explanation(
        request=request,
        status=Status.QUEUED,
        candidates=views,
        refused=world.routes.find(Origin.of(request), request.demand, request.preemptible).refusals,
        reasons=reasons,
        eviction=_eviction_for(world, request),
        starts_if_preemptible=not request.preemptible and _starts(world, replace(request, preemptible=True), now),
    )


def _candidates(world: World, request: Request) -> tuple[Candidate, ...]:
    home = world.queue.home(request.id)
    return home.key.candidates if home is not None else ()


def _own_eviction(held: Allocation) -> EvictionView | None:
    if held.eviction is None:
        return None
    return EvictionView(
        victims=(held.request.id,), because=held.eviction.because, deadline_at=held.eviction.deadline_at
    )


def _eviction_for(world: World, request: Request) -> EvictionView | None:
    claim = world.claim_of(request.id)
    if claim is None:
        return None
    leaving = [
        held
        for held in world.books[claim.pool].allocations.values()
        if held.eviction is not None and held.eviction.cause == request.id
    ]
    if not leaving:
        return None
    evictions = [held.eviction for held in leaving if held.eviction is not None]
    return EvictionView(
        victims=tuple(sorted(held.request.id for held in leaving)),
        because=min(eviction.because for eviction in evictions),
        deadline_at=max(eviction.deadline_at for eviction in evictions),
    )


def _starts(world: World, request: Request, now: Instant) -> bool:
    with world.what_if():
        world.dequeue(request.id)
        world.enqueue(request)
        decide(world, now)
        return request.id in world.allocations


def _candidate_view(
    world: World, request: Request, candidate: Candidate, hold: Hold | None, now: Instant
) -> CandidateView:
    pool = world.books[candidate.pool]
    policy = pool.policies[candidate.policy]
    claim = world.claim_of(request.id)
    reasons = _failing(pool, policy, request)
    if claim is not None and claim.pool == candidate.pool:
        reasons = [reason for reason in reasons if reason.code is not Code.WAITING_FOR_EVICTION]
        reasons.append(_plain_reason(Code.WAITING_FOR_EVICTION, candidate, request.id))
    elif not reasons:
        code = Code.HELD_FOR_OLDER if hold is not None else Code.WAITING_FOR_EVICTION
        blocker = hold.request if hold is not None else next(iter(pool.claims), None)
        reasons = [_plain_reason(code, candidate, blocker)]
    missing = _missing(pool, policy, request)
    return CandidateView(
        pool=candidate.pool,
        policy=candidate.policy,
        position=_position(world, pool, policy, request),
        entitled=is_entitled(policy, request.demand.total, request.preemptible),
        reasons=tuple(reasons),
        missing=missing,
        holders=_holders(world, pool, policy, reasons),
    )


def _plain_reason(code: Code, candidate: Candidate, blocker: RequestId | None) -> Reason:
    return Reason(code=code, pool=candidate.pool, policy=candidate.policy, blocker=blocker)


def _failing(pool: PoolBooks, policy: PolicyBooks, request: Request) -> list[Reason]:
    """Every condition that fails. Scattered or dedicated units are a reason only where there are units enough."""
    amounts = request.demand.total
    own = [limit_in_use(policy, amounts), reservation_in_use(policy, amounts, request.preemptible)]
    draining = pool_draining(pool, policy)
    full = pool_full(pool, policy, amounts)
    short = full or dedicated_to_others(pool, policy, amounts) or kept_for_eviction(pool, policy, amounts)
    scattered = None
    if short is None:
        found = place(pool, policy, request.demand)
        scattered = found if isinstance(found, Reason) else None
    return [reason for reason in (*own, draining, short, scattered) if reason is not None]


def _missing(pool: PoolBooks, policy: PolicyBooks, request: Request) -> tuple[tuple[str, int], ...]:
    lacks = []
    for key, value in request.demand.total:
        if key in pool.free_now:
            kept = pool.kept_for_others(policy, key)[0] if pool.dedicated else 0
            free = min(pool.free_now[key] - kept, pool.free_after[key])
            if value > free:
                lacks.append((key, value - max(0, free)))
    return tuple(lacks)


def _holders(world: World, pool: PoolBooks, policy: PolicyBooks, reasons: list[Reason]) -> tuple[Holder, ...]:
    """Who holds of the keys that the reasons name: of the own policy, in all of its pools, where only its own rights
    stand in the way."""
    reasons = [reason for reason in reasons if reason.code is not Code.WAITS_FOR_WINDOW]  # nobody's end changes that
    keys = {reason.key for reason in reasons if reason.key}
    own_only = all(reason.code in (Code.LIMIT_IN_USE, Code.RESERVATION_IN_USE) for reason in reasons)
    pools = [world.books[each] for each in policy.account.pools] if own_only else [pool]
    borrowing = {held.request.id for each in pools for books in each.policies.values() for held in books.borrowers()}
    found = []
    for each in pools:
        for held in each.allocations.values():
            amounts = tuple(pair for pair in held.request.demand.total if pair[0] in keys)
            if amounts and (not own_only or held.policy == policy.policy.id):
                most = max(value for _, value in amounts)
                found.append((-most, held.granted_at, held.request.id, each, amounts))
    first = nsmallest(MAX_HOLDERS, found, key=lambda entry: entry[:3])
    return tuple(
        _holder(each, each.allocations[request], amounts, request in borrowing)
        for _, _, request, each, amounts in first
    )


def _holder(pool: PoolBooks, held: Allocation, amounts: tuple[tuple[str, int], ...], borrowed: bool) -> Holder:
    leaves_at = held.eviction.deadline_at if held.eviction is not None else pool.ends.get(held.request.id)
    return Holder(
        request=held.request.id,
        policy=held.policy,
        amounts=amounts,
        borrowed=borrowed or held.eviction is not None,
        preemptible=held.request.preemptible,
        since=held.granted_at,
        ends_at=leaves_at,
    )


def _position(world: World, pool: PoolBooks, policy: PolicyBooks, request: Request) -> int:
    """Its place in the pool's order (S23), 1 for the first."""
    queue = world.queue
    claimants = [r for r in queue.claimants.values() if any(c.pool == pool.pool.id for c in _candidates(world, r))]
    if request.id in queue.claimants:
        return 1 + in_order(_asking(world, pool, claimant) for claimant in claimants).index(request)
    placed = standing(pool, policy, request.demand.total, request.preemptible)
    before = len(claimants)
    beside: dict[PolicyId, list[Request]] = {}
    for other in pool.policies.values():
        for home in queue.classes_of(other.policy.id, pool.pool.id):
            theirs = standing(pool, other, home.demand.total, home.preemptible)
            if theirs < placed:
                before += len(home.members)
            elif theirs == placed:
                beside.setdefault(other.policy.id, []).extend(home.members.values())
    return 1 + before + _merged_before(beside, policy.policy.id, request)


def _asking(world: World, pool: PoolBooks, request: Request) -> tuple[PolicyBooks, Standing, Request]:
    policy = next(pool.policies[c.policy] for c in _candidates(world, request) if c.pool == pool.pool.id)
    return policy, standing(pool, policy, request.demand.total, request.preemptible), request


def _merged_before(beside: dict[PolicyId, list[Request]], own: PolicyId, request: Request) -> int:
    """How many of the same standing are considered before: inside each policy by criteria 6 to 8, between policies by
    their heads' 7 and 8. So another policy's request comes first when nothing before it in its own line is later than
    the latest of our line up to and including the request."""
    place = place_of(request)
    mine = [other for other in beside.pop(own) if place_of(other) <= place]
    gate = max((other.queued_at, other.id) for other in mine)
    before = len(mine) - 1
    for others in beside.values():
        behind = min((place_of(other) for other in others if (other.queued_at, other.id) > gate), default=None)
        before += len(others) if behind is None else sum(place_of(other) < behind for other in others)
    return before

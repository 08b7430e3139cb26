"""Changes of the rules: pools, policies, profiles, settings; and the second look at what was queued under the old ones.

Rare, so these may cost what they touch: a pool's allocations, the queued requests whose candidates change (S17).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from fairpool.core import events as ev
from fairpool.core.books import PoolBooks
from fairpool.core.errors import UnknownObject
from fairpool.core.ids import PolicyId, PoolId, RequestId
from fairpool.core.plan import Claim
from fairpool.core.policies import Policy, check_rules
from fairpool.core.pools import Pool
from fairpool.core.queue import Queue
from fairpool.core.requests import Allocation, Request
from fairpool.core.routes import Routes
from fairpool.core.waiting import Candidate, Origin

RuleEvent = (
    ev.PoolSet
    | ev.PoolDropped
    | ev.BorrowersEvicted
    | ev.PolicySet
    | ev.PolicyDropped
    | ev.ProfileSet
    | ev.ProfileDropped
    | ev.SettingsChanged
)


class Ruled(Protocol):
    """What a change of the rules touches of a world; `World` is the one."""

    books: dict[PoolId, PoolBooks]
    routes: Routes
    queue: Queue
    touched: set[PoolId]
    loose: dict[RequestId, Claim]

    def hold(self, allocation: Allocation) -> None:
        """See `World`."""

    def let_go(self, request: RequestId) -> Allocation:
        """See `World`."""

    def claim_of(self, request: RequestId) -> Claim | None:
        """See `World`."""

    def drop_claim(self, request_id: RequestId) -> None:
        """See `World`."""

    def loosen_claims(self, pool: PoolId) -> None:
        """See `World`."""


def change_rules(world: Ruled, event: RuleEvent) -> None:
    """Let a change of the rules happen, or raise InvalidRules or UnknownObject and change nothing."""
    match event:
        case ev.PoolSet():
            _set_pool(world, event.pool)
        case ev.PoolDropped():
            _drop_pool(world, event.pool)
        case ev.BorrowersEvicted():
            _pool(world, event.pool).evict_borrowers = True
            world.touched.add(event.pool)
        case ev.PolicySet():
            _set_policy(world, event.policy)
        case ev.PolicyDropped():
            _drop_policy(world, event.policy)
        case ev.ProfileSet():
            world.routes.profiles[event.profile.name] = event.profile
        case ev.ProfileDropped():
            if world.routes.profiles.pop(event.name, None) is None:
                raise UnknownObject("profile", event.name)
        case ev.SettingsChanged():
            world.routes.require_policy = event.require_policy
    if not isinstance(event, ev.BorrowersEvicted):
        _look_again(world)
        for books in world.books.values():
            books.excuse()


def _pool(world: Ruled, pool: PoolId) -> PoolBooks:
    if pool not in world.books:
        raise UnknownObject("pool", pool)
    return world.books[pool]


def _policies_of(world: Ruled, pool: PoolId) -> list[Policy]:
    return [policy for policy in world.routes.policies.values() if policy.pool == pool]


def _set_pool(world: Ruled, pool: Pool) -> None:
    policies = _policies_of(world, pool.id)
    check_rules(pool, policies)
    old = world.books.get(pool.id)
    if old is not None:
        world.loosen_claims(pool.id)
    books = world.books[pool.id] = PoolBooks(pool)
    for policy in policies:
        books.set_policy(policy)
    for retired in [policy for policy in old.policies.values() if policy.retired] if old else []:
        books.set_policy(retired.policy, retired=True)
    for allocation in sorted(old.allocations.values(), key=lambda held: held.sequence) if old else []:
        books.enter(allocation)
    world.touched.add(pool.id)


def _drop_pool(world: Ruled, pool: PoolId) -> None:
    books = _pool(world, pool)
    world.loosen_claims(pool)
    for request in [request for request, claim in world.loose.items() if claim.pool == pool]:
        world.drop_claim(request)
    # S10: what runs goes on to its end, unaccounted
    for allocation in list(books.allocations.values()):
        world.hold(replace(world.let_go(allocation.request.id), pool=None, policy=None))
    for policy in _policies_of(world, pool):
        world.routes.drop_policy(policy.id)
    world.routes.forget()
    del world.books[pool]
    world.touched.discard(pool)


def _set_policy(world: Ruled, policy: Policy) -> None:
    books = _pool(world, policy.pool)
    others = [other for other in _policies_of(world, policy.pool) if other.id != policy.id]
    check_rules(books.pool, [*others, policy])
    old = world.routes.policies.get(policy.id)
    if old is not None and old.pool != policy.pool:
        _drop_policy(world, policy.id)
    world.loosen_claims(policy.pool)
    books.set_policy(policy)
    world.routes.set_policy(policy)
    world.touched.add(policy.pool)


def _drop_policy(world: Ruled, policy: PolicyId) -> None:
    pool = world.routes.policy(policy).pool
    world.loosen_claims(pool)
    world.books[pool].drop_policy(policy)
    world.routes.drop_policy(policy)
    world.touched.add(pool)


def _look_again(world: Ruled) -> None:
    """S17: a later change of pools or policies checks queued requests the same way as submitting them did."""
    world.routes.forget()
    for request in list(world.queue.claimants.values()):
        _rehome_claimant(world, request)
    for request in world.queue.stale():
        world.queue.remove(request.id)
        home = world.queue.add(request)
        if home is not None:
            world.touched.update(candidate.pool for candidate in home.key.candidates)


def _rehome_claimant(world: Ruled, request: Request) -> None:
    """A request keeps its claim through a change of the rules as long as it still may go where the claim is."""
    origin = Origin(request.subjects, request.profile, request.pool)
    candidates = world.routes.find(origin, request.demand, request.preemptible).candidates
    home, claim = world.queue.home(request.id), world.claim_of(request.id)
    assert home is not None
    assert claim is not None
    if candidates == home.key.candidates:
        return
    world.drop_claim(request.id)
    world.queue.remove(request.id)
    world.queue.add(request)
    world.touched.update(candidate.pool for candidate in candidates)
    if Candidate(claim.policy, claim.pool) in candidates:
        world.queue.set_claimant(request.id)
        world.loose[request.id] = claim

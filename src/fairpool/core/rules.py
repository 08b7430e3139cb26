"""Changes of the rules: pools, policies, profiles, settings; and the second look at what was queued under the old ones.

Rare, so these may cost what they touch: a pool's allocations, the queued requests whose candidates change (S17).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from typing import Protocol

from fairpool.core import events as ev
from fairpool.core.books import PoolBooks, open_account
from fairpool.core.ids import PolicyId, PoolId, RequestId
from fairpool.core.lapses import Before, lapses
from fairpool.core.plan import Claim
from fairpool.core.policies import Policy
from fairpool.core.pools import Pool
from fairpool.core.promises import degraded
from fairpool.core.queue import Queue
from fairpool.core.requests import Allocation, Request
from fairpool.core.routes import Routes
from fairpool.core.rule_checks import check_changes
from fairpool.core.waiting import Candidate, Origin


class Ruled(Protocol):
    """What a change of the rules touches of a world; `World` is the one."""

    books: dict[PoolId, PoolBooks]
    routes: Routes
    queue: Queue
    touched: set[PoolId]
    loose: dict[RequestId, Claim]

    @property
    def allocations(self) -> Mapping[RequestId, Allocation]:
        """See `World`."""

    def request(self, request: RequestId) -> Request:
        """See `World`."""

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


def change_rules(world: Ruled, event: ev.RuleEvent | ev.Together) -> None:
    """Let a change of the rules happen, or raise InvalidRules, InvalidInput or UnknownObject and change nothing."""
    events = event.events if isinstance(event, ev.Together) else (event,)
    check_changes(world, events)
    before = Before.of(world.routes, world.books)
    redirected: dict[RequestId, Request] = {}
    for each in events:
        if isinstance(each, ev.Redirected):
            redirected[each.request.id] = each.request
        else:
            _change(world, each)
    if any(not isinstance(each, ev.BorrowersEvicted | ev.Redirected) for each in events):
        world.routes.forget()
        _look_again(world, before, without=redirected)
        settle_rules(world.books, world.routes.policies)
    for request in redirected.values():
        _redirect(world, before, request)


def settle_rules(books: dict[PoolId, PoolBooks], policies: Mapping[PolicyId, Policy]) -> None:
    """What follows from the rules for the pools: which are degraded (S6), and what exceeds a bound that fell."""
    ailing = degraded({pool: each.pool for pool, each in books.items()}, policies.values())
    for pool, each in books.items():
        each.degraded = pool in ailing
        each.excuse()


def _change(world: Ruled, event: ev.RuleEvent) -> None:
    match event:
        case ev.PoolSet():
            _set_pool(world, event.pool)
        case ev.PoolDropped():
            _drop_pool(world, event.pool)
        case ev.BorrowersEvicted():
            world.books[event.pool].evict_borrowers = True
            world.touched.add(event.pool)
        case ev.PolicySet():
            _set_policy(world, event.policy)
        case ev.PolicyDropped():
            _drop_policy(world, event.policy)
        case ev.ProfileSet():
            world.routes.profiles[event.profile.name] = event.profile
        case ev.ProfileDropped():
            del world.routes.profiles[event.name]
        case ev.SettingsChanged():
            world.routes.require_policy = event.require_policy
        case ev.Redirected():
            raise AssertionError("redirected requests are looked at when the rules have changed")


def _policies_of(world: Ruled, pool: PoolId) -> list[Policy]:
    return [policy for policy in world.routes.policies.values() if pool in policy.pools]


def _open_anew(world: Ruled, pools: Iterable[PoolId]) -> None:
    """Have what is kept in these pools placed anew, and look at them: accounts there change."""
    for pool in pools:
        world.loosen_claims(pool)
        world.touched.add(pool)


def _set_pool(world: Ruled, pool: Pool) -> None:
    policies = _policies_of(world, pool.id)
    old = world.books.get(pool.id)
    if old is not None:
        _open_anew(world, dict.fromkeys([pool.id, *(each for policy in policies for each in policy.pools)]))
    books = world.books[pool.id] = PoolBooks(pool)
    for policy in policies:
        open_account(world.books, policy)
    for retired in [policy for policy in old.policies.values() if policy.retired] if old else []:
        books.retire(retired.policy.id, retired.policy)
    for allocation in sorted(old.allocations.values(), key=lambda held: held.sequence) if old else []:
        books.enter(allocation)
    world.queue.expect_in(pool.id)
    world.touched.add(pool.id)


def _drop_pool(world: Ruled, pool: PoolId) -> None:
    books = world.books[pool]
    policies = _policies_of(world, pool)
    _open_anew(world, dict.fromkeys([pool, *(each for policy in policies for each in policy.pools)]))
    for request in [request for request, claim in world.loose.items() if claim.pool == pool]:
        world.drop_claim(request)
    # S10: what runs goes on to its end, unaccounted
    for allocation in list(books.allocations.values()):
        world.hold(replace(world.let_go(allocation.request.id), pool=None, policy=None))
    del world.books[pool]
    for policy in policies:
        narrower = policy.without(pool)
        if narrower is None:
            world.routes.drop_policy(policy.id)
        else:
            open_account(world.books, narrower)
            world.routes.set_policy(narrower)
    world.routes.forget()
    world.touched.discard(pool)


def _set_policy(world: Ruled, policy: Policy) -> None:
    old = world.routes.policies.get(policy.id)
    before = old.pools if old is not None else ()
    _open_anew(world, dict.fromkeys([*before, *policy.pools]))
    for pool in before:
        if pool not in policy.pools:
            world.books[pool].drop_policy(policy.id)
    open_account(world.books, policy)
    world.routes.set_policy(policy)


def _drop_policy(world: Ruled, policy: PolicyId) -> None:
    pools = world.routes.policies[policy].pools
    _open_anew(world, pools)
    for pool in pools:
        world.books[pool].drop_policy(policy)
    world.routes.drop_policy(policy)


def _look_again(world: Ruled, before: Before, *, without: Container[RequestId]) -> None:
    """S17: a later change of pools or policies checks queued requests the same way as submitting them did."""
    for request in list(world.queue.claimants.values()):
        if request.id not in without:
            _rehome_claimant(world, before, request)
    for request in world.queue.stale():
        if request.id not in without:
            _rehome(world, before, request)


def _redirect(world: Ruled, before: Before, request: Request) -> None:
    held = world.allocations.get(request.id)
    if held is not None:
        world.let_go(request.id)
        world.hold(replace(held, request=request))
    elif request.id in world.queue.claimants:
        _rehome_claimant(world, before, request)
    else:
        _rehome(world, before, request)


def _rehome(world: Ruled, before: Before, request: Request) -> None:
    """Queue a request where the rules say now. Whoever it may have kept waiting in its old pools is looked at too."""
    queue, old = world.queue, world.queue.home(request.id)
    queue.remove(request.id)
    if world.routes.find(Origin.of(request), request.demand, request.preemptible).candidates:
        queue.lapsed.pop(request.id, None)
    elif old is not None:
        lost = lapses(before, world.routes, world.books, request, old.key.candidates)
        if lost:
            queue.lapsed[request.id] = lost
    for home in (old, queue.add(request)):
        if home is not None:
            world.touched.update(candidate.pool for candidate in home.key.candidates)


def _rehome_claimant(world: Ruled, before: Before, request: Request) -> None:
    """A request keeps its claim through a change of the rules as long as it still may go where the claim is."""
    candidates = world.routes.find(Origin.of(request), request.demand, request.preemptible).candidates
    home, claim = world.queue.home(request.id), world.claim_of(request.id)
    assert home is not None
    assert claim is not None
    if candidates == home.key.candidates and request == world.queue.request(request.id):
        return
    world.drop_claim(request.id)
    _rehome(world, before, request)
    if Candidate(claim.policy, claim.pool) in candidates:
        world.queue.set_claimant(request.id)
        world.loose[request.id] = claim

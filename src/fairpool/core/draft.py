"""A plan being made: each change moves the world and is written down."""

from __future__ import annotations

from fairpool.core.accounts import PolicyBooks
from fairpool.core.books import PoolBooks
from fairpool.core.eviction import Victims
from fairpool.core.feasibility import startable
from fairpool.core.ids import SECOND, Instant, PoolId, RequestId
from fairpool.core.plan import Cancel, Claim, Evict, Finish, Grant, Hold, Plan, Reject
from fairpool.core.requests import Allocation, Because, Eviction, PartPlacement, Request
from fairpool.core.waiting import Candidate
from fairpool.core.world import World

Places = tuple[PartPlacement, ...]


class Draft:
    """What one decision has changed so far, and which pools it still has to serve because of that."""

    def __init__(self, world: World, now: Instant) -> None:
        self.world = world
        self.now = now
        self.pending: set[PoolId] = set()  # pools still to be served
        self.served: set[PoolId] = set()
        self.deferred: set[PoolId] = set()  # pools to be served once more when all others have been
        self.put_off: set[PoolId] = set()  # pools that have already been deferred for one that was deferred
        self.stood_first: dict[PoolId, RequestId] = {}  # who kept capacity from others in a pool by waiting there
        self.finishes: list[Finish] = []
        self.rejects: list[Reject] = []
        self.cancels: list[Cancel] = []
        self.grants: list[Grant] = []
        self.evictions: list[Evict] = []
        self.claims: dict[RequestId, Claim] = {}
        self.unclaims: dict[RequestId, None] = {}
        self.holds: dict[PoolId, Hold] = {}

    def plan(self) -> Plan:
        """All that was written down."""
        return Plan(
            at=self.now,
            finishes=tuple(self.finishes),
            rejects=tuple(self.rejects),
            cancels=tuple(self.cancels),
            grants=tuple(self.grants),
            evictions=tuple(self.evictions),
            claims=tuple(self.claims.values()),
            unclaims=tuple(self.unclaims),
            holds=tuple([self.holds[pool] for pool in sorted(self.holds)]) if self.holds else (),
            wake_at=self.world.moments.next(),
        )

    def candidates(self, request: Request) -> tuple[Candidate, ...]:
        """Where a queued request can be served, the most preferred first."""
        home = self.world.queue.home(request.id)
        return home.key.candidates if home is not None else ()

    def startable(self, request: Request, candidate: Candidate) -> Places | None:
        """Where the request could lie in that candidate at this moment, whoever else stands in line."""
        pool = self.world.books[candidate.pool]
        return startable(pool, pool.policies[candidate.policy], request.demand, request.preemptible)

    def may_start(self, request: Request, candidate: Candidate) -> bool:
        """Whether that candidate's pool has yet to be served, and the request might start there."""
        pool = self.world.books[candidate.pool]
        if candidate.pool not in self.pending or (pool.claims and not pool.pool.backfill):
            return False  # strict order: nobody passes those whom evictions are under way for
        return self.startable(request, candidate) is not None

    def is_room_being_made(self, policy: PolicyBooks) -> bool:
        """Whether anything is being let go of in the policy's pools: what leaves one of them counts in all of them."""
        return any(self.world.books[pool].leaving for pool in policy.policy.pools)

    def grant(self, request: Request, candidate: Candidate, places: Places) -> None:
        """Start a request that has candidates."""
        candidates = self.candidates(request)
        claim = self.world.claim_of(request.id)
        if claim is not None:
            self.claims.pop(request.id, None)
        self.world.dequeue(request.id)
        self.hold_for(request, candidate, places)
        self._shares_changed(candidate)
        if claim is not None:
            self._shares_changed(Candidate(claim.policy, claim.pool))
        for other in candidates:
            if other.pool != candidate.pool:
                self._left(other.pool, request, claimed=claim is not None and claim.pool == other.pool)

    def hold_for(self, request: Request, candidate: Candidate | None, places: Places) -> None:
        """Give a request that is queued no longer what it asked for."""
        self.grants.append(Grant(allocation=self.world.grant(request, candidate, places, self.now)))

    def evict_for(self, request: Request, pool: PoolBooks, policy: PolicyBooks, victims: Victims) -> None:
        """Evict for a request, and keep for it what that frees (S31)."""
        for victim, because in victims.chosen:
            self.evict(victim, request.id, because)
        for other in self.candidates(request):
            if other.pool != pool.pool.id:
                self._left(other.pool, request, claimed=False)
        claim = Claim(request=request.id, pool=pool.pool.id, policy=policy.policy.id, parts=victims.parts)
        self.world.post_claim(claim)
        self.unclaims.pop(request.id, None)
        self.claims[request.id] = claim
        self._shares_changed(Candidate(claim.policy, claim.pool))

    def evict(self, victim: Allocation, cause: RequestId | None, because: Because) -> None:
        """Have an allocation let go within its policy's grace period."""
        assert victim.pool is not None
        assert victim.policy is not None
        policy = self.world.books[victim.pool].policies[victim.policy].policy
        deadline_at = Instant(self.now + policy.grace_s * SECOND)
        self.world.evict(victim.request.id, Eviction(cause=cause, because=because, deadline_at=deadline_at))
        self._shares_changed(Candidate(victim.policy, victim.pool))
        self.evictions.append(Evict(request=victim.request.id, cause=cause, because=because, deadline_at=deadline_at))

    def unclaim(self, request: Request) -> None:
        """Keep nothing for the request any more: it waits like others again."""
        claim = self.world.claim_of(request.id)
        self.world.drop_claim(request.id)
        if claim is not None:
            self._shares_changed(Candidate(claim.policy, claim.pool))
        self.unclaims[request.id] = None
        self.claims.pop(request.id, None)
        self.pending.update(candidate.pool for candidate in self.candidates(request))

    def _shares_changed(self, candidate: Candidate) -> None:
        """What a policy uses here decides what it may have in its other pools, and which of its work there borrows."""
        policy = self.world.books[candidate.pool].policies[candidate.policy].policy
        if policy.also:
            self.pending.update(pool for pool in policy.pools if pool != candidate.pool)

    def _left(self, pool: PoolId, request: Request, *, claimed: bool) -> None:
        """The request has left that pool's line: serve the pool (again) where it may have kept others back."""
        books = self.world.books[pool]
        waited = self.now - request.queued_at >= books.pool.max_bypass_s * SECOND
        might = pool not in self.served and (waited or not books.pool.backfill)
        awaited = books.leaving > 0  # it may have been waiting for room that others' evictions make
        if claimed or might or awaited or self.stood_first.get(pool) == request.id:
            self.pending.add(pool)

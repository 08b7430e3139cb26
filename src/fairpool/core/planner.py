"""The decision: what a world and a moment call for. The phases are numbered in `_Decision.run`; that is all there is.

`decide` moves the world by what it decides; `plan` leaves the world as it was. Both give the same plan.
"""

from __future__ import annotations

from fairpool.core.books import PoolBooks
from fairpool.core.eviction import NoVictims, Victims, borrowers_over_capacity, find_victims, may_find_victims
from fairpool.core.feasibility import (
    amounts_fit_after,
    dedicated_to_others,
    kept_for_eviction,
    limit_in_use,
    place,
    pool_draining,
    pool_full,
    reservation_in_use,
)
from fairpool.core.holding import Held
from fairpool.core.ids import SECOND, Instant, PoolId, RequestId
from fairpool.core.lanes import Lanes, Turn
from fairpool.core.ordering import rank, standing
from fairpool.core.plan import Claim, Evict, Finish, Grant, Hold, Plan, Reject
from fairpool.core.reasons import Code, Reason
from fairpool.core.requests import Allocation, Because, Demand, Eviction, PartPlacement, Request, Status
from fairpool.core.shares import PolicyBooks
from fairpool.core.waiting import Candidate, Origin
from fairpool.core.world import World

Places = tuple[PartPlacement, ...]


def plan(world: World, now: Instant) -> Plan:
    """What the world calls for at this moment; it is left as it was (INV-9: same world, same time, same plan)."""
    with world.what_if():
        return decide(world, now)


def decide(world: World, now: Instant) -> Plan:
    """The same plan, and the world has moved by it. Deciding again changes nothing (S33)."""
    return _Decision(world, now).run()


def own_obstacle(policy: PolicyBooks, demand: Demand, preemptible: bool) -> Reason | None:
    """What the policy's own rights hold back: such a request blocks nobody and holds nothing (S25)."""
    limit = limit_in_use(policy, demand.total) if policy.limit else None
    return limit or (None if preemptible else reservation_in_use(policy, demand.total, preemptible))


def room(pool: PoolBooks, policy: PolicyBooks, demand: Demand) -> Places | Reason:
    """Where the pool has room for the demand now, or the first thing in the way."""
    amounts = demand.total
    return (
        pool_draining(pool, policy)
        or pool_full(pool, policy, amounts)
        or (dedicated_to_others(pool, policy, amounts) if pool.dedicated else None)
        or kept_for_eviction(pool, policy, amounts)
        or place(pool, policy, demand)
    )


class _Decision:
    def __init__(self, world: World, now: Instant) -> None:
        self.world = world
        self.now = now
        self.pending: set[PoolId] = set()  # pools still to be served
        self.serving: set[PoolId] = set()  # pools being served at this moment, the outer ones of a recursion included
        self.served: set[PoolId] = set()
        self.stood_first: dict[PoolId, RequestId] = {}  # who kept capacity from others in a pool by waiting there
        self.finishes: list[Finish] = []
        self.rejects: list[Reject] = []
        self.grants: list[Grant] = []
        self.evictions: list[Evict] = []
        self.claims: dict[RequestId, Claim] = {}
        self.unclaims: dict[RequestId, None] = {}
        self.holds: dict[PoolId, Hold] = {}

    def run(self) -> Plan:
        # 1 what time has ended: grace periods and waits
        self._end_what_is_over()
        # 2 what can never run, and what nobody governs
        self._reject_hopeless()
        self._start_ungoverned()
        # 3 what is kept where pools or policies changed
        self._place_loose_claims()
        # 4 what operators asked for, then every touched pool in its order: claims, grants, evictions, holds
        self.pending = set(self.world.touched)
        for pool in sorted(self.pending):
            self._evict_over_capacity(self.world.books[pool])
        while self.pending:
            self._serve(min(self.pending))
        self.world.touched.clear()
        # 5 when time alone may change something
        return self._plan()

    def _plan(self) -> Plan:
        return Plan(
            at=self.now,
            finishes=tuple(self.finishes),
            rejects=tuple(self.rejects),
            grants=tuple(self.grants),
            evictions=tuple(self.evictions),
            claims=tuple(self.claims.values()),
            unclaims=tuple(self.unclaims),
            holds=tuple(self.holds[pool] for pool in sorted(self.holds)),
            wake_at=self.world.moments.next(),
        )

    # ---- 1 to 3 -----------------------------------------------------------------------------------------------------

    def _end_what_is_over(self) -> None:
        world = self.world
        for deadline_at, request in world.moments.deadlines_until(self.now):
            held = world.allocations.get(request)
            if held is not None and held.eviction is not None and held.eviction.deadline_at == deadline_at:
                world.let_go(request)
                self.finishes.append(Finish(request=request, status=Status.PREEMPTED))
        for request in world.moments.timeouts_until(self.now):
            if request in world.queue:
                world.dequeue(request)
                self.rejects.append(Reject(request=request, reasons=(Reason(code=Code.WAIT_TIMEOUT),)))
        for pool in world.moments.alarms_until(self.now):
            if pool in world.books:
                world.touched.add(pool)

    def _reject_hopeless(self) -> None:
        for request in sorted(self.world.queue.hopeless.values(), key=lambda request: request.id):
            origin = Origin(request.subjects, request.profile, request.pool)
            reasons = self.world.routes.find(origin, request.demand, request.preemptible).refusals
            self.world.dequeue(request.id)
            self.rejects.append(Reject(request=request.id, reasons=reasons))

    def _start_ungoverned(self) -> None:
        for request in sorted(self.world.queue.ungoverned.values(), key=lambda request: request.id):
            self.world.dequeue(request.id)
            self._hold_for(request, None, ())

    def _place_loose_claims(self) -> None:
        """A claim stays where it is when it still fits, moves when it fits elsewhere, and ends when it fits nowhere."""
        world = self.world
        loose, world.loose = sorted(world.loose.values(), key=lambda claim: claim.request), {}
        for claim in loose:
            request = world.queue.claimants[claim.request]
            pool = world.books[claim.pool]
            places = self._room_after(pool, pool.policies[claim.policy], request, claim.parts)
            world.queue.unset_claimant(request.id)
            if places is None:
                self.unclaims[request.id] = None
                world.touched.update(candidate.pool for candidate in self._candidates(request))
                continue
            moved = Claim(request=claim.request, pool=claim.pool, policy=claim.policy, parts=places)
            world.post_claim(moved)
            if moved != claim:
                self.claims[request.id] = moved

    def _room_after(self, pool: PoolBooks, policy: PolicyBooks, request: Request, wanted: Places) -> Places | None:
        demand = request.demand
        if reservation_in_use(policy, demand.total, request.preemptible) is not None:
            return None
        if not amounts_fit_after(pool, policy, demand.total):
            return None
        if pool.nodes.is_free_after(demand.parts, wanted):
            return wanted
        return pool.nodes.place_after(demand.parts)

    # ---- 4 one pool -------------------------------------------------------------------------------------------------

    def _evict_over_capacity(self, pool: PoolBooks) -> None:
        if pool.evict_borrowers:
            pool.evict_borrowers = False
            for victim in borrowers_over_capacity(pool):
                self._evict(victim, None, Because.CAPACITY)

    def _serve(self, pool_id: PoolId) -> None:
        """One pass over the pool in its order (S23): each class once."""
        self.pending.discard(pool_id)
        pool = self.world.books[pool_id]
        self.serving.add(pool_id)
        self._serve_claimants(pool)
        self._Pass(self, pool).run()
        self.serving.discard(pool_id)
        self.served.add(pool_id)

    def _serve_claimants(self, pool: PoolBooks) -> None:
        """Criterion 1: requests that evictions are under way for, or that these have just made room for."""
        standing_here = [
            (rank(standing(pool, pool.policies[c.policy], request.demand.total, request.preemptible), request), request)
            for request in self.world.queue.claimants.values()
            for c in self._candidates(request)
            if c.pool == pool.pool.id
        ]
        for _, request in sorted(standing_here, key=lambda pair: pair[0]):
            if request.id in self.world.queue.claimants:
                self._serve_claimant(request)

    def _serve_claimant(self, request: Request) -> None:
        claim = self.world.claim_of(request.id)
        assert claim is not None
        books = self.world.books[claim.pool]
        books.post_claim(claim, request, -1)  # what is kept for it does not stand in its own way
        start = self._best_start(request)
        books.post_claim(claim, request, 1)
        if start is not None:
            self._grant(request, *start)
        elif not books.leaving:
            # Everything has been let go of and it still cannot start: what is kept helps it no more.
            self.world.drop_claim(request.id)
            self.unclaims[request.id] = None
            self.claims.pop(request.id, None)
            self.pending.update(c.pool for c in self._candidates(request) if c.pool not in self.serving)

    def _best_start(self, request: Request) -> tuple[Candidate, Places] | None:
        """The most preferred candidate that could take the request at this moment, whatever stands in line (S26)."""
        for candidate in self._candidates(request):
            places = self._startable(request, candidate)
            if places is not None:
                return candidate, places
        return None

    def _startable(self, request: Request, candidate: Candidate) -> Places | None:
        pool = self.world.books[candidate.pool]
        policy = pool.policies[candidate.policy]
        if own_obstacle(policy, request.demand, request.preemptible) is not None:
            return None
        found = room(pool, policy, request.demand)
        return None if isinstance(found, Reason) else found

    def _candidates(self, request: Request) -> tuple[Candidate, ...]:
        home = self.world.queue.home(request.id)
        return home.key.candidates if home is not None else ()

    class _Pass:
        """One pass over one pool."""

        def __init__(self, decision: _Decision, pool: PoolBooks) -> None:
            self.decision = decision
            self.world = decision.world
            self.pool = pool
            self.lanes = Lanes(pool, self.world.queue)
            self.held: Held | None = None
            self.somebody_blocked = any(c.pool == pool.pool.id for c in self.world.claims.values())
            self.lowest_priority = _lowest_priority(pool)

        def run(self) -> None:
            self.decision.holds.pop(self.pool.pool.id, None)
            self.decision.stood_first.pop(self.pool.pool.id, None)
            if self.somebody_blocked and not self.pool.pool.backfill:
                return  # strict order: nobody passes those whom evictions are under way for
            self.somebody_blocked = False
            while (turn := self.lanes.next()) is not None:
                if not self._consider(turn):
                    break
            if self.held is not None:
                self.held.lift()

        def _consider(self, turn: Turn) -> bool:
            """Whether the pass goes on."""
            request = turn.request
            own = own_obstacle(turn.policy, request.demand, request.preemptible)
            found = own or room(self.pool, turn.policy, request.demand)
            if isinstance(found, Reason) and own is None and self.held is not None and self.held.lets_pass(request):
                found = self._room_beside_held(turn)
            if not isinstance(found, Reason):
                self._start(turn, found)
                return True
            if len(turn.home.key.candidates) > 1 and self._starts_elsewhere(turn):
                self._again(turn)
                return True
            if self._make_room(turn):
                self._again(turn)
                return self.pool.pool.backfill
            return True if own is not None else self._block(turn)

        def _again(self, turn: Turn) -> None:
            self.lanes.keep(turn)

        def _start(self, turn: Turn, places: Places) -> None:
            """Grant here, or in a pool that the request prefers and that can take it (S26)."""
            request = turn.request
            here = Candidate(turn.policy.policy.id, self.pool.pool.id)
            for candidate in turn.home.key.candidates:
                if candidate == here:
                    self.decision._grant(request, here, places)
                    break
                if self._prefer(request, candidate):
                    break
            self.lowest_priority = _lower(self.lowest_priority, turn.policy)
            if self.held is not None:  # what is free has changed
                self.held.lift()
                self.held.lay()
            self._again(turn)

        def _prefer(self, request: Request, candidate: Candidate) -> bool:
            """Whether the request was granted in the pool that it would rather have."""
            decision = self.decision
            if candidate.pool in decision.serving:
                places = decision._startable(request, candidate)
                if places is not None:
                    decision._grant(request, candidate, places)
            elif candidate.pool in decision.pending:
                decision._serve(candidate.pool)
            # A pool that was served, or that nothing happened in, has had its chance to take it.
            return request.id not in self.world.queue

        def _room_beside_held(self, turn: Turn) -> Places | Reason:
            assert self.held is not None
            self.held.lift()
            found = room(self.pool, turn.policy, turn.request.demand)
            self.held.lay()
            return found

        def _make_room(self, turn: Turn) -> bool:
            """Evict for the request in the most preferred pool where that works, unless it can start without."""
            request = turn.request
            for candidate in turn.home.key.candidates:
                pool = self.world.books[candidate.pool]
                here = pool is self.pool
                lowest = self.lowest_priority if here else _lowest_priority(pool)
                policy = pool.policies[candidate.policy]
                if not may_find_victims(pool, policy, request, lowest):
                    continue
                if reservation_in_use(policy, request.demand.total, request.preemptible) is not None:
                    continue
                if self._evict_for(request, pool, policy, here=here):
                    return True
            return False

        def _starts_elsewhere(self, turn: Turn) -> bool:
            """Have its other pools look at the request first: free room comes before evicting anyone (S26)."""
            request, decision = turn.request, self.decision
            for candidate in turn.home.key.candidates:
                if candidate.pool in decision.pending:
                    decision._serve(candidate.pool)
                elif candidate.pool in decision.serving and candidate.pool != self.pool.pool.id:
                    places = decision._startable(request, candidate)
                    if places is not None:
                        decision._grant(request, candidate, places)
                if request.id not in self.world.queue or request.id in self.world.queue.claimants:
                    return True
            return False

        def _evict_for(self, request: Request, pool: PoolBooks, policy: PolicyBooks, *, here: bool) -> bool:
            if here and self.held is not None:
                self.held.lift()
                self.held.lay_free_only()
            victims = find_victims(pool, policy, request, self.decision.now)
            if here and self.held is not None:
                self.held.lift()
            if isinstance(victims, Victims):
                self.decision._evict_all(request, pool, policy, victims)
            elif victims.matures_at is not None:
                self.world.moments.add_alarm(victims.matures_at, pool.pool.id)
            if here and self.held is not None:
                self.held.lay()
            return not isinstance(victims, NoVictims)

        def _block(self, turn: Turn) -> bool:
            """The request waits for room. The first to do so may hold capacity, or in strict order ends the pass."""
            request, pool = turn.request, self.pool.pool
            if self.somebody_blocked:
                return True
            self.somebody_blocked = True
            if not pool.backfill:
                self.decision.stood_first[pool.id] = request.id
                self.decision.holds[pool.id] = Hold(pool=pool.id, request=request.id)
                return False
            if self.decision.now - request.queued_at >= pool.max_bypass_s * SECOND:
                self.decision.stood_first[pool.id] = request.id
                self.decision.holds[pool.id] = Hold(pool=pool.id, request=request.id)
                self.held = Held(self.pool, turn.policy, request, self.decision.now)
            return True

    # ---- changes ----------------------------------------------------------------------------------------------------

    def _grant(self, request: Request, candidate: Candidate, places: Places) -> None:
        candidates = self._candidates(request)
        had_claim = self.world.claim_of(request.id)
        self.claims.pop(request.id, None)
        self.world.dequeue(request.id)
        self._hold_for(request, candidate, places)
        for other in candidates:
            if other.pool != candidate.pool:
                self._loosen(other.pool, request, keeps=had_claim is not None and had_claim.pool == other.pool)
        if had_claim is not None and had_claim.pool == candidate.pool and candidate.pool not in self.serving:
            self.pending.add(candidate.pool)

    def _loosen(self, pool: PoolId, request: Request, *, keeps: bool) -> None:
        """The request waits in that pool no longer: serve the pool (again) when it may have kept capacity there."""
        books = self.world.books[pool].pool
        unserved = pool not in self.served and pool not in self.serving
        might = unserved and (not books.backfill or self.now - request.queued_at >= books.max_bypass_s * SECOND)
        if keeps or might or self.stood_first.get(pool) == request.id:
            self.pending.add(pool)

    def _hold_for(self, request: Request, candidate: Candidate | None, places: Places) -> None:
        self.world.sequence += 1
        allocation = Allocation(
            request=request,
            pool=candidate.pool if candidate else None,
            policy=candidate.policy if candidate else None,
            parts=places,
            granted_at=self.now,
            sequence=self.world.sequence,
        )
        self.world.hold(allocation)
        self.grants.append(Grant(allocation=allocation))

    def _evict_all(self, request: Request, pool: PoolBooks, policy: PolicyBooks, victims: Victims) -> None:
        for victim, because in victims.chosen:
            self._evict(victim, request.id, because)
        claim = Claim(request=request.id, pool=pool.pool.id, policy=policy.policy.id, parts=victims.parts)
        for other in self._candidates(request):
            if other.pool != pool.pool.id:
                self._loosen(other.pool, request, keeps=False)
        self.world.post_claim(claim)
        self.unclaims.pop(request.id, None)
        self.claims[request.id] = claim

    def _evict(self, victim: Allocation, cause: RequestId | None, because: Because) -> None:
        assert victim.pool is not None
        assert victim.policy is not None
        policy = self.world.books[victim.pool].policies[victim.policy].policy
        deadline_at = Instant(self.now + policy.grace_s * SECOND)
        self.world.evict(victim.request.id, Eviction(cause=cause, because=because, deadline_at=deadline_at))
        self.evictions.append(Evict(request=victim.request.id, cause=cause, because=because, deadline_at=deadline_at))


def _lowest_priority(pool: PoolBooks) -> int | None:
    """The lowest policy priority with preemptible work that is not leaving; None where there is no such work."""
    return min((books.policy.priority for books in pool.policies.values() if books.priorities), default=None)


def _lower(lowest: int | None, policy: PolicyBooks) -> int:
    return policy.policy.priority if lowest is None else min(lowest, policy.policy.priority)

"""The decision: what a world and a moment call for. The phases are numbered in `_Decision.run`; that is all there is.

`decide` moves the world by what it decides; `plan` leaves the world as it was. Both give the same plan.
"""

from __future__ import annotations

from collections.abc import Iterable

from fairpool.core.accounts import PolicyBooks
from fairpool.core.books import PoolBooks
from fairpool.core.draft import Draft, Places
from fairpool.core.events import Submitted
from fairpool.core.eviction import borrowers_over_capacity
from fairpool.core.feasibility import amounts_fit_after, reservation_in_use, startable
from fairpool.core.ids import Instant, PoolId, RequestId
from fairpool.core.ordering import in_order, standing
from fairpool.core.passes import PoolPass
from fairpool.core.plan import Cancel, Claim, Finish, Grant, Plan, Reject
from fairpool.core.reasons import RIGHT_LOST, Code, Reason
from fairpool.core.requests import Allocation, Because, Request, Status
from fairpool.core.waiting import Candidate, Origin
from fairpool.core.world import World


def plan(world: World, now: Instant) -> Plan:
    """What the world calls for at this moment; it is left as it was (INV-9: same world, same time, same plan)."""
    with world.what_if():
        return decide(world, now)


def decide(world: World, now: Instant) -> Plan:
    """The same plan, and the world has moved by it. Deciding again changes nothing (S33)."""
    wake_at = world.moments.next()
    is_time_up = wake_at is not None and wake_at <= now
    if not is_time_up:
        if not _is_anything_to_do(world):
            return Plan(at=now, wake_at=wake_at)
        allocation = _start_alone(world, now)
        if allocation is not None:
            return Plan(at=now, grants=(Grant(allocation=allocation),), wake_at=wake_at)
    return _Decision(world, now).run(is_time_up)


def arrive(world: World, request: Request, now: Instant) -> Plan:
    """What follows from a request's arrival, and the world has moved by it. The same plan as that of `decide` after
    `World.apply`, and the same refusal (InvalidInput); but who finds room, and nobody waiting, is never queued.
    """
    if is_settled(world, now) and world.status_of(request.id) is None:
        allocation = _start_in_front(world, request, now)
        if allocation is not None:
            return Plan(at=now, grants=(Grant(allocation=allocation),), wake_at=world.moments.next())
    world.apply(Submitted(request=request), now)
    return decide(world, now)


def is_settled(world: World, now: Instant) -> bool:
    """Whether a decision at this moment would change nothing, as far as can be said without making it."""
    wake_at = world.moments.next()
    return (wake_at is None or wake_at > now) and not _is_anything_to_do(world)


def _is_anything_to_do(world: World) -> bool:
    """Whether anything has happened since the last decision that concerns somebody who waits."""
    queue = world.queue
    return bool(world.touched or queue.hopeless or queue.ungoverned or world.loose)


def _start_in_front(world: World, request: Request, now: Instant) -> Allocation | None:
    """Start a request that is not queued, if nobody waits where it wants to go and there is room."""
    candidate = world.queue.place_in_front(request)
    if candidate is None:
        return None
    nodes, parts = world.books[candidate.pool].nodes, request.demand.parts
    nodes.expect(parts, 1)  # as long as it is looked for a place, it waits
    places = _places_at_once(world, request, candidate)
    nodes.expect(parts, -1)
    return None if places is None else world.grant(request, candidate, places, now)


def _start_alone(world: World, now: Instant) -> Allocation | None:
    """A shortcut for the usual case while a pool is not full: somebody was queued, nobody else waits there, and there
    is room. It does what `_Decision` would, and orders nobody. None, and nothing is done, in all other cases."""
    queue = world.queue
    if len(world.touched) != 1 or queue.hopeless or queue.ungoverned or world.loose:
        return None
    (pool,) = world.touched
    waiting = queue.alone_in(pool)
    if waiting is None:
        return None
    request, candidate = waiting
    places = _places_at_once(world, request, candidate)
    if places is None:
        return None
    world.dequeue(request.id)
    allocation = world.grant(request, candidate, places, now)
    world.touched.clear()
    return allocation


def _places_at_once(world: World, request: Request, candidate: Candidate) -> Places | None:
    """Where somebody before whom nobody stands can start; None, too, where it is not as easy as that."""
    pool = world.books.get(candidate.pool)
    if pool is None or pool.evict_borrowers:
        return None
    policy = pool.policies[candidate.policy]
    return None if policy.policy.also else startable(pool, policy, request.demand, request.preemptible)


class _Decision:
    def __init__(self, world: World, now: Instant) -> None:
        self.world = world
        self.now = now
        self.draft = Draft(world, now)

    def run(self, is_time_up: bool) -> Plan:
        # 1 what time has ended: grace periods and waits
        if is_time_up:
            self._end_what_is_over()
        # 2 what can never run or may wait no more, and what nobody governs
        if self.world.queue.hopeless:
            self._end_hopeless()
        if self.world.queue.ungoverned:
            self._start_ungoverned()
        # 3 what is kept where pools or policies changed, and what operators asked for
        if self.world.loose:
            self._place_loose_claims()
        self.world.touched.intersection_update(self.world.books)  # a pool may be gone since it was touched
        for pool in sorted(self.world.touched):
            self._evict_over_capacity(self.world.books[pool])
        # 4 every touched pool in its order: claims, grants, evictions, holds
        self._serve_pools()
        self.world.touched.clear()
        # 5 what was decided, and when time alone may change something
        return self.draft.plan()

    # ---- 1 to 3 -----------------------------------------------------------------------------------------------------

    def _end_what_is_over(self) -> None:
        world = self.world
        for deadline_at, request in world.moments.deadlines_until(self.now):
            held = world.allocations.get(request)
            if held is not None and held.eviction is not None and held.eviction.deadline_at == deadline_at:
                world.let_go(request)
                self.draft.finishes.append(Finish(request=request, status=Status.PREEMPTED))
        for request in world.moments.timeouts_until(self.now):
            if request in world.queue:
                world.dequeue(request)
                self.draft.rejects.append(Reject(request=request, reasons=(Reason(code=Code.WAIT_TIMEOUT),)))
        for pool in world.moments.alarms_until(self.now):
            if pool in world.books:
                world.touched.add(pool)

    def _end_hopeless(self) -> None:
        """S17: whoever lost every right it had is cancelled, the others without a candidate are rejected."""
        for request in sorted(self.world.queue.hopeless.values(), key=lambda request: request.id):
            lapsed = self.world.queue.lapsed.get(request.id, ())
            refusals = self.world.routes.find(Origin.of(request), request.demand, request.preemptible).refusals
            self.world.dequeue(request.id)
            if lapsed and all(reason.code in RIGHT_LOST for reason in lapsed):
                self.draft.cancels.append(Cancel(request=request.id, reasons=lapsed))
            else:
                others = [reason for reason in refusals if not lapsed or reason.code is not Code.NO_POLICY]
                self.draft.rejects.append(Reject(request=request.id, reasons=tuple(dict.fromkeys((*lapsed, *others)))))

    def _start_ungoverned(self) -> None:
        for request in sorted(self.world.queue.ungoverned.values(), key=lambda request: request.id):
            self.world.dequeue(request.id)
            self.draft.hold_for(request, None, ())

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
                self.draft.unclaims[request.id] = None
                world.touched.update(candidate.pool for candidate in self.draft.candidates(request))
                continue
            moved = Claim(request=claim.request, pool=claim.pool, policy=claim.policy, parts=places)
            world.post_claim(moved)
            if moved != claim:
                self.draft.claims[request.id] = moved

    def _room_after(self, pool: PoolBooks, policy: PolicyBooks, request: Request, wanted: Places) -> Places | None:
        demand = request.demand
        if reservation_in_use(policy, demand.total, request.preemptible) is not None:
            return None
        if not amounts_fit_after(pool, policy, demand.total):
            return None
        if pool.nodes.is_free_after(demand.parts, wanted):
            return wanted
        return pool.nodes.place_after(demand.parts)

    def _evict_over_capacity(self, pool: PoolBooks) -> None:
        if pool.evict_borrowers:
            pool.evict_borrowers = False
            for victim in borrowers_over_capacity(pool):
                self.draft.evict(victim, None, Because.CAPACITY)

    # ---- 4 ----------------------------------------------------------------------------------------------------------

    def _serve_pools(self) -> None:
        draft = self.draft
        draft.pending = set(self.world.touched)
        while draft.pending or draft.deferred:
            if not draft.pending:
                draft.pending, draft.deferred = draft.deferred, set()
            pool = self._next_pool()
            draft.pending.discard(pool)
            self._serve_claimants(self.world.books[pool])
            PoolPass(draft, self.world.books[pool]).run()
            draft.served.add(pool)

    def _next_pool(self) -> PoolId:
        """The pending pool that comes first in line. There a pool stands behind those that some waiting request prefers
        to it (S26); in a circle, the first by id. Pools stand in it that are not pending, too: which of the others
        comes first must not hang on whether those have been touched (INV-9)."""
        pending = self.draft.pending
        if len(pending) == 1:
            return min(pending)
        preferences = self.world.queue.preferences()
        line = pending.union(*preferences)
        while True:
            later = {pool for pools in preferences for pool in [pool for pool in pools if pool in line][1:]}
            first = min(line - later or line)
            if first in pending:
                return first
            line.discard(first)

    def _serve_claimants(self, pool: PoolBooks) -> None:
        """Criterion 1: requests that evictions here are under way for, or that these have just made room for."""
        waiting = self._claimants_in_order(pool, pool.claims)
        while waiting:
            request = waiting.pop(0)
            claim = self.world.claims[request.id]
            pool.post_claim(claim, request, -1)  # what is kept for it does not stand in its own way
            candidate = Candidate(claim.policy, claim.pool)
            places = self.draft.startable(request, candidate)
            pool.post_claim(claim, request, 1)
            if places is not None:
                self.draft.grant(request, candidate, places)
                waiting = self._claimants_in_order(pool, [other.id for other in waiting])  # shares have changed
            elif not self.draft.is_room_being_made(pool.policies[claim.policy]):
                # Everything has been let go of, in its policy's other pools too: what is kept helps it no more.
                self.draft.unclaim(request)

    def _claimants_in_order(self, pool: PoolBooks, claimants: Iterable[RequestId]) -> list[Request]:
        asking = []
        for claim in [self.world.claims[request] for request in claimants]:
            request, policy = self.world.queue.claimants[claim.request], pool.policies[claim.policy]
            asking.append((policy, standing(pool, policy, request.demand.total, request.preemptible), request))
        return in_order(asking)

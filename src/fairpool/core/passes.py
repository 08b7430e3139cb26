"""One pass over one pool in its order (S23): each class is considered once, and starts, evicts, or waits."""

from __future__ import annotations

from fairpool.core.accounts import PolicyBooks
from fairpool.core.books import PoolBooks
from fairpool.core.draft import Draft, Places
from fairpool.core.eviction import Victims, find_victims, may_find_victims
from fairpool.core.feasibility import amounts_fit_after, own_obstacle, reservation_in_use, room
from fairpool.core.holding import Held
from fairpool.core.ids import SECOND, Instant, PolicyId
from fairpool.core.lanes import Lanes, Turn
from fairpool.core.plan import Hold
from fairpool.core.requests import Request
from fairpool.core.waiting import Candidate


class PoolPass:
    """A pass in progress."""

    def __init__(self, draft: Draft, pool: PoolBooks) -> None:
        self.draft = draft
        self.world = draft.world
        self.pool = pool
        self.lanes = Lanes(pool, self.world.queue)
        self.to_hold_for: Turn | None = None  # from the next turn on
        self.held: Held | None = None
        self.changed_behind = False
        self.awaiting: list[tuple[Turn, Places]] = []
        self.somebody_blocked = False
        self.limited: set[PolicyId] = set()  # policies of which somebody waits for a limit or reservation of its own
        self._lowest_priority: int | None = None
        self._priorities_known = False

    def run(self) -> None:
        """Consider everybody."""
        pool_id = self.pool.pool.id
        self.draft.holds.pop(pool_id, None)
        self.draft.stood_first.pop(pool_id, None)
        if self.pool.claims and not self.pool.pool.backfill:
            return  # strict order: nobody passes those whom evictions are under way for
        while (turn := self.lanes.next()) is not None:
            if not self._consider(turn):
                break
        for turn, places in self.awaiting:
            self.pool.shift(turn.policy.policy.id, turn.request, places, 0, -1)
        if self.held is not None:
            self.held.lift()
        if self.changed_behind:
            # Shares have changed, and with them who comes first: look again, until nothing changes any more.
            self.draft.pending.add(pool_id)

    def _consider(self, turn: Turn) -> bool:
        """Whether the pass goes on."""
        request = turn.request
        if self.somebody_blocked:
            self._begin_to_hold()
            if self._changes_nothing(turn):
                return True
        own = own_obstacle(turn.policy, request.demand, request.preemptible)
        places = None if own else room(self.pool, turn.policy, request.demand)
        if places is None and own is None and self.held is not None and self.held.lets_pass(request):
            places = self._room_beside_held(turn)
        if places is not None:
            if len(turn.home.key.candidates) > 1 and self._may_start_in_better(turn):
                return self._defer(request)
            self._start(turn, places)
            return True
        if request.id in self.world.queue.claimants:
            return True  # it waits for what is being freed for it in another pool
        if len(turn.home.key.candidates) > 1 and self._may_start_elsewhere(turn):
            return self._defer(request)
        if self._make_room(turn):
            self._again(turn)
            self.changed_behind = True  # a victim may leave more room than was needed: somebody before may use it
            return self.pool.pool.backfill
        self._await_what_leaves(turn)
        if own is not None:
            self.limited.add(turn.policy.policy.id)
            return True
        return self._block(turn)

    def _defer(self, request: Request) -> bool:
        """Who comes behind is considered when it is known where this one starts."""
        self.draft.deferred.add(self.pool.pool.id)
        self.draft.stood_first[self.pool.pool.id] = request.id
        return False

    def _changes_nothing(self, turn: Turn) -> bool:
        """A shortcut for the usual case behind the first blocked request: too little is free and nobody can be evicted.
        It only skips what `_consider` would find out for itself."""
        if self.held is not None or self.pool.leaving or len(turn.home.key.candidates) > 1:
            return False
        free = self.pool.free_now
        for key, value in turn.home.demand.total:
            if key in free and value > free[key]:
                return not may_find_victims(self.pool, turn.policy, turn.request, self._find_lowest_priority())
        return False

    def _find_lowest_priority(self) -> int | None:
        """Of policies with work that might be evicted here. Most passes find nobody blocked and never ask."""
        if not self._priorities_known:
            self._lowest_priority, self._priorities_known = _lowest_priority(self.pool), True
        return self._lowest_priority

    def _again(self, turn: Turn) -> None:
        self.changed_behind = self.changed_behind or self.held is not None or bool(self.awaiting)
        self.lanes.keep(turn)

    def _start(self, turn: Turn, places: Places) -> None:
        """Grant here."""
        request = turn.request
        if self.held is not None:
            self.held.lift()  # what starts beside it may lie on the very devices that are held until then
        self.draft.grant(request, Candidate(turn.policy.policy.id, self.pool.pool.id), places)
        turn.home.members.pop(request.id, None)  # from a class of its own it is not gone yet
        if (self.somebody_blocked or turn.policy.policy.id in self.limited) and not turn.policy.is_last(request):
            self.changed_behind = True  # it may have pushed own work out of the reservation, which can be evicted now
        if self._priorities_known:
            self._lowest_priority = _lower(self._lowest_priority, turn.policy)
        if self.held is not None:
            self.held.lay()  # what is free has changed
        self._again(turn)

    def _may_start_in_better(self, turn: Turn) -> bool:
        """Pools that a request prefers are served before (S26). One of them may yet be waiting for its pass, because
        preferences run in a circle, or because it is to be looked at again: then that pass comes first. So it does,
        once, where that pool was deferred for somebody who has not started elsewhere after all."""
        here = self.pool.pool.id
        for candidate in turn.home.key.candidates:
            if candidate == (turn.policy.policy.id, here):
                return False
            if self.draft.may_start(turn.request, candidate):
                return True
            is_deferred = candidate.pool in self.draft.deferred and here not in self.draft.put_off
            if is_deferred and self.draft.startable(turn.request, candidate) is not None:
                self.draft.put_off.add(here)
                return True
        return False

    def _may_start_elsewhere(self, turn: Turn) -> bool:
        """Free room in any candidate comes before evicting anyone (S26): let the other pools have their pass first."""
        return any(self.draft.may_start(turn.request, candidate) for candidate in turn.home.key.candidates)

    def _room_beside_held(self, turn: Turn) -> Places | None:
        assert self.held is not None
        self.held.lift()
        found = room(self.pool, turn.policy, turn.request.demand)
        self.held.lay()
        return found

    def _make_room(self, turn: Turn) -> bool:
        """Whether somebody was evicted for the request."""
        request, policy = turn.request, turn.policy
        if not may_find_victims(self.pool, policy, request, self._find_lowest_priority()):
            return False
        if reservation_in_use(policy, request.demand.total, request.preemptible) is not None:
            return False  # S22: no eviction would make it entitled
        if self.held is not None:
            self.held.lift()
            self.held.lay_free_only()
        victims = find_victims(self.pool, policy, request, self.draft.now)
        if self.held is not None:
            self.held.lift()
        if isinstance(victims, Victims):
            self.draft.evict_for(request, self.pool, policy, victims)
        elif victims.matures_at is not None:
            self.world.moments.add_alarm(victims.matures_at, self.pool.pool.id)
        if self.held is not None:
            self.held.lay()
        return isinstance(victims, Victims)

    def _await_what_leaves(self, turn: Turn) -> None:
        """Room that others' evictions are making, beyond what is kept for them, goes by the order of this pass: nobody
        behind may start on it and be evicted for this request a moment later. What leaves may be the policy's own, in
        another of its pools: then it is its limit or reservation that has to wait."""
        if not self.draft.is_room_being_made(turn.policy):
            return
        if self.held is not None:
            self.held.lift()
            self.held.lay_free_only()  # where work lies that will end by itself nothing is being made
        places = self._place_in_what_leaves(turn)
        if places is not None:
            self.pool.shift(turn.policy.policy.id, turn.request, places, 0, 1)
            self.awaiting.append((turn, places))
        if self.held is not None:
            self.held.lift()
            self.held.lay()

    def _place_in_what_leaves(self, turn: Turn) -> Places | None:
        request, policy = turn.request, turn.policy
        if not amounts_fit_after(self.pool, policy, request.demand.total):
            return None
        if reservation_in_use(policy, request.demand.total, request.preemptible) is not None:
            return None
        return self.pool.nodes.place_after(request.demand.parts)

    def _block(self, turn: Turn) -> bool:
        """The request waits for room. The first to do so may hold capacity (S25), or in strict order ends the pass."""
        if self.somebody_blocked:
            return True
        self.somebody_blocked = True
        request, pool = turn.request, self.pool.pool
        holds_from = Instant(request.queued_at + pool.max_bypass_s * SECOND)
        waited = self.draft.now >= holds_from
        if waited or not pool.backfill:
            self._hold_for(request)
        if pool.backfill and waited:
            self.to_hold_for = turn
        elif pool.backfill and any(books.leaving for books in self.world.books.values()):
            # What it will hold then, somebody else may be waiting for, who has to look for room elsewhere.
            self.world.moments.add_alarm(holds_from, pool.id)
        return pool.backfill

    def _begin_to_hold(self) -> None:
        """Only when somebody comes behind: most passes end with the first one that waits."""
        if self.to_hold_for is not None and self.held is None:
            self.held = Held(self.pool, self.to_hold_for.policy, self.to_hold_for.request, self.draft.now)

    def _hold_for(self, request: Request) -> None:
        pool = self.pool.pool.id
        self.draft.stood_first[pool] = request.id
        self.draft.holds[pool] = Hold(pool=pool, request=request.id)


def _lowest_priority(pool: PoolBooks) -> int | None:
    """The lowest policy priority with preemptible work that is not leaving; None where there is no such work."""
    return min([books.policy.priority for books in pool.policies.values() if books.priorities], default=None)


def _lower(lowest: int | None, policy: PolicyBooks) -> int:
    return policy.policy.priority if lowest is None else min(lowest, policy.policy.priority)

"""Everything that the decisions look at, and the one place where it changes.

Events and decisions move the world through a few primitive changes, each of which knows its own undoing. That gives
what-if for free: `with world.what_if():` records the undoings and plays them backwards at the end, so that planning,
explaining and searching for victims run on the real thing at the cost of what they touch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import MappingProxyType

from fairpool.core import events as ev
from fairpool.core.books import PoolBooks, open_account
from fairpool.core.errors import InvalidInput, UnknownObject
from fairpool.core.ids import SECOND, Instant, PolicyId, PoolId, RequestId
from fairpool.core.journal import Journal
from fairpool.core.lifecycle import HAPPENING_OF, after
from fairpool.core.moments import Moments
from fairpool.core.pauses import InSteps, at_once
from fairpool.core.plan import Claim
from fairpool.core.policies import Policy, Profile
from fairpool.core.pools import Pool
from fairpool.core.queue import Queue
from fairpool.core.reasons import Reason
from fairpool.core.requests import Allocation, Eviction, PartPlacement, Request, Status
from fairpool.core.routes import Routes
from fairpool.core.rules import change_rules, settle_rules
from fairpool.core.waiting import Candidate, RequestClass

_AT_ONCE = 50
"""Requests that are restored between two pauses: less than a millisecond."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A world as values: what a store keeps, and all that is needed to go on exactly as before.

    loose, evict_borrowers, lapsed: what the next decision has still to do: claims to place anew, pools in which an
    operator evicts what capacity no longer covers (S9), and what went of queued requests that lost every right (S17).
    All are empty after a decision, which is when a store writes.
    """

    pools: tuple[Pool, ...] = ()
    policies: tuple[Policy, ...] = ()
    profiles: tuple[Profile, ...] = ()
    queued: tuple[Request, ...] = ()
    allocations: tuple[Allocation, ...] = ()
    claims: tuple[Claim, ...] = ()
    require_policy: bool = False
    sequence: int = 0
    loose: tuple[RequestId, ...] = ()
    evict_borrowers: tuple[PoolId, ...] = ()
    lapsed: tuple[tuple[RequestId, tuple[Reason, ...]], ...] = ()


class World:
    """Pools, policies, profiles, and the live requests: queued ones and those that hold an allocation.

    What other modules of the core may use is public here; changes go through the primitives below and `apply`.
    """

    def __init__(self) -> None:
        self.journal = Journal()
        self.books: dict[PoolId, PoolBooks] = {}
        self.routes = Routes(self.books)
        self.queue = Queue(self.routes, self.books, self.journal)
        self.moments = Moments(self.journal)
        self.sequence = 0
        self.rule_changes = 0  # how often the rules have changed since this world began
        self.touched: set[PoolId] = set()  # pools in which something changed since the last decision
        self.loose: dict[RequestId, Claim] = {}  # claims to be placed anew: their pool or policy changed
        self._allocations: dict[RequestId, Allocation] = {}
        self._claims: dict[RequestId, Claim] = {}

    # ---- reading ----------------------------------------------------------------------------------------------------

    @property
    def pools(self) -> Mapping[PoolId, Pool]:
        """The pools by id."""
        return {pool: books.pool for pool, books in self.books.items()}

    @property
    def policies(self) -> Mapping[PolicyId, Policy]:
        """The policies by id."""
        return MappingProxyType(self.routes.policies)

    @property
    def profiles(self) -> Mapping[str, Profile]:
        """The profiles by name."""
        return MappingProxyType(self.routes.profiles)

    @property
    def allocations(self) -> Mapping[RequestId, Allocation]:
        """What is held, by request."""
        return MappingProxyType(self._allocations)

    @property
    def claims(self) -> Mapping[RequestId, Claim]:
        """What is kept for requests that evictions are under way for."""
        return {**self._claims, **self.loose} if self.loose else MappingProxyType(self._claims)

    @property
    def queued(self) -> Mapping[RequestId, Request]:
        """The queued requests by id. Costs a copy: for those who want all of them."""
        return {request: self.queue.request(request) for request in self.queue}

    def request(self, request: RequestId) -> Request:
        """A live request. Raises UnknownObject."""
        allocation = self._allocations.get(request)
        return allocation.request if allocation is not None else self.queue.request(request)

    def status_of(self, request: RequestId) -> Status | None:
        """The status of a live request; None where it is not live: final ones leave the world."""
        allocation = self._allocations.get(request)
        if allocation is not None:
            return allocation.status
        return Status.QUEUED if request in self.queue else None

    def claim_of(self, request: RequestId) -> Claim | None:
        """What is kept for the request, if an eviction for it is under way."""
        return self._claims.get(request) or self.loose.get(request)

    def usage(self, pool: PoolId) -> dict[str, int]:
        """What is in use of each key, evictions under way included (S19)."""
        books = self.books[pool]
        sums = dict.fromkeys(books.capacity, 0)
        for policy in books.policies.values():
            for key, value in policy.here.items():
                sums[key] = sums.get(key, 0) + value
        return sums

    def policy_usage(self, policy: PolicyId) -> dict[str, int]:
        """What is in use through one policy, in all of its pools (S19). Raises UnknownObject."""
        books = self.books[self.routes.policy(policy).pool].policies[policy]
        return {key: value for key, value in books.used_now.items() if value}

    def free(self, pool: PoolId) -> dict[str, int]:
        """What of each metered key is in nobody's use; never below nothing."""
        return {key: max(0, value) for key, value in self.books[pool].free_now.items()}

    def snapshot(self) -> Snapshot:
        """This world as values."""
        return Snapshot(
            pools=tuple(self.books[pool].pool for pool in sorted(self.books)),
            policies=tuple(self.routes.policies[policy] for policy in sorted(self.routes.policies)),
            profiles=tuple(self.routes.profiles[name] for name in sorted(self.routes.profiles)),
            queued=tuple(self.queue.request(request) for request in sorted(self.queue)),
            allocations=tuple(sorted(self._allocations.values(), key=lambda held: (held.sequence, held.request.id))),
            claims=tuple(sorted(self.claims.values(), key=lambda claim: claim.request)),
            require_policy=self.routes.require_policy,
            sequence=self.sequence,
            loose=tuple(sorted(self.loose)),
            evict_borrowers=tuple(pool for pool in sorted(self.books) if self.books[pool].evict_borrowers),
            lapsed=tuple(sorted(self.queue.lapsed.items())),
        )

    @classmethod
    def restore(cls, snapshot: Snapshot) -> World:
        """The world that the snapshot was taken of; every pool counts as touched."""
        return at_once(cls.restoring(snapshot))

    @classmethod
    def restoring(cls, snapshot: Snapshot) -> InSteps[World]:
        """As `restore`, with a pause after every few requests."""
        world = cls()
        world.sequence = snapshot.sequence
        world.routes.require_policy = snapshot.require_policy
        for profile in snapshot.profiles:
            world.routes.profiles[profile.name] = profile
        for pool in snapshot.pools:
            world.books[pool.id] = PoolBooks(pool)
            world.touched.add(pool.id)
        for policy in snapshot.policies:
            world.routes.set_policy(policy)
            open_account(world.books, policy)
        for number, allocation in enumerate(snapshot.allocations):
            world.hold(allocation)
            if number % _AT_ONCE == 0:
                yield
        world.queue.lapsed.update(snapshot.lapsed)
        for number, request in enumerate(snapshot.queued):
            world.enqueue(request)
            if number % _AT_ONCE == 0:
                yield
        for claim in snapshot.claims:
            world.post_claim(claim)
        for loose in snapshot.loose:
            world.loosen_claim(loose)
        for wished in snapshot.evict_borrowers:
            world.books[wished].evict_borrowers = True
        settle_rules(world.books, world.routes.policies)
        return world

    def copy(self) -> World:
        """An independent world in the same state, for trying out changes of the rules."""
        return World.restore(self.snapshot())

    @contextmanager
    def what_if(self) -> Iterator[None]:
        """Undo at the end everything that is done inside; may be nested. Rules may not change inside: use `copy`."""
        touched, loose, sequence = set(self.touched), dict(self.loose), self.sequence
        lapsed = dict(self.queue.lapsed)
        wishes = [books for books in self.books.values() if books.evict_borrowers]
        try:
            with self.journal.recording():
                yield
        finally:
            self.touched, self.loose, self.sequence = touched, loose, sequence
            self.queue.lapsed = lapsed
            for books in wishes:
                books.evict_borrowers = True

    # ---- primitive changes ------------------------------------------------------------------------------------------

    def enqueue(self, request: Request) -> None:
        """Queue a request."""
        if request.wait_timeout_s is not None:
            self.moments.add_timeout(Instant(request.queued_at + request.wait_timeout_s * SECOND), request.id)
        home = self.queue.add(request)
        if home is not None and home.is_headed_by(request):  # behind another head of its class nobody looks at it
            self.touched.update([pool for _, pool in home.key.candidates])

    def dequeue(self, request: RequestId) -> Request:
        """Take a request out of the queue, and let go of what is kept for it."""
        if request in self.queue.claimants:
            self.drop_claim(request)
        home = self.queue.home(request)
        taken = self.queue.remove(request)
        if home is not None:
            self._touch_all(home)
        self.queue.lapsed.pop(request, None)
        return taken

    def _touch_all(self, home: RequestClass) -> None:
        """What one of a class did concerns those who wait where it does."""
        self.touched.update([pool for _, pool in home.key.candidates if self.queue.may_wait_in(pool)])

    def grant(
        self, request: Request, candidate: Candidate | None, places: tuple[PartPlacement, ...], now: Instant
    ) -> Allocation:
        """Have a request that is queued no longer hold what it asked for, next in the order of granting."""
        self.sequence += 1
        policy, pool = candidate or (None, None)
        allocation = Allocation(
            request=request, pool=pool, policy=policy, parts=places, granted_at=now, sequence=self.sequence
        )
        self.hold(allocation)
        return allocation

    def hold(self, allocation: Allocation) -> None:
        """Enter an allocation into the books."""
        if allocation.eviction is not None:
            self.moments.add_deadline(allocation.eviction.deadline_at, allocation.request.id)
        self._enter(allocation)
        if self.journal.active:
            self.journal.record(lambda: self._leave(allocation))

    def let_go(self, request: RequestId) -> Allocation:
        """Take an allocation out of the books."""
        allocation = self._allocations[request]
        self._leave(allocation)
        if self.journal.active:
            self.journal.record(lambda: self._enter(allocation))
        elif allocation.pool is not None and allocation.policy is not None:
            self.books[allocation.pool].forget_retired(allocation.policy)
        return allocation

    def _enter(self, allocation: Allocation) -> None:
        self._allocations[allocation.request.id] = allocation
        if allocation.pool is not None:
            self.books[allocation.pool].enter(allocation)

    def _leave(self, allocation: Allocation) -> None:
        del self._allocations[allocation.request.id]
        if allocation.pool is not None:
            self._touch(allocation.pool, allocation.policy)
            self.books[allocation.pool].leave(allocation)

    def _touch(self, pool: PoolId, policy: PolicyId | None) -> None:
        """Look again at a pool where somebody waits. What a policy uses in one of its pools decides what it may have
        in all of them."""
        if self.queue.may_wait_in(pool):
            self.touched.add(pool)
        books = self.books[pool].policies.get(policy) if policy is not None else None
        if books is not None and books.policy.also:
            self.touched.update([each for each in books.policy.pools if self.queue.may_wait_in(each)])

    def evict(self, request: RequestId, eviction: Eviction) -> None:
        """Have an allocation let go."""
        self.hold(replace(self.let_go(request), eviction=eviction))

    def post_claim(self, claim: Claim) -> None:
        """Keep capacity for a queued request for which nothing is kept yet."""
        request = self.queue.set_claimant(claim.request)
        self._keep(claim, request)
        if self.journal.active:
            self.journal.record(lambda: self._unkeep(claim, request))

    def drop_claim(self, request_id: RequestId) -> None:
        """Keep nothing for the request any more; it stands in its class again."""
        claim = self._claims.get(request_id)
        if claim is None:
            if self.loose.pop(request_id, None) is not None:
                self.queue.unset_claimant(request_id)
            return
        request = self.queue.unset_claimant(request_id)
        self._unkeep(claim, request)
        home = self.queue.home(request_id)
        if home is not None:
            self._touch_all(home)
        if self.journal.active:
            self.journal.record(lambda: self._keep(claim, request))

    def _keep(self, claim: Claim, request: Request) -> None:
        self._claims[claim.request] = claim
        self.books[claim.pool].post_claim(claim, request, 1)

    def _unkeep(self, claim: Claim, request: Request) -> None:
        del self._claims[claim.request]
        self.books[claim.pool].post_claim(claim, request, -1)
        self._touch(claim.pool, claim.policy)

    def loosen_claims(self, pool: PoolId) -> None:
        """Have the next decision place anew what is kept in a pool that changes."""
        assert not self.journal.active
        for request_id in list(self.books[pool].claims):
            self.loosen_claim(request_id)

    def loosen_claim(self, request_id: RequestId) -> None:
        """Have the next decision place anew what is kept for a request."""
        claim = self._claims[request_id]
        self._unkeep(claim, self.queue.claimants[request_id])
        self.loose[request_id] = claim

    # ---- events -----------------------------------------------------------------------------------------------------

    def apply(self, event: ev.Event, now: Instant) -> tuple[ev.Transition, ...]:
        """Let something happen. Returns the changes of status; what follows from them is for the planner to say.

        Raises UnknownObject, InvalidInput (InvalidRules) or IllegalTransition, and has then changed nothing.
        """
        match event:
            case ev.Submitted():
                return self._submitted(event.request, now)
            case ev.Ended():
                return self._ended(event.request, event.how, now)
            case _:
                assert not self.journal.active, "rules do not change inside what_if: use copy()"
                self.rule_changes += 1
                change_rules(self, event)
                return ()

    def _submitted(self, request: Request, now: Instant) -> tuple[ev.Transition, ...]:
        if self.status_of(request.id) is not None:
            raise InvalidInput(f"request {request.id!r} exists already", field="id", value=request.id)
        self.enqueue(request)
        return (ev.Transition(request=request.id, before=None, after=Status.QUEUED, at=now),)

    def _ended(self, request: RequestId, how: Status, now: Instant) -> tuple[ev.Transition, ...]:
        before = self.status_of(request)
        if before is None:
            raise UnknownObject("request", request)
        following = after(request, before, HAPPENING_OF[how])
        if before is Status.QUEUED:
            self.dequeue(request)
        else:
            self.let_go(request)
        return (ev.Transition(request=request, before=before, after=following, at=now),)

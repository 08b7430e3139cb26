"""The queue of a world: waiting requests by class, those aside, and those that evictions are under way for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from fairpool.core.books import PoolBooks
from fairpool.core.errors import UnknownObject
from fairpool.core.ids import PolicyId, PoolId, RequestId
from fairpool.core.journal import Journal
from fairpool.core.reasons import Reason
from fairpool.core.requests import Request
from fairpool.core.routes import Routes
from fairpool.core.waiting import Candidate, ClassKey, Origin, Place, RequestClass, runtime_magnitude


class Queue:
    """Every queued request is in exactly one place: its class, aside as hopeless or ungoverned, or among the claimants
    (out of its class, so that the class's next member can head it)."""

    def __init__(self, routes: Routes, books: Mapping[PoolId, PoolBooks], journal: Journal) -> None:
        self._routes = routes
        self._books = books
        self._journal = journal
        self._home: dict[RequestId, RequestClass | None] = {}
        self._classes: dict[ClassKey, RequestClass] = {}
        self._waiting: dict[PoolId, dict[PolicyId, dict[RequestClass, None]]] = {}
        self._preferences: dict[tuple[PoolId, ...], dict[RequestClass, None]] = {}
        self.claimants: dict[RequestId, Request] = {}
        self.hopeless: dict[RequestId, Request] = {}  # the next decision rejects them
        self.ungoverned: dict[RequestId, Request] = {}  # the next decision starts them
        self.lapsed: dict[RequestId, tuple[Reason, ...]] = {}  # what changes of the rules took from hopeless ones (S17)

    def __len__(self) -> int:
        return len(self._home)

    def __contains__(self, request: object) -> bool:
        return request in self._home

    def __iter__(self) -> Iterator[RequestId]:
        return iter(self._home)

    def request(self, request: RequestId) -> Request:
        """A queued request. Raises UnknownObject."""
        if request not in self._home:
            raise UnknownObject("request", request)
        home = self._home[request]
        if home is not None and request in home.members:
            return home.members[request]
        for aside in (self.claimants, self.hopeless, self.ungoverned):
            if request in aside:
                return aside[request]
        raise AssertionError(f"queued request {request} is nowhere")

    def home(self, request: RequestId) -> RequestClass | None:
        """The class that a queued request belongs to; None for those aside."""
        return self._home[request]

    def classes_of(self, policy: PolicyId, pool: PoolId) -> Iterable[RequestClass]:
        """The classes with that candidate."""
        return self._waiting.get(pool, {}).get(policy, ())

    def classes_in(self, pool: PoolId) -> Mapping[PolicyId, Iterable[RequestClass]]:
        """The classes with a candidate in that pool, by its policy; some may have no members at this moment."""
        return self._waiting.get(pool, {})

    def may_wait_in(self, pool: PoolId) -> bool:
        """Whether anybody waits there, as far as can be said without looking twice: never False where somebody does."""
        return bool(pool in self._waiting or self.claimants)

    def alone_in(self, pool: PoolId) -> tuple[Request, Candidate] | None:
        """The one request that waits there and where it can be served, if no other waits there, no eviction is under
        way for anybody, and it can be served in no other way."""
        waiting = self._waiting.get(pool)
        if self.claimants or waiting is None or len(waiting) != 1:
            return None
        (classes,) = waiting.values()
        if len(classes) != 1:
            return None
        (home,) = classes
        if len(home.members) != 1 or len(home.key.candidates) != 1:
            return None
        (request,) = home.members.values()
        return request, home.key.candidates[0]

    def place_in_front(self, request: Request) -> Candidate | None:
        """Where a request that is not queued could be served, if in no other way, and nobody waits there or has an
        eviction under way for it."""
        if self.claimants:
            return None
        candidates = self._routes.find(Origin.of(request), request.demand, request.preemptible).candidates
        if len(candidates) != 1 or candidates[0].pool in self._waiting:
            return None
        return candidates[0]

    def classes(self) -> Iterable[RequestClass]:
        """All classes."""
        return self._classes.values()

    def preferences(self) -> Iterable[tuple[PoolId, ...]]:
        """The orders of preference, over more than one pool, that waiting requests have."""
        return [pools for pools, classes in self._preferences.items() if any(home.members for home in classes)]

    def add(self, request: Request) -> RequestClass | None:
        """Queue a request where the rules say. One that has lost what it waited for starts nowhere, not even
        ungoverned: deleting a policy sets nobody free."""
        origin = Origin.of(request)
        route = self._routes.find(origin, request.demand, request.preemptible)
        home: RequestClass | None = None
        is_new = False
        if route.candidates:
            key = ClassKey(route.candidates, request.demand, request.preemptible, runtime_magnitude(request))
            is_new = key not in self._classes
            home = self._class(key)
            home.origins[origin] = None
            home.add(request)
        elif route.ungoverned and request.id not in self.lapsed:
            self.ungoverned[request.id] = request
        else:
            self.hopeless[request.id] = request
        self._home[request.id] = home
        if home is not None:
            self._count(home, 1)
        if self._journal.active:
            self._journal.record(lambda: self._take_back(request.id, home if is_new else None))
        return home

    def remove(self, request_id: RequestId) -> Request:
        """Take out a request that is no claimant (any more)."""
        home = self._home[request_id]
        hopeless = request_id in self.hopeless
        request = self._take_out(request_id)
        if self._journal.active:
            self._journal.record(lambda: self._put_back(request, home, hopeless))
        elif home is not None and not home.waiting:
            self._forget(home)
        return request

    def head(self, home: RequestClass) -> Request | None:
        """The first member of a class."""
        passed: list[Place] = []
        head = home.head(passed)
        if passed and self._journal.active:
            self._journal.record(lambda: home.restore(passed))
        return head

    def set_claimant(self, request_id: RequestId) -> Request:
        """Move a request out of its class."""
        home = self._home[request_id]
        assert home is not None, "only requests with candidates have claims"
        request = self.claimants[request_id] = home.members.pop(request_id)
        if self._journal.active:
            self._journal.record(lambda: self._swap_back(request, home))
        return request

    def unset_claimant(self, request_id: RequestId) -> Request:
        """Move a claimant back into its class."""
        home = self._home[request_id]
        assert home is not None
        request = self.claimants.pop(request_id)
        home.add(request)
        if self._journal.active:
            self._journal.record(lambda: self._swap_out(request, home))
        return request

    def stale(self) -> list[Request]:
        """Requests whose route the rules have changed, those aside included; claimants are the caller's to judge."""
        found = [*self.hopeless.values(), *self.ungoverned.values()]
        for home in self._classes.values():
            if any(self._route_changed(home, origin) for origin in home.origins):
                found.extend(home.members.values())
        return found

    def _route_changed(self, home: RequestClass, origin: Origin) -> bool:
        return self._routes.find(origin, home.demand, home.preemptible).candidates != home.key.candidates

    def _take_out(self, request_id: RequestId) -> Request:
        home = self._home.pop(request_id)
        if home is not None:
            self._count(home, -1)
            return home.members.pop(request_id)
        aside = self.hopeless if request_id in self.hopeless else self.ungoverned
        return aside.pop(request_id)

    def _take_back(self, request_id: RequestId, made_for_it: RequestClass | None) -> None:
        self._take_out(request_id)
        if made_for_it is not None and not made_for_it.members:
            self._forget(made_for_it)

    def _put_back(self, request: Request, home: RequestClass | None, hopeless: bool) -> None:
        # The class still has the request's entry, or gets it back when `head` is undone.
        self._home[request.id] = home
        if home is not None:
            self._count(home, 1)
            home.members[request.id] = request
        else:
            (self.hopeless if hopeless else self.ungoverned)[request.id] = request

    def _swap_back(self, request: Request, home: RequestClass) -> None:
        del self.claimants[request.id]
        home.members[request.id] = request

    def _swap_out(self, request: Request, home: RequestClass) -> None:
        del home.members[request.id]
        self.claimants[request.id] = request

    def _count(self, home: RequestClass, sign: int) -> None:
        """One more or less waits in a class. Pools hear of the first and the last: what is typical there may change."""
        home.waiting += sign
        if home.waiting == 0 or (sign > 0 and home.waiting == 1):
            for pool in home.pools:
                if pool in self._books:
                    self._books[pool].nodes.expect(home.demand.parts, sign)

    def expect_in(self, pool: PoolId) -> None:
        """Tell a pool whose books are new of all that wait there."""
        for home in self._classes.values():
            if home.waiting and pool in home.pools:
                self._books[pool].nodes.expect(home.demand.parts, 1)

    def _class(self, key: ClassKey) -> RequestClass:
        home = self._classes.get(key)
        if home is None:
            home = self._classes[key] = RequestClass(key)
            for policy, pool in key.candidates:
                self._waiting.setdefault(pool, {}).setdefault(policy, {})[home] = None
            if len(home.pools) > 1:
                self._preferences.setdefault(home.pools, {})[home] = None
        return home

    def _forget(self, home: RequestClass) -> None:
        if self._classes.get(home.key) is home:
            del self._classes[home.key]
            for policy, pool in home.key.candidates:
                waiting = self._waiting[pool]
                del waiting[policy][home]
                if not waiting[policy]:
                    del waiting[policy]
                if not waiting:
                    del self._waiting[pool]
            if len(home.pools) > 1:
                del self._preferences[home.pools][home]

"""Which policies a request can go through, in which order, and why not through others (S13, S13b, S15, S16)."""

from __future__ import annotations

from collections.abc import Iterator

from fairpool.core.books import PoolBooks
from fairpool.core.errors import UnknownObject
from fairpool.core.feasibility import impossible
from fairpool.core.ids import PolicyId, PoolId
from fairpool.core.policies import Policy, Profile, Subject, SubjectKind
from fairpool.core.reasons import Code, Reason
from fairpool.core.requests import Demand
from fairpool.core.waiting import Candidate, Origin, Route


class Routes:
    """The rules as requests see them. Routes are remembered until the rules change."""

    def __init__(self, books: dict[PoolId, PoolBooks]) -> None:
        self._books = books
        self.policies: dict[PolicyId, Policy] = {}
        self.profiles: dict[str, Profile] = {}
        self.require_policy = False
        self._by_subject: dict[Subject, dict[PolicyId, Policy]] = {}
        self._found: dict[tuple[Origin, Demand, bool], Route] = {}

    def forget(self) -> None:
        """The rules have changed: find every route anew. For whoever changes them to call."""
        self._found.clear()

    def set_policy(self, policy: Policy) -> None:
        """A policy appears or changes."""
        self.drop_policy(policy.id)
        self.policies[policy.id] = policy
        self._by_subject.setdefault(policy.subject, {})[policy.id] = policy

    def drop_policy(self, policy: PolicyId) -> None:
        """A policy goes; nothing happens where it is not there."""
        old = self.policies.pop(policy, None)
        if old is not None:
            del self._by_subject[old.subject][policy]
            if not self._by_subject[old.subject]:
                del self._by_subject[old.subject]

    def policy(self, policy: PolicyId) -> Policy:
        """A policy. Raises UnknownObject."""
        if policy not in self.policies:
            raise UnknownObject("policy", policy)
        return self.policies[policy]

    def find(self, origin: Origin, demand: Demand, preemptible: bool) -> Route:
        """Where such requests can go."""
        key = (origin, demand, preemptible)
        route = self._found.get(key)
        if route is None:
            route = self._found[key] = self._route(origin, demand, preemptible)
        return route

    def _route(self, origin: Origin, demand: Demand, preemptible: bool) -> Route:
        candidates: list[Candidate] = []
        refusals: list[Reason] = []
        for policy, pool in sorted(self._applicable(origin), key=lambda pair: self._preference(origin, *pair)):
            books = self._books[pool]
            reason = impossible(books, books.policies[policy.id], demand, preemptible, origin.profile)
            if reason is None:
                candidates.append(Candidate(policy.id, pool))
            else:
                refusals.append(reason)
        if candidates or refusals:
            return Route(tuple(candidates), tuple(refusals), ungoverned=False)
        return Route((), (Reason(code=Code.NO_POLICY),), ungoverned=self._is_ungoverned(origin))

    def _applicable(self, origin: Origin) -> Iterator[tuple[Policy, PoolId]]:
        profile = self.profiles.get(origin.profile) if origin.profile else None
        for subject in sorted(set(origin.subjects)):
            for policy in self._by_subject.get(subject, {}).values():
                for pool in policy.pools:
                    books = self._books[pool]
                    name = books.pool.name
                    wanted = name in profile.pools if profile else not origin.profile
                    if wanted and origin.pool in ("", name) and books.admits(origin.subjects):
                        yield policy, pool

    def _preference(self, origin: Origin, policy: Policy, pool: PoolId) -> tuple[int, int, str, PolicyId, int]:
        # 1 the profile's pool order, 2 policy priority, highest first, 3 name of its first pool, 4 id, 5 its pool order
        profile, first = self.profiles.get(origin.profile), self._books[policy.pool].pool.name
        place = profile.pools.index(self._books[pool].pool.name) if profile else 0
        return (place, -policy.priority, first, policy.id, policy.pools.index(pool))

    def _is_ungoverned(self, origin: Origin) -> bool:
        """S15: it runs on a component that no policy speaks of, and asks for no pool or profile by name."""
        components = [subject for subject in origin.subjects if subject.kind is SubjectKind.COMPONENT]
        spoken_of = any(subject in self._by_subject for subject in components)
        return bool(components) and not (spoken_of or self.require_policy or origin.pool or origin.profile)

"""Whether changes of the rules can happen: judged before any of them does, so that all of them do or none."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import replace
from typing import Protocol

from fairpool.core import events as ev
from fairpool.core.books import PoolBooks
from fairpool.core.errors import InvalidInput, UnknownObject
from fairpool.core.ids import PolicyId, PoolId, RequestId
from fairpool.core.policies import Policy
from fairpool.core.promises import check_rules
from fairpool.core.requests import Request
from fairpool.core.routes import Routes


class Checked(Protocol):
    """What the checks look at of a world; `World` is the one."""

    books: dict[PoolId, PoolBooks]
    routes: Routes

    def request(self, request: RequestId) -> Request:
        """See `World`."""


def check_changes(world: Checked, events: Iterable[ev.RuleEvent]) -> None:
    """Whether the changes can happen in this order, and what they lead to goes together.

    Raises UnknownObject, InvalidInput, or InvalidRules naming the first contradiction.
    """
    draft = _Draft(world)
    for event in events:
        draft.change(event)
    draft.check()


class _Draft:
    """The rules as they would be."""

    def __init__(self, world: Checked) -> None:
        self.world = world
        self.pools = {pool: books.pool for pool, books in world.books.items()}
        self.policies = dict(world.routes.policies)
        self.profiles: dict[str, object] = dict(world.routes.profiles)
        self.changed: dict[PoolId, None] = {}  # pools whose rules are not what they were

    def change(self, event: ev.RuleEvent) -> None:
        match event:
            case ev.Redirected():
                _check_redirected(self.world.request(event.request.id), event.request)
            case ev.PoolSet():
                self.pools[event.pool.id] = event.pool
                self.changed[event.pool.id] = None
            case ev.PoolDropped():
                _known("pool", event.pool, self.pools)
                del self.pools[event.pool]
                for policy in [each for each in self.policies.values() if event.pool in each.pools]:
                    self._set(policy.id, policy.without(event.pool))
            case ev.BorrowersEvicted():
                _known("pool", event.pool, self.pools)
            case ev.PolicySet():
                for pool in event.policy.pools:
                    _known("pool", pool, self.pools)
                self._set(event.policy.id, event.policy)
            case ev.PolicyDropped():
                _known("policy", event.policy, self.policies)
                del self.policies[event.policy]
            case ev.ProfileSet():
                self.profiles[event.profile.name] = event.profile
            case ev.ProfileDropped():
                _known("profile", event.name, self.profiles)
                del self.profiles[event.name]
            case ev.SettingsChanged():
                pass

    def _set(self, key: PolicyId, policy: Policy | None) -> None:
        self.policies.pop(key, None)  # one that changes is checked after the others
        if policy is not None:
            self.policies[key] = policy
            self.changed.update(dict.fromkeys(policy.pools))

    def check(self) -> None:
        changed = [pool for pool in self.changed if pool in self.pools]
        if changed:
            check_rules(self.pools, self.policies.values(), changed)


def _known(kind: str, name: str, there: Container[object]) -> None:
    if name not in there:
        raise UnknownObject(kind, name)


def _check_redirected(old: Request, new: Request) -> None:
    if replace(new, subjects=old.subjects, profile=old.profile, pool=old.pool) != old:
        raise InvalidInput(
            f"request {old.id!r} would become another one",
            field="request",
            value=old.id,
            possible="other subjects, another profile or pool name",
        )

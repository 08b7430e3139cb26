"""Which pools, policies and profiles concern somebody: those through which they may ask for something. Pure.

Whoever may read everything is concerned by everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from fairpool.app.authz import Reach
from fairpool.app.errors import Ambiguous, NotFound
from fairpool.app.memory import Memory
from fairpool.app.ports import Reader
from fairpool.app.records import AnyDeclared, Kind, RequestRecord
from fairpool.app.use_cases.declaring import nearest
from fairpool.core.policies import Policy, Profile, SubjectKind
from fairpool.core.pools import Pool
from fairpool.core.waiting import Origin
from fairpool.server import redaction

Object = TypeVar("Object", bound=AnyDeclared)


class Concerns:
    """What concerns one caller. declared: all objects of a kind."""

    def __init__(self, declared: Callable[[Kind], Sequence[AnyDeclared]], reach: Reach) -> None:
        self._reach = reach
        specs = [] if reach.owner is None else [each.spec for each in declared(Kind.POLICY)]
        mine = [spec for spec in specs if isinstance(spec, Policy) and self._may_ask(spec)]
        ids = {pool for policy in mine for pool in policy.pools}
        pools = [] if reach.owner is None else [each.spec for each in declared(Kind.POOL)]
        self._pools = {pool.id: pool.name for pool in pools if isinstance(pool, Pool) and pool.id in ids}
        self._offers = [
            (self._pools[pool], policy.profiles) for policy in mine for pool in policy.pools if pool in self._pools
        ]

    def _may_ask(self, policy: Policy) -> bool:
        """Whether the caller may ask through the policy. Anybody may run on any component."""
        return policy.subject.kind is SubjectKind.COMPONENT or self._reach.principal.is_one_of(policy.subject)

    def include(self, record: AnyDeclared) -> bool:
        """Whether a pool, policy or profile concerns the caller. Of a pool that does, the policies of all teams do:
        they are what one's own wait comes from."""
        spec = record.spec
        if self._reach.owner is None:
            return True
        if isinstance(spec, Pool):
            return spec.id in self._pools
        if isinstance(spec, Policy):
            return any(pool in self._pools for pool in spec.pools) and redaction.may_name(spec.subject, self._reach)
        if isinstance(spec, Profile):
            return any(pool in spec.pools and _offered(spec.name, names) for pool, names in self._offers)
        return False

    def explain(self, memory: Memory, record: RequestRecord) -> bool:
        """Whether a request may be why one of the caller's waits: it holds something in a pool that concerns them, or
        waits for one. Of those in the same memory."""
        if self._reach.owner is None:
            return True
        grant, asked = record.state.grant, record.request
        if grant is not None:
            return grant.pool in self._pools
        route = memory.world.routes.find(Origin.of(asked), asked.demand, asked.preemptible)
        return any(candidate.pool in self._pools for candidate in route.candidates)

    def chosen(self, records: Iterable[Object]) -> list[Object]:
        """Those of these that concern the caller."""
        return [record for record in records if self.include(record)]


def known(reader: Reader, kind: Kind, ref: str, reach: Reach) -> AnyDeclared:
    """As `found`, of what is committed; from any thread."""
    concerning = Concerns(reader.declared.all, reach)
    matches = concerning.chosen(reader.declared.match(kind, ref))
    if not matches:
        names = [each.name for each in concerning.chosen(reader.declared.all(kind))]
        raise NotFound(kind.value, ref, candidates=nearest(ref, names))
    if len(matches) > 1:
        raise Ambiguous(kind.value, ref, candidates=[f"{match.id} ({match.name})" for match in matches])
    return matches[0]


def discreet(reader: Reader, error: NotFound | Ambiguous, reach: Reach) -> NotFound | Ambiguous:
    """The same refusal with those candidates only that the caller may know of."""
    if reach.owner is None or error.kind not in _HIDDEN:
        return error
    seen: Sequence[AnyDeclared] = ()
    if error.kind in _RULES:
        seen = Concerns(reader.declared.all, reach).chosen(reader.declared.all(Kind(error.kind)))
    return NotFound(error.kind, error.ref, candidates=nearest(error.ref, [each.name for each in seen]))


_RULES: Final = frozenset({Kind.POOL.value, Kind.POLICY.value, Kind.PROFILE.value})
_HIDDEN: Final = _RULES | {Kind.VAULT.value, Kind.TEAM.value, Kind.USER.value, Kind.SERVICE_ACCOUNT.value}
"""Kinds of which not everything is for everybody."""


def _offered(profile: str, names: tuple[str, ...] | None) -> bool:
    return names is None or profile in names


def chosen(memory: Memory, kind: Kind, reach: Reach) -> list[AnyDeclared]:
    """All pools, policies or profiles that concern the caller, by name."""
    return Concerns(memory.all, reach).chosen(memory.all(kind))


def found(memory: Memory, kind: Kind, ref: str, reach: Reach) -> AnyDeclared:
    """The pool, policy or profile that `ref` means. Raises NotFound, Ambiguous; NotFound too where it does not concern
    the caller, who learns no other name from that either."""
    if reach.owner is None:
        return memory.find(kind, ref)
    concerning = chosen(memory, kind, reach)
    try:
        record = memory.find(kind, ref)
    except (NotFound, Ambiguous):
        record = None
    if record is None or record not in concerning:
        raise NotFound(kind.value, ref, candidates=nearest(ref, [each.name for each in concerning]))
    return record

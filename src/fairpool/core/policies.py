"""Rights: who may use which pool, and what can be asked for by name (S11 to S14, section 1)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from fairpool.core.amounts import WHOLE, Amounts, get, show
from fairpool.core.errors import InvalidInput, InvalidRules
from fairpool.core.ids import PolicyId, PoolId, ProfileId, check_name
from fairpool.core.pools import Pool, nominal_capacity

DEFAULT_GRACE_S = 30  # S31


class SubjectKind(StrEnum):
    """Of whom a policy can speak."""

    COMPONENT = "component"
    TEAM = "team"
    USER = "user"
    SERVICE_ACCOUNT = "service-account"


@dataclass(frozen=True, slots=True, order=True)
class Subject:
    """Of whom a policy speaks, and as whom a request is made; written ``team:vision``."""

    kind: SubjectKind
    name: str
    _hash: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.kind.value, self.name)))

    def __hash__(self) -> int:
        return self._hash  # asked for at every submission, and an enum's own hash is slow

    def __str__(self) -> str:
        return f"{self.kind.value}:{self.name}"

    @classmethod
    def parse(cls, text: str) -> Subject:
        """The subject that `text` names; ``component:`` may be left off.

        Raises InvalidInput for an unknown kind, InvalidName for a name that may not be.
        """
        kind, colon, name = text.partition(":")
        if not colon:
            kind, name = SubjectKind.COMPONENT.value, text
        kinds = [known.value for known in SubjectKind]
        if kind not in kinds:
            raise InvalidInput(f"{kind!r} is no kind of subject", value=text, possible=", ".join(kinds))
        return cls(SubjectKind(kind), check_name(name, what=f"{kind} name"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Binds one subject to one pool.

    reserved, limit: per key; a key left out has nothing reserved and no limit but the pool's capacity (S12).
    weight: thousandths; how much of the surplus this policy deserves beside its equals (S23, criterion 5).
    dedicated: the unused reservation stays idle for its owner (S14).
    grace_s: how long an evicted allocation of this policy has to let go (S31).
    min_runtime_s: how long an allocation of this policy runs before it may be evicted (S30).
    profiles: the profiles it offers by name; None offers all.
    """

    id: PolicyId
    pool: PoolId
    subject: Subject
    priority: int = 0
    reserved: Amounts = ()
    limit: tuple[tuple[str, int], ...] = ()  # unlike other vectors it keeps zeros: a limit of 0 forbids
    weight: int = WHOLE
    dedicated: bool = False
    grace_s: int = DEFAULT_GRACE_S
    min_runtime_s: int = 0
    profiles: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("grace_s", "min_runtime_s"):
            if getattr(self, name) < 0:
                raise InvalidRules(f"{name} may not be negative", field=name, value=str(getattr(self, name)))
        if self.weight <= 0:
            raise InvalidRules("weight must be above 0", field="weight", value=show(self.weight))


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A named demand with the pools it may run in, in order of preference (by pool name)."""

    id: ProfileId
    name: str
    demand: Amounts
    pools: tuple[str, ...]

    def __post_init__(self) -> None:
        check_name(self.name, what="profile name")


def check_rules(pool: Pool, policies: Iterable[Policy]) -> None:
    """Whether the pool and all of its policies go together (S11, S13).

    Raises InvalidRules naming the first contradiction: the field, the value, and what is possible.
    """
    capacity = nominal_capacity(pool)
    known = {key for key, _ in capacity}
    promised: dict[str, int] = {}
    seen: set[Subject] = set()
    for policy in policies:
        if policy.subject in seen:
            raise InvalidRules(
                f"{policy.subject} already has a policy on pool {pool.name!r}",
                field="subject",
                value=str(policy.subject),
                possible="one policy per subject and pool: update that one",
            )
        seen.add(policy.subject)
        _check_policy(pool, policy, known, capacity)
        for key, value in policy.reserved:
            promised[key] = promised.get(key, 0) + value
    for key, value in sorted(promised.items()):
        if value > get(capacity, key):
            holders = ", ".join(f"{p.subject} {show(get(p.reserved, key))}" for p in policies if get(p.reserved, key))
            raise InvalidRules(
                f"reservations of {key!r} on pool {pool.name!r} add up to {show(value)} ({holders}), "
                f"its capacity is {show(get(capacity, key))}",
                field=f"reserved.{key}",
                value=show(value),
                possible=f"at most {show(get(capacity, key))} in all",
            )


def _check_policy(pool: Pool, policy: Policy, known: set[str], capacity: Amounts) -> None:
    limits = dict(policy.limit)
    for name, amounts in (("reserved", policy.reserved), ("limit", policy.limit)):
        for key, value in amounts:
            if key not in known:
                raise InvalidRules(
                    f"pool {pool.name!r} has no {key!r}",
                    field=f"{name}.{key}",
                    value=key,
                    possible=", ".join(sorted(known)) or "nothing: the pool is empty",
                )
            if value > get(capacity, key):
                raise InvalidRules(
                    f"{name} {show(value)} of {key!r} for {policy.subject} is over the capacity "
                    f"{show(get(capacity, key))} of pool {pool.name!r}",
                    field=f"{name}.{key}",
                    value=show(value),
                    possible=f"at most {show(get(capacity, key))}",
                )
    for key, value in policy.reserved:
        if value > limits.get(key, value):
            raise InvalidRules(
                f"reserved {show(value)} of {key!r} for {policy.subject} is over its limit {show(limits[key])}",
                field=f"reserved.{key}",
                value=show(value),
                possible=f"at most {show(limits[key])}",
            )

"""Rights: who may use which pool, and what can be asked for by name (S11 to S14, section 1)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

from fairpool.core.amounts import WHOLE, Amounts, get, show
from fairpool.core.errors import InvalidInput, InvalidRules
from fairpool.core.ids import Instant, PolicyId, PoolId, ProfileId, check_name

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
class Possible:
    """What a policy whose numbers change with time allows at some time or other.

    reserved, limit: the largest of each key in any of its windows; a key that `limit` leaves out has no limit in one.
    opens_at: when its numbers change next, where that is known.

    It decides only whether a request waits or can never run (S16); what may start follows from the policy's numbers
    of the moment. Whoever knows the windows sets the policy anew at each edge.
    """

    reserved: Amounts = ()
    limit: tuple[tuple[str, int], ...] = ()
    opens_at: Instant | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Binds one subject to one pool, or to several together.

    pool, also: its pools in its own order of preference. `reserved`, `limit` and shares count over all of them.
    reserved, limit: per key; a key left out has nothing reserved and no limit but the pools' capacity (S12).
    weight: thousandths; how much of the surplus this policy deserves beside its equals (S23, criterion 5).
    dedicated: the unused reservation stays idle for its owner (S14).
    grace_s: how long an evicted allocation of this policy has to let go (S31).
    min_runtime_s: how long an allocation of this policy runs before it may be evicted (S30).
    profiles: the profiles it offers by name; None offers all.
    possible: what it allows at other times than now; None where it is always the same.
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
    also: tuple[PoolId, ...] = ()
    possible: Possible | None = None

    @property
    def pools(self) -> tuple[PoolId, ...]:
        """All of its pools, the most preferred first."""
        return (self.pool, *self.also)

    def most_reserved(self, key: str) -> int:
        """The most that is reserved of a key at any time."""
        now = get(self.reserved, key)
        return now if self.possible is None else max(now, get(self.possible.reserved, key))

    def most_allowed(self, key: str) -> int | None:
        """The largest limit on a key at any time; None where there is none at some time."""
        now = dict(self.limit).get(key)
        if now is None or self.possible is None:
            return now
        other = dict(self.possible.limit).get(key)
        return None if other is None else max(now, other)

    def without(self, pool: PoolId) -> Policy | None:
        """The policy with that pool taken out of its pools; None where it has no other."""
        left = [each for each in self.pools if each != pool]
        return replace(self, pool=left[0], also=tuple(left[1:])) if left else None

    def __post_init__(self) -> None:
        if len(set(self.pools)) != len(self.pools):
            twice = sorted({pool for pool in self.pools if self.pools.count(pool) > 1})
            raise InvalidRules(f"pool {twice[0]!r} is named twice", field="pools", value=twice[0])
        if self.dedicated and self.also:
            raise InvalidRules(
                "a dedicated reservation on several pools would not say in which of them its unused part stays idle",
                field="dedicated",
                value="true",
                possible="one pool, or one policy per pool",
            )
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

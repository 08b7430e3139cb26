"""Which policies can offer which profiles: one whose demand is above a policy's limit cannot be offered by it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, cast

from fairpool.app import schedules
from fairpool.app.memory import Memory
from fairpool.app.records import Declared, Kind
from fairpool.app.use_cases.demands import demand_of
from fairpool.core.amounts import get, show
from fairpool.core.errors import InvalidRules
from fairpool.core.policies import Policy, Profile


class Excess(NamedTuple):
    """A key of which a profile asks for more than the most that a policy ever allows."""

    key: str
    asked: int
    limit: int


def excess(profile: Profile, limits: Iterable[tuple[tuple[str, int], ...]]) -> Excess | None:
    """The first key by which the profile is above every one of a policy's limits; None where one of them has room.

    limits: those that the policy has at one time or another.
    """
    found: Excess | None = None
    for limit in limits:
        stated = dict(limit)
        over = [
            Excess(key, value, stated[key]) for key, value in demand_of(profile).total if value > stated.get(key, value)
        ]
        if not over:
            return None
        found = found or over[0]
    return found


def check_offers(memory: Memory, policy: Policy, limits: Iterable[tuple[tuple[str, int], ...]]) -> None:
    """Raise InvalidRules where the policy names a profile that it could not offer."""
    limits = tuple(limits)
    for name in policy.profiles or ():
        declared = memory.named(Kind.PROFILE, name)
        over = excess(cast("Declared[Profile]", declared).spec, limits) if declared is not None else None
        if over is not None:
            raise InvalidRules(
                f"profile {name!r} asks for {show(over.asked)} of {over.key!r}, and the limit of {policy.subject} is "
                f"{show(over.limit)}",
                field="profiles",
                value=name,
                possible=f"a limit of {show(over.asked)} or more, or leave the profile out",
            )


def policies_naming(memory: Memory, profile: str) -> list[Declared[Policy]]:
    """The policies that name this profile, by name."""
    policies = (cast("Declared[Policy]", declared) for declared in memory.all(Kind.POLICY))
    return [policy for policy in policies if profile in (policy.spec.profiles or ())]


def check_offerers(memory: Memory, profile: Profile, *, known_as: str) -> None:
    """Raise InvalidRules where a policy names the profile, as it is known so far, and could not offer it."""
    for policy in policies_naming(memory, known_as):
        over = excess(profile, limits_of(policy))
        if over is not None:
            raise InvalidRules(
                f"policy {policy.name} offers profile {profile.name!r}, and its limit of {over.key!r} is "
                f"{show(over.limit)}",
                field=f"demand.{over.key}",
                value=show(get(profile.demand, over.key)),
                possible=f"at most {show(over.limit)}, or change the policy first",
            )


def limits_of(policy: Declared[Policy]) -> tuple[tuple[tuple[str, int], ...], ...]:
    """The limits that a policy has at one time or another."""
    return tuple(version.limit for version in schedules.scheduled(policy).versions)

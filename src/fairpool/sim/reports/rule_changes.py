"""What differs between two sets of rules, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import cast

from fairpool.app.ports import Stored
from fairpool.app.records import Declared, Kind
from fairpool.app.schedules import Window, windows_in
from fairpool.core.amounts import show
from fairpool.core.policies import Policy, Profile
from fairpool.core.pools import Pool, nominal_capacity
from fairpool.sim.reports.parties import called

Said = Mapping[str, str]
"""What an object says, by what that is called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleChange:
    """One thing that differs.

    team: whose policy it is about; profile: which; "" for anything else. pools: which it touches, by name.
    """

    sentence: str
    team: str = ""
    pools: frozenset[str] = frozenset()
    profile: str = ""


def rule_changes(first: Stored, second: Stored) -> list[RuleChange]:
    """Everything that differs, pools first, then policies and profiles, each by name."""
    found = [*_pools(first, second), *_policies(first, second), *_profiles(first, second)]
    if first.snapshot.require_policy != second.snapshot.require_policy:
        needed = "needs a policy now" if second.snapshot.require_policy else "needs no policy any more"
        found.append(RuleChange(sentence=f"work {needed}"))
    return found


def _pools(first: Stored, second: Stored) -> Iterator[RuleChange]:
    before = {pool.name: pool for pool in first.snapshot.pools}
    after = {pool.name: pool for pool in second.snapshot.pools}
    for name in sorted({*before, *after}):
        said = _compared(_of_pool(before.get(name)), _of_pool(after.get(name)))
        for sentence in said:
            yield RuleChange(sentence=f"pool {name}: {sentence}", pools=frozenset((name,)))


def _policies(first: Stored, second: Stored) -> Iterator[RuleChange]:
    before, after = _by_subject(first), _by_subject(second)
    for key in sorted({*before, *after}):
        team, pools = key
        for sentence in _compared(before.get(key, {}), after.get(key, {})):
            what = f"policy of {team} on {' + '.join(pools)}: {sentence}"
            yield RuleChange(sentence=what, team=team, pools=frozenset(pools))


def _profiles(first: Stored, second: Stored) -> Iterator[RuleChange]:
    before, after = ({p.name: _of_profile(p) for p in rules.snapshot.profiles} for rules in (first, second))
    for name in sorted({*before, *after}):
        for sentence in _compared(before.get(name, {}), after.get(name, {})):
            yield RuleChange(sentence=f"profile {name}: {sentence}", profile=name)


def _compared(before: Said, after: Said) -> Iterator[str]:
    """One sentence for each thing that differs; one for an object that is new or gone."""
    if not after:
        yield f"is gone ({_listed(before)})"
    elif not before:
        yield f"is new ({_listed(after)})"
    else:
        for name, said in after.items():
            if said != before[name]:
                yield f"{name} {said} instead of {before[name]}"


def _listed(said: Said) -> str:
    return ", ".join(f"{name} {value}" for name, value in said.items() if value not in _QUIET)


_QUIET = ("nothing", "none", "no")


def _of_pool(pool: Pool | None) -> Said:
    if pool is None:
        return {}
    return {
        "capacity": _vector(nominal_capacity(pool)),
        "nodes": str(len(pool.nodes) or "none"),
        "layout": _layout(pool),
        "ordering": pool.ordering.value,
        "backfill": "yes" if pool.backfill else "no",
        "placement": pool.placement.value,
        "max_bypass": f"{pool.max_bypass_s} s",
        "state": pool.state.value,
        "components": ", ".join(sorted(pool.components)) or "any",
    }


def _layout(pool: Pool) -> str:
    """What its nodes are like: how many of which size that take work."""
    sizes: dict[str, int] = {}
    for node in pool.nodes:
        size = f"{_vector(node.capacity)} ({node.state.value})"
        sizes[size] = sizes.get(size, 0) + 1
    return ", ".join(f"{count} × {size}" for size, count in sorted(sizes.items())) or "none"


def _by_subject(rules: Stored) -> dict[tuple[str, tuple[str, ...]], Said]:
    names = {pool.id: pool.name for pool in rules.snapshot.pools}
    schedules = {one.id: _schedule(cast("Declared[Policy]", one)) for one in rules.declared if one.kind is Kind.POLICY}
    return {
        (called(policy.subject), tuple(names[pool] for pool in policy.pools)): {
            "reserved": _vector(policy.reserved),
            "limit": _vector(policy.limit, zeros=True),
            "priority": str(policy.priority),
            "weight": show(policy.weight),
            "dedicated": "yes" if policy.dedicated else "no",
            "grace": f"{policy.grace_s} s",
            "min_runtime": f"{policy.min_runtime_s} s",
            "profiles": "all" if policy.profiles is None else ", ".join(policy.profiles) or "none",
            "schedule": schedules.get(policy.id, "none"),
        }
        for policy in rules.snapshot.policies
    }


def _schedule(declared: Declared[Policy]) -> str:
    return "; ".join(map(_window, windows_in(declared.note))) or "none"


def _window(window: Window) -> str:
    told = [
        f"{field.name} {_value(field.name, value)}"
        for field in fields(window)
        if field.name not in ("start", "duration_s", "timezone") and (value := getattr(window, field.name)) is not None
    ]
    return f"{window}: {', '.join(told)}"


def _value(name: str, value: object) -> str:
    if isinstance(value, tuple):
        return _vector(value, zeros=True)
    return show(cast("int", value)) if name == "weight" else str(value)


def _of_profile(profile: Profile) -> Said:
    return {"demand": _vector(profile.demand), "pools": ", ".join(profile.pools) or "none"}


def _vector(amounts: tuple[tuple[str, int], ...], *, zeros: bool = False) -> str:
    told = [f"{show(value)} {key}" for key, value in amounts if value or zeros]
    return ", ".join(told) or ("none" if zeros else "nothing")

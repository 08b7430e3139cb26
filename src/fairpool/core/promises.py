"""What pools and policies promise together (S11, S13): no policy alone, and no policies together, more than there is.

A policy over several pools may be served in any of them. So the reservations of the policies that lie wholly inside a
set of pools may not exceed what the set has, whichever set one takes. All sets at once are checked by pouring every
reservation into its pools: when one does not go in, however the others are moved, the pools that were reached are full
of reservations that can go nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

from fairpool.core.amounts import Amounts, get, show, total
from fairpool.core.errors import InvalidRules
from fairpool.core.ids import PoolId
from fairpool.core.policies import Policy, Subject
from fairpool.core.pools import NodeState, Pool, healthy_capacity, nominal_capacity

Span = frozenset[PoolId]


def check_rules(pools: Mapping[PoolId, Pool], policies: Iterable[Policy], changed: Iterable[PoolId]) -> None:
    """Whether the pools and policies go together, as far as the changed pools are concerned (S11, S13).

    Raises InvalidRules naming the first contradiction: the field, the value, and what is possible.
    """
    policies = list(policies)
    around = _reached(changed, policies)
    checked: set[str] = set()
    for pool in changed:
        seen: set[Subject] = set()
        for policy in [each for each in policies if pool in each.pools]:
            if policy.subject in seen:
                raise InvalidRules(
                    f"{policy.subject} already has a policy on pool {pools[pool].name!r}",
                    field="subject",
                    value=str(policy.subject),
                    possible="one policy per subject and pool: update that one",
                )
            seen.add(policy.subject)
            if policy.id not in checked:
                checked.add(policy.id)
                _check_policy([pools[each] for each in policy.pools], policy)
    there = [policy for policy in policies if not around.isdisjoint(policy.pools)]
    capacity = {pool: nominal_capacity(pools[pool]) for pool in sorted(around)}
    for key in sorted({key for policy in there for key, _ in policy.reserved}):
        for short in shortfalls({pool: get(each, key) for pool, each in capacity.items()}, _reserved(there, key)):
            raise _overpromised([pools[pool] for pool in sorted(short)], there, key)


def _reached(changed: Iterable[PoolId], policies: list[Policy]) -> set[PoolId]:
    """The changed pools, and those that policies join to them."""
    around, spans = set(changed), [set(policy.pools) for policy in policies]
    while more := [span for span in spans if not span.isdisjoint(around) and not span <= around]:
        around.update(*more)
    return around


def _check_policy(pools: list[Pool], policy: Policy) -> None:
    capacity, limits = total(nominal_capacity(pool) for pool in pools), dict(policy.limit)
    known = {key for pool in pools for key, _ in nominal_capacity(pool)}
    where = _named(pools)
    other = (("reserved", policy.possible.reserved), ("limit", policy.possible.limit)) if policy.possible else ()
    for name, amounts in (("reserved", policy.reserved), ("limit", policy.limit), *other):
        for key, value in amounts:
            if key not in known:
                raise InvalidRules(
                    f"{where} {'has' if len(pools) == 1 else 'have'} no {key!r}",
                    field=f"{name}.{key}",
                    value=key,
                    possible=", ".join(sorted(known)) or "nothing: the pool is empty",
                )
            if value > get(capacity, key):
                raise InvalidRules(
                    f"{name} {show(value)} of {key!r} for {policy.subject} is over the capacity "
                    f"{show(get(capacity, key))} of {where}",
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


def _named(pools: list[Pool]) -> str:
    if len(pools) == 1:
        return f"pool {pools[0].name!r}"
    return f"pools {', '.join(repr(pool.name) for pool in pools)} together"


def _overpromised(pools: list[Pool], policies: list[Policy], key: str) -> InvalidRules:
    inside = {pool.id for pool in pools}
    holders = [policy for policy in policies if get(policy.reserved, key) and inside.issuperset(policy.pools)]
    promised = sum(get(policy.reserved, key) for policy in holders)
    capacity = get(total(nominal_capacity(pool) for pool in pools), key)
    told = ", ".join(f"{policy.subject} {show(get(policy.reserved, key))}" for policy in holders)
    return InvalidRules(
        f"reservations of {key!r} on {_named(pools)} add up to {show(promised)} ({told}), "
        f"{'its' if len(pools) == 1 else 'their'} capacity is {show(capacity)}",
        field=f"reserved.{key}",
        value=show(promised),
        possible=f"at most {show(capacity)} in all",
    )


def _reserved(policies: Iterable[Policy], key: str) -> dict[Span, int]:
    """What is reserved of a key, by the pools in which it may be served."""
    found: dict[Span, int] = {}
    for policy in policies:
        if value := get(policy.reserved, key):
            span = frozenset(policy.pools)
            found[span] = found.get(span, 0) + value
    return found


def shortfalls(capacity: Mapping[PoolId, int], reserved: Mapping[Span, int]) -> Iterator[Span]:
    """Sets of pools that have less than the reservations that lie wholly inside them; none where all can be kept."""
    room, spans = dict(capacity), dict(reserved)
    while spans:
        short = _pour(room, spans)
        if short is None:
            return
        yield short
        room = {pool: value for pool, value in capacity.items() if pool in room and pool not in short}
        spans = {}
        for span, value in reserved.items():
            if left := span.intersection(room):
                spans[left] = spans.get(left, 0) + value


def _pour(capacity: Mapping[PoolId, int], reserved: Mapping[Span, int]) -> Span | None:
    """Pour the reservations into their pools, those with least choice first; the full pools where one does not fit."""
    room = dict(capacity)
    placed: dict[PoolId, dict[Span, int]] = {pool: {} for pool in capacity}
    for span in sorted(reserved, key=lambda span: (len(span), sorted(span))):
        left = reserved[span]
        while left:
            way = _way_to_room(span, room, placed)
            if isinstance(way, frozenset):
                return way
            left -= _move(way, left, room, placed)
    return None


Way = list[tuple[Span, PoolId]]
"""Whose reservation goes where: the last into a pool with room, each other into the place that the next one leaves."""


def _way_to_room(span: Span, room: dict[PoolId, int], placed: dict[PoolId, dict[Span, int]]) -> Way | Span:
    """The shortest way, or the pools that were reached where there is none."""
    ways: dict[PoolId, Way] = {pool: [(span, pool)] for pool in sorted(span)}
    queue = list(ways)
    for pool in queue:
        if room[pool] > 0:
            return ways[pool]
        for other in placed[pool]:
            for target in sorted(other.difference(ways)):
                ways[target] = [*ways[pool], (other, target)]
                queue.append(target)
    return frozenset(ways)


def _move(way: Way, wanted: int, room: dict[PoolId, int], placed: dict[PoolId, dict[Span, int]]) -> int:
    moved = min(wanted, room[way[-1][1]])
    for (_, leaves), (other, _) in pairwise(way):
        moved = min(moved, placed[leaves][other])
    for (_, leaves), (other, _) in pairwise(way):
        placed[leaves][other] -= moved
        if not placed[leaves][other]:
            del placed[leaves][other]
    for span, pool in way:
        placed[pool][span] = placed[pool].get(span, 0) + moved
    room[way[-1][1]] -= moved
    return moved


def degraded(pools: Mapping[PoolId, Pool], policies: Iterable[Policy]) -> Span:
    """The pools with failing nodes that have less than is promised because of them (S6)."""
    ailing = {pool for pool, each in pools.items() if any(node.state is not NodeState.READY for node in each.nodes)}
    if not ailing:
        return frozenset()
    policies = list(policies)
    healthy: dict[PoolId, Amounts] = {pool: healthy_capacity(each) for pool, each in pools.items()}
    short: set[PoolId] = set()
    for key in {key for policy in policies for key, _ in policy.reserved}:
        amounts = {pool: get(each, key) for pool, each in healthy.items()}
        short.update(*shortfalls(amounts, _reserved(policies, key)))
    return frozenset(short & ailing)

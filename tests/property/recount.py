"""The books of a world, counted anew as plainly as possible from its rules, allocations and claims (S19, S31)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from fairpool.core.accounts import PolicyBooks
from fairpool.core.books import PoolBooks
from fairpool.core.ids import SECOND, PoolId
from fairpool.core.pools import NodeState
from fairpool.core.requests import Allocation, PartPlacement, Request
from fairpool.core.world import World

Lying = tuple[PoolId | None, str | None, Request, tuple[PartPlacement, ...]]  # pool, policy, whose, where
Devices = dict[int, tuple[int, int]]


def differences(world: World) -> list[str]:
    """What the books of a world say otherwise than a recount does."""
    return [
        f"{where}: the books say {said}, recounted {counted}"
        for where, said, counted in _all_of(world)
        if _without_zeros(said) != _without_zeros(counted)
    ]


def _without_zeros(value: object) -> object:
    return {key: each for key, each in value.items() if each} if isinstance(value, dict) else value


def _all_of(world: World) -> Iterator[tuple[str, object, object]]:
    claimants = Counter(world.queue.home(request) for request in world.queue.claimants)
    for home in world.queue.classes():
        yield f"waiting in {home.key}", home.waiting, len(home.members) + claimants[home]
    for pool, books in world.books.items():
        now = [_lying(held) for held in world.allocations.values()]
        after = [_lying(held) for held in world.allocations.values() if held.eviction is None]
        after += [
            (claim.pool, claim.policy, world.request(claim.request), claim.parts) for claim in world.claims.values()
        ]
        yield f"{pool} free now", books.free_now, _free(books, [each for each in now if each[0] == pool])
        yield f"{pool} free after", books.free_after, _free(books, [each for each in after if each[0] == pool])
        held = [each for each in world.allocations.values() if each.pool == pool]
        yield f"{pool} leaving", books.leaving, sum(each.eviction is not None for each in held)
        yield f"{pool} ends", books.ends, _ends(held)
        yield from _nodes(books, [each for each in now if each[0] == pool], [each for each in after if each[0] == pool])
        yield f"{pool} typical", *_kinds(world, books)
        for policy in books.policies.values():
            for name, said, counted in _policy(world, policy, now, after):
                yield f"{policy.policy.id} in {pool}, {name}", said, counted


def _lying(held: Allocation) -> Lying:
    return (held.pool, held.policy, held.request, held.parts)


def _free(books: PoolBooks, lying: list[Lying]) -> dict[str, int]:
    """Of a key that nodes have, what lies on healthy nodes counts; of others, everything."""
    pool = books.pool
    healthy = {node.name for node in pool.nodes if node.state is NodeState.READY}
    of_nodes = {key for node in pool.nodes for key, _ in node.capacity}
    free = Counter(dict(pool.capacity))
    for node in pool.nodes:
        free.update(dict(node.capacity) if node.name in healthy else dict.fromkeys(dict(node.capacity), 0))
    for _, _, request, places in lying:
        for place, part in zip(places, request.demand.parts, strict=True):
            for key, value in part:
                if key in free and (key not in of_nodes or place.node in healthy):
                    free[key] -= value
    return dict(free)


def _ends(held: Iterable[Allocation]) -> dict[str, int]:
    return {
        each.request.id: each.granted_at + each.request.max_runtime_s * SECOND
        for each in held
        if each.request.max_runtime_s is not None
    }


def _nodes(books: PoolBooks, now: list[Lying], after: list[Lying]) -> Iterator[tuple[str, object, object]]:
    for node in books.nodes.nodes:
        of_now, of_after = _on_node(node.name, now), _on_node(node.name, after)
        where = f"{books.pool.id}, node {node.name!r}"
        capacity = {each.name: dict(each.capacity) for each in books.pool.nodes}.get(node.name, {})
        yield f"{where} now", node.free_now, {key: value - of_now[0][key] for key, value in capacity.items()}
        yield f"{where} after", node.free_after, {key: value - of_after[0][key] for key, value in capacity.items()}
        used = {at: (of_now[1][at], of_after[1][at]) for at in of_now[1] | of_after[1]}
        yield f"{where} devices", node.devices.in_use(), used
        there = range(node.devices.total)
        yield f"{where} free devices", node.devices.free, sum(at not in used for at in there)
        yield f"{where} devices free after", node.devices.free_after, sum(not of_after[1][at] for at in there)


def _kinds(world: World, books: PoolBooks) -> tuple[object, object]:
    """What the placement reckons with: of what runs every part, of what waits the parts of each class once."""
    found = books.nodes._defragmentation
    if found is None:
        return {}, {}
    held = [each.request.demand for each in world.allocations.values() if each.pool == books.pool.id]
    waiting = [home.demand for home in world.queue.classes() if books.pool.id in home.pools and home.waiting]
    parts = [part for demand in (*held, *waiting) for part in demand.parts]
    there = [tuple(pair for pair in part if pair[0] in books.nodes.keys) for part in parts]
    return found._typical._counts, Counter(part for part in there if dict(part).get("gpu"))


def _on_node(name: str, lying: list[Lying]) -> tuple[Counter[str], Counter[int]]:
    keys, devices = Counter[str](), Counter[int]()
    for _, _, request, places in lying:
        for place, part in zip(places, request.demand.parts, strict=True):
            if place.node == name:
                keys.update(dict(part))
                devices.update(dict(place.devices))
    return keys, devices


def _policy(
    world: World, books: PolicyBooks, now: list[Lying], after: list[Lying]
) -> Iterator[tuple[str, object, object]]:
    """An account covers the policy's pools; of a policy that is gone, one pool each."""
    pools = books.account.bounded_in
    id_ = books.policy.id
    theirs = [held for held in world.allocations.values() if held.policy == id_ and held.pool in pools]
    for name, lying in (("now", now), ("after", after)):
        mine = [each for each in lying if each[1] == id_ and each[0] in pools]
        firm = [each for each in mine if not each[2].preemptible]
        yield f"used {name}", getattr(books, f"used_{name}"), _sum(mine)
        if len(pools) > 1:
            yield f"metered {name}", getattr(books, f"metered_{name}"), _sum(mine, pools)
        yield f"firm {name}", getattr(books, f"firm_{name}"), _sum(firm, pools)
    yield "here", books.here, _sum([each for each in now if each[1] == id_ and each[0] == books.pool])
    in_order = sorted(theirs, key=lambda held: (held.request.preemptible, -held.request.priority, held.sequence))
    yield "precedence", books.by_precedence, in_order
    yield "leaving", books.account.leaving, sum(held.eviction is not None for held in theirs)
    staying = [held.request for held in theirs if held.eviction is None and held.pool == books.pool]
    yield "priorities", books.priorities, Counter(request.priority for request in staying if request.preemptible)


def _sum(lying: Iterable[Lying], metered: object = None) -> dict[str, int]:
    """metered: the keys that count, by pool; all where it is left out."""
    sums = Counter[str]()
    for pool, _, request, _ in lying:
        keys = metered[pool] if isinstance(metered, dict) else dict(request.demand.total)
        sums.update({key: value for key, value in request.demand.total if key in keys})
    return dict(sums)

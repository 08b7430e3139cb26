"""Every invariant, checked the slow way on any world: recounted from the allocations, never from running totals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fairpool.core.amounts import GPU, WHOLE, get, show
from fairpool.core.books import PoolBooks
from fairpool.core.eviction import Victims, find_victims
from fairpool.core.feasibility import own_obstacle, reservation_in_use, room
from fairpool.core.ids import Instant, PoolId
from fairpool.core.planner import plan
from fairpool.core.pools import PoolState
from fairpool.core.requests import Allocation
from fairpool.core.shares import is_entitled
from fairpool.core.world import World

COUNTS = ("here", "used_now", "used_after", "metered_now", "metered_after", "firm_now", "firm_after")


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """An invariant that does not hold, and how."""

    invariant: str
    text: str


def audit(world: World, now: Instant) -> tuple[Violation, ...]:
    """All violations in a world at rest, i.e. after a decision at `now`; () when there are none.

    What exceeds a bound because the bound fell is no violation as long as it only shrinks (INV-1 to INV-3).
    """
    found: list[Violation] = []
    for pool in world.books.values():
        found.extend(_amounts(pool))
        found.extend(_rights(world, pool))
        found.extend(_nodes_and_devices(pool))
    found.extend(_evictions(world))
    misplaced = tuple(_one_place_each(world))
    found.extend(misplaced)
    if not misplaced:  # recounting needs every allocation in one place, in a pool that exists
        found.extend(_books_agree(world))
    if not found:  # what follows asks the planner, which needs sound books
        found.extend(_at_rest(world, now))
    return tuple(found)


def _amounts(pool: PoolBooks) -> Iterator[Violation]:
    name = pool.pool.name
    used: dict[str, int] = {}
    for held in pool.allocations.values():
        for key, value in held.request.demand.total:
            used[key] = used.get(key, 0) + value
    for key, capacity in pool.nominal.items():
        bound = max(capacity, pool.excused.get(("capacity", key), 0))
        if used.get(key, 0) > bound:
            yield _over("INV-1", f"pool {name}", key, used[key], "capacity", bound)


def _rights(world: World, pool: PoolBooks) -> Iterator[Violation]:
    """Of each policy that has its first pool here: what runs through it in all of its pools. A limit counts every key;
    a reservation the keys that are metered where they are used."""
    for policy_id, books in pool.policies.items():
        if books.policy.pool != pool.pool.id:
            continue
        used: dict[str, int] = {}
        firm: dict[str, int] = {}
        for each in [world.books[name] for name in books.policy.pools]:
            for held in each.allocations.values():
                for key, value in held.request.demand.total if held.policy == policy_id else ():
                    used[key] = used.get(key, 0) + value
                    if not held.request.preemptible and key in each.bounded:
                        firm[key] = firm.get(key, 0) + value
        for key, limit in books.limit.items():
            bound = max(limit, pool.excused.get((f"limit {policy_id}", key), 0))
            if used.get(key, 0) > bound:
                yield _over("INV-2", f"policy {policy_id}", key, used[key], "limit", bound)
        for key, value in firm.items():
            bound = max(books.reserved.get(key, 0), pool.excused.get((f"reserved {policy_id}", key), 0))
            if value > bound:
                yield _over("INV-3", f"policy {policy_id} firm", key, value, "reserved", bound)


def _over(invariant: str, who: str, key: str, used: int, bound_name: str, bound: int) -> Violation:
    return Violation(invariant=invariant, text=f"{who} uses {show(used)} {key}, {bound_name} {show(bound)}")


def _nodes_and_devices(pool: PoolBooks) -> Iterator[Violation]:
    devices: dict[tuple[str, int], int] = {}
    nodes: dict[str, dict[str, int]] = {}
    for held in pool.allocations.values():
        yield from _parts_complete(held)
        for place, part in zip(held.parts, held.request.demand.parts, strict=True):
            for device, share in place.devices:
                devices[place.node, device] = devices.get((place.node, device), 0) + share
            on_node = nodes.setdefault(place.node, {})
            for key, value in part:
                on_node[key] = on_node.get(key, 0) + value
    for (name, device), share in devices.items():
        if share > WHOLE:
            text = f"device {device} of node {name!r} is given out {show(share)} times"
            yield Violation(invariant="INV-4", text=text)
    for node in pool.pool.nodes:
        for key, capacity in node.capacity:
            bound = max(capacity, pool.excused.get((f"node {node.name}", key), 0))
            if nodes.get(node.name, {}).get(key, 0) > bound:
                yield _over("INV-4", f"node {node.name}", key, nodes[node.name][key], "capacity", bound)


def _parts_complete(held: Allocation) -> Iterator[Violation]:
    request = held.request
    for place, part in zip(held.parts, request.demand.parts, strict=True):
        gpus = get(part, GPU)
        whole = all(share == WHOLE for _, share in place.devices)
        if sum(share for _, share in place.devices) != gpus or not (whole or len(place.devices) == 1):
            yield Violation(invariant="INV-4", text=f"{request.id} asks {show(gpus)} GPUs and holds {place.devices}")


def _evictions(world: World) -> Iterator[Violation]:
    for held in world.allocations.values():
        if held.eviction is not None and not held.request.preemptible:
            yield Violation(invariant="INV-5", text=f"{held.request.id} is firm and being evicted")


def _one_place_each(world: World) -> Iterator[Violation]:
    for request, held in world.allocations.items():
        if request != held.request.id or request in world.queue:
            yield Violation(invariant="INV-8", text=f"{request} holds an allocation and is queued as well")
        if held.pool is not None and held.pool in world.books:
            if world.books[held.pool].allocations.get(request) is not held:
                yield Violation(invariant="INV-8", text=f"{request} is not on the books of pool {held.pool}")
        elif held.pool is not None:
            yield Violation(invariant="INV-8", text=f"{request} is in pool {held.pool}, which does not exist")


def _books_agree(world: World) -> Iterator[Violation]:
    """S19: counts come from allocations. Books built from scratch must say what the running ones say."""
    fresh = world.copy()
    for pool_id, books in world.books.items():
        other = fresh.books[pool_id]
        for name in ("free_now", "free_after", "leaving"):
            if getattr(books, name) != getattr(other, name):
                text = f"pool {pool_id}: {name} is {getattr(books, name)}, recounted {getattr(other, name)}"
                yield Violation(invariant="INV-8", text=text)
        for node, recounted in zip(books.nodes.nodes, other.nodes.nodes, strict=True):
            if node.devices.in_use() != recounted.devices.in_use() or node.free_now != recounted.free_now:
                yield Violation(invariant="INV-8", text=f"pool {pool_id}, node {node.name!r}: devices differ")
        for policy_id, policy in books.policies.items():
            for name in COUNTS:
                ours = {key: value for key, value in getattr(policy, name).items() if value}
                theirs = {key: value for key, value in getattr(other.policies[policy_id], name).items() if value}
                if ours != theirs:
                    text = f"policy {policy_id}: {name} is {ours}, recounted {theirs}"
                    yield Violation(invariant="INV-8", text=text)


def _at_rest(world: World, now: Instant) -> Iterator[Violation]:
    """INV-6, INV-7, INV-9: each waiting class is asked on its own, and a world built anew has nothing to decide."""
    fresh = world.copy()
    again = plan(fresh, now)
    if not again.is_empty:
        yield Violation(invariant="INV-9", text=f"deciding again from scratch would change the world: {again}")
    keeping: set[PoolId] = {hold.pool for hold in again.holds}
    keeping |= {claim.pool for claim in fresh.claims.values() if not fresh.books[claim.pool].pool.backfill}
    for home in fresh.queue.classes():
        request = fresh.queue.head(home)
        for candidate in home.key.candidates if request is not None else ():
            pool = fresh.books[candidate.pool]
            policy = pool.policies[candidate.policy]
            if candidate.pool in keeping or request is None or pool.pool.state is PoolState.DRAINING:
                continue
            if pool.leaving:
                continue  # room that is being made goes by the order of a pass, which only the planner can retrace
            if own_obstacle(policy, request.demand, request.preemptible) is None:
                found = room(pool, policy, request.demand)
                if found is not None:
                    yield Violation(invariant="INV-7", text=f"{request.id} waits and could start in {candidate.pool}")
            entitled = is_entitled(policy, request.demand.total, request.preemptible)
            if entitled and reservation_in_use(policy, request.demand.total, request.preemptible) is None:
                victims = find_victims(pool, policy, request, now)
                if isinstance(victims, Victims):
                    names = [held.request.id for held, _ in victims.chosen]
                    yield Violation(invariant="INV-6", text=f"{request.id} is entitled and waits behind {names}")

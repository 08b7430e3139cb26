"""Generated worlds: pools with and without nodes, policies, keys, fractions, gangs, and what happens to them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from random import Random

from fairpool.core import events as ev
from fairpool.core.amounts import of, total
from fairpool.core.errors import InvalidRules
from fairpool.core.ids import SECOND, Instant, PolicyId, PoolId, ProfileId, RequestId
from fairpool.core.policies import Policy, Possible, Profile, Subject
from fairpool.core.pools import Node, NodeState, Ordering, Placement, Pool, nominal_capacity
from fairpool.core.requests import Demand, Request, Status
from fairpool.core.world import World

THOROUGHNESS = float(os.environ.get("FAIRPOOL_THOROUGHNESS", "1"))
"""How many worlds the properties of the core are tried in, in proportion to the usual."""

START = Instant(0)
TEAMS = 4
PROFILES = ("half", "one")
LEAST = {"gpu": 1000, "mcpu": 1, "lic": 1}
"""In what steps amounts are drawn: the least that there is, so that who counts one too many shows."""
ENDS = (Status.RELEASED, Status.EXPIRED, Status.CANCELLED)


def thorough(usual: int) -> int:
    """How many worlds to look at where `usual` are usual."""
    return max(1, round(usual * THOROUGHNESS))


def make_world(rng: Random) -> World:
    """One to three pools, each with the policies of some teams."""
    world = World()
    spans = rng.random() < 0.4
    for number in range(rng.choice([2, 3] if spans else [1, 1, 2, 3])):
        pool = _pool(rng, f"p{number}")
        world.apply(ev.PoolSet(pool=pool), START)
        left = dict(nominal_capacity(pool))
        for team in range(rng.randint(1, TEAMS)):
            if rng.random() < (0.4 if spans else 0.8):
                world.apply(ev.PolicySet(policy=_policy(rng, pool, team, left)), START)
    for _ in range(rng.randint(1, 3) if spans else 0):
        attempt(world, _wide_policy(rng, world), START)
    for name in PROFILES:
        if rng.random() < 0.5:
            world.apply(ev.ProfileSet(profile=_profile(rng, world, name)), START)
    return world


def attempt(world: World, event: ev.Event | None, now: Instant) -> None:
    """Let it happen, unless it contradicts itself: then it is refused, and nothing has changed."""
    before = world.snapshot()
    try:
        if event is not None:
            world.apply(event, now)
    except InvalidRules:
        assert world.snapshot() == before


def _wide_policy(rng: Random, world: World) -> ev.PolicySet:
    """A policy over several pools; it may promise too much."""
    pools = rng.sample(sorted(world.pools), rng.randint(2, len(world.pools)))
    capacity = dict(total(nominal_capacity(world.pools[pool]) for pool in pools))
    reserved = {
        key: rng.randint(0, value // LEAST[key] // 2) * LEAST[key]
        for key, value in capacity.items()
        if rng.random() < 0.6
    }
    limit = {
        key: rng.randint(reserved.get(key, 0) // LEAST[key], value // LEAST[key]) * LEAST[key]
        for key, value in capacity.items()
        if rng.random() < 0.4
    }
    team = rng.randrange(TEAMS)
    return ev.PolicySet(
        policy=Policy(
            id=PolicyId(f"{','.join(pools)}/t{team}"),
            pool=pools[0],
            also=tuple(pools[1:]),
            subject=Subject.parse(f"team:t{team}"),
            priority=rng.choice([0, 0, 1, 5]),
            reserved=of(reserved),
            limit=tuple(sorted(limit.items())),
            weight=rng.choice([1000, 2000, 500]),
            grace_s=rng.choice([0, 3, 30]),
            min_runtime_s=rng.choice([0, 0, 0, 4]),
        )
    )


def _other_pools(rng: Random, world: World, policy: Policy) -> ev.PolicySet:
    """The same policy on fewer, more, or other pools."""
    pools = rng.sample(sorted(world.pools), rng.randint(1, len(world.pools)))
    reserved = policy.reserved if rng.random() < 0.5 else ()
    changed = replace(policy, pool=pools[0], also=tuple(pools[1:]), reserved=reserved, limit=(), dedicated=False)
    return ev.PolicySet(policy=changed)


def _profile(rng: Random, world: World, name: str) -> Profile:
    pools = sorted(pool.name for pool in world.pools.values())
    return Profile(
        id=ProfileId(name),
        name=name,
        demand=(("gpu", 500 if name == "half" else 1000),),
        pools=tuple(rng.sample(pools, rng.randint(1, len(pools)))),
    )


def _pool(rng: Random, name: str) -> Pool:
    on_nodes = ["gpu", *(["mcpu"] if rng.random() < 0.3 else [])]
    licences = (("lic", rng.randint(1, 4) * LEAST["lic"]),) if rng.random() < 0.3 else ()
    nodes: tuple[Node, ...] = ()
    capacity = licences
    if rng.random() < 0.5:
        nodes = tuple(
            Node(name=f"n{at}", capacity=tuple((key, rng.randint(1, 4) * LEAST[key]) for key in on_nodes))
            for at in range(rng.randint(1, 3))
        )
    else:
        capacity = tuple(sorted((*licences, *((key, rng.randint(2, 8) * LEAST[key]) for key in on_nodes))))
    return Pool(
        id=PoolId(name),
        name=name,
        capacity=capacity,
        nodes=nodes,
        ordering=rng.choice(list(Ordering)),
        backfill=rng.random() < 0.85,
        placement=rng.choice(list(Placement)),
        max_bypass_s=rng.choice([0, 5, 600]),
    )


def _policy(rng: Random, pool: Pool, team: int, left: dict[str, int]) -> Policy:
    reserved, limit = {}, {}
    for key, capacity in nominal_capacity(pool):
        if rng.random() < 0.6:
            reserved[key] = rng.randint(0, left[key] // LEAST[key]) * LEAST[key]
            left[key] -= reserved[key]
        if rng.random() < 0.4:
            limit[key] = rng.randint(reserved.get(key, 0) // LEAST[key], capacity // LEAST[key]) * LEAST[key]
    return Policy(
        id=PolicyId(f"{pool.id}/t{team}"),
        pool=pool.id,
        subject=Subject.parse(f"team:t{team}"),
        priority=rng.choice([0, 0, 1, 5]),
        reserved=tuple(sorted((key, value) for key, value in reserved.items() if value)),
        limit=tuple(sorted(limit.items())),
        weight=rng.choice([1000, 1000, 2000, 500]),
        dedicated=rng.random() < 0.15,
        grace_s=rng.choice([0, 3, 30]),
        min_runtime_s=rng.choice([0, 0, 0, 4]),
        profiles=None if rng.random() < 0.8 else (rng.choice(PROFILES),),
        possible=_possible(rng, pool) if rng.random() < 0.15 else None,
    )


def _possible(rng: Random, pool: Pool) -> Possible:
    """What the policy allows at other times."""
    reserved = {key: rng.randint(0, capacity // LEAST[key]) * LEAST[key] for key, capacity in nominal_capacity(pool)}
    limit = {key: value + rng.randint(0, 2) * LEAST[key] for key, value in reserved.items()}
    capacity = dict(nominal_capacity(pool))
    return Possible(
        reserved=of(reserved),
        limit=tuple(sorted((key, min(value, capacity[key])) for key, value in limit.items() if rng.random() < 0.5)),
        opens_at=rng.choice([None, Instant(60 * SECOND)]),
    )


def make_request(rng: Random, number: int, now: Instant) -> Request:
    """Fractions, whole GPUs, CPU-only work, licences, and gangs of equal and unequal parts."""
    part = {"gpu": rng.choice([0, 250, 500, 1000, 1000, 2000, 3000, 4000])}
    part |= {key: LEAST[key] for key in ("lic", "mcpu") if rng.random() < 0.2}
    amounts = tuple(sorted((key, value) for key, value in part.items() if value)) or (("gpu", 1000),)
    parts = (amounts,) * rng.choice([1, 1, 1, 1, 2])
    if rng.random() < 0.1:
        parts = (amounts, (("gpu", 1000),))
    return Request(
        id=RequestId(f"r{number:05d}"),
        subjects=_subjects(rng),
        demand=Demand(parts),
        queued_at=now,
        preemptible=rng.random() < 0.8,
        priority=rng.choice([0, 0, 0, 1, -1]),
        max_runtime_s=rng.choice([None, None, 2, 10, 100]),
        wait_timeout_s=rng.choice([None] * 6 + [5]),
        profile=rng.choice(PROFILES) if rng.random() < 0.15 else "",
        pool=rng.choice(["p0", "p1"]) if rng.random() < 0.05 else "",
    )


def _subjects(rng: Random) -> tuple[Subject, ...]:
    teams = rng.sample(range(TEAMS), 2 if rng.random() < 0.15 else 1)
    return tuple(Subject.parse(f"team:t{team}") for team in teams)


def live(rng: Random, world: World, steps: int) -> Iterator[Instant]:
    """Let things happen, one kind a step; yields the moment at which the planner should look."""
    now, number = START, 0
    for _ in range(steps):
        kind = rng.random()
        if kind < 0.5:
            for _ in range(rng.randint(1, 3)):
                number += 1
                world.apply(ev.Submitted(request=make_request(rng, number, now)), now)
        elif kind < 0.75 and world.allocations:
            request = rng.choice(sorted(world.allocations))
            world.apply(ev.Ended(request=request, how=rng.choice(ENDS)), now)
        elif kind < 0.8 and world.queued:
            world.apply(ev.Ended(request=rng.choice(sorted(world.queued)), how=Status.CANCELLED), now)
        elif kind < 0.85 and world.queued:
            world.apply(_redirected(rng, world), now)
        elif kind < 0.93:
            now = Instant(now + rng.choice([1, 2, 5, 30]) * SECOND)
        else:
            change_rules(rng, world, now)
        yield now


def change_rules(rng: Random, world: World, now: Instant) -> None:
    """Nodes fail and come back, capacities and policies change, pools go; what contradicts itself is refused."""
    pool = world.pools[rng.choice(sorted(world.pools))]
    policies = sorted((p for p in world.policies.values() if pool.id in p.pools), key=lambda policy: policy.id)
    kind = rng.random()
    event: ev.Event | None = None
    if rng.random() < 0.4:
        event = change_rights(rng, world)
    elif kind < 0.5 and pool.nodes:
        chosen = rng.choice(pool.nodes).name
        state = rng.choice(list(NodeState))
        nodes = tuple(replace(node, state=state) if node.name == chosen else node for node in pool.nodes)
        event = ev.PoolSet(pool=replace(pool, nodes=nodes))
    elif kind < 0.5:
        capacity = tuple(
            (key, max(1, value // LEAST[key] + rng.choice([-2, -1, 1])) * LEAST[key]) for key, value in pool.capacity
        )
        event = ev.PoolSet(pool=replace(pool, capacity=capacity))
    elif kind < 0.6:
        event = ev.BorrowersEvicted(pool=pool.id)
    elif kind < 0.75 and policies:
        event = ev.PolicyDropped(policy=rng.choice(policies).id)
    elif kind < 0.95 and policies:
        event = ev.PolicySet(policy=replace(rng.choice(policies), priority=rng.choice([0, 1, 5]), limit=()))
    elif len(world.pools) > 1:
        event = ev.PoolDropped(pool=pool.id)
    attempt(world, event, now)


def change_rights(rng: Random, world: World) -> ev.RuleEvent | ev.Together | None:
    """Policies are given to others, profiles appear, change and go, pools are renamed together with what asks for
    them."""
    kind = rng.random()
    policies = [world.policies[policy] for policy in sorted(world.policies)]
    if kind < 0.15 and len(world.pools) > 1:
        return _wide_policy(rng, world)
    if kind < 0.25 and policies:
        return _other_pools(rng, world, rng.choice(policies))
    if kind < 0.33 and policies:
        return _window_edge(rng.choice(policies))
    if kind < 0.45 and policies:
        other = Subject.parse(f"team:t{rng.randrange(TEAMS + 1)}")
        return ev.PolicySet(policy=replace(rng.choice(policies), subject=other))
    if kind < 0.6:
        return ev.ProfileSet(profile=_profile(rng, world, rng.choice(PROFILES)))
    if kind < 0.7 and world.profiles:
        return ev.ProfileDropped(name=rng.choice(sorted(world.profiles)))
    if kind < 0.85 and policies:
        return ev.PolicySet(policy=replace(rng.choice(policies), profiles=rng.choice([None, ("half",), ("one",)])))
    return _renamed(rng, world)


def _window_edge(policy: Policy) -> ev.PolicySet | None:
    """The numbers of another time come into force."""
    possible = policy.possible
    if possible is None:
        return None
    other = Possible(reserved=policy.reserved, limit=policy.limit)
    return ev.PolicySet(policy=replace(policy, reserved=possible.reserved, limit=possible.limit, possible=other))


def _renamed(rng: Random, world: World) -> ev.Together:
    pool = world.pools[rng.choice(sorted(world.pools))]
    name = f"{pool.name}x" if len(pool.name) < 5 else str(pool.id)
    asking = [replace(request, pool=name) for _, request in sorted(world.queued.items()) if request.pool == pool.name]
    profiles = [
        replace(profile, pools=tuple(name if each == pool.name else each for each in profile.pools))
        for profile in world.profiles.values()
    ]
    return ev.Together(
        events=(
            *(ev.Redirected(request=request) for request in asking),
            ev.PoolSet(pool=replace(pool, name=name)),
            *(ev.ProfileSet(profile=profile) for profile in profiles),
        )
    )


def _redirected(rng: Random, world: World) -> ev.Redirected:
    """Mostly of one that waits; of one that runs too."""
    live = [*sorted(world.queued), *sorted(world.allocations)[:2]]
    request = world.request(rng.choice(live))
    return ev.Redirected(request=replace(request, subjects=_subjects(rng), profile=rng.choice([request.profile, ""])))

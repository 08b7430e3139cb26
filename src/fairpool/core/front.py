"""What a look ahead needs of a world, as values: the pools that matter together, what runs there, who waits in front.

Taking it costs a copy of what runs and of the first of each class. Nothing that happens to the world later changes it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from fairpool.core.ids import PoolId, RequestId
from fairpool.core.requests import Request
from fairpool.core.waiting import ClassKey, Origin, Place, RequestClass, place_of, runtime_magnitude
from fairpool.core.world import Snapshot, World

MOST_WAITING = 4_000
"""Waiting requests in a front: no more than can start in one look ahead. Picking the first out of longer lines keeps
those waiting who want a decision: these take some milliseconds."""

FEWEST_OF_A_CLASS = 10
"""However many classes there are: of who stands so far in front something can be said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """A part of a world. waiting: who of it is queued. cut: of the classes that have more members, the place of the
    last one that is in `snapshot`, and who that is."""

    snapshot: Snapshot
    waiting: Mapping[RequestId, Request]
    cut: Mapping[ClassKey, tuple[Place, RequestId]]

    def knows(self, request: Request, key: ClassKey) -> bool:
        """Whether it has something to say of a queued request: one of those in front, just as it is, or one behind."""
        return self.waiting.get(request.id) == request or self.is_behind(request, key)

    def is_behind(self, request: Request, key: ClassKey) -> bool:
        """Whether the request stands in its class behind the last one that is looked at."""
        return key in self.cut and place_of(request) > self.cut[key][0]

    def joined_by(self, request: Request) -> Front:
        """The same with one more who waits, as it would stand if it were submitted now."""
        queued = replace(self.snapshot, queued=(*self.snapshot.queued, request))
        return replace(self, snapshot=queued, waiting={**self.waiting, request.id: request})


def class_of(world: World, request: Request) -> ClassKey:
    """The class in which a request stands, or would stand if it were submitted now."""
    route = world.routes.find(Origin.of(request), request.demand, request.preemptible)
    return ClassKey(route.candidates, request.demand, request.preemptible, runtime_magnitude(request))


def pools_of(world: World, request: Request) -> frozenset[PoolId]:
    """The pools that matter to a request: those where it could start, and all that are joined to them."""
    return joined_to(world, {candidate.pool for candidate in class_of(world, request).candidates})


def joined_to(world: World, pools: Iterable[PoolId]) -> frozenset[PoolId]:
    """These pools, those that others who wait there could start in, and those that a policy joins to them."""
    queue = world.queue
    joined = [set(found) for found in queue.preferences()]
    joined += [set(policy.pools) for policy in world.policies.values() if policy.also]
    homes = [home for home in map(queue.home, queue.claimants) if home is not None]
    joined += [{candidate.pool for candidate in home.key.candidates} for home in homes]
    pools = set(pools).intersection(world.books)
    while True:
        reached = pools.union(*(found for found in joined if found & pools))
        if reached == pools:
            return frozenset(pools)
        pools = reached


def front_of(world: World, pools: Collection[PoolId], most: int = MOST_WAITING) -> Front:
    """The part of the world that these pools are."""
    homes = _homes(world, pools)
    is_short = sum(len(home.members) for home in homes) <= most
    of_each = max(most // max(1, len(homes)), FEWEST_OF_A_CLASS)
    claims = [claim for claim in world.claims.values() if claim.pool in pools]
    queued = [world.queue.claimants[claim.request] for claim in claims]
    cut: dict[ClassKey, tuple[Place, RequestId]] = {}
    for home in homes:
        if is_short or len(home.members) <= of_each:
            queued += home.members.values()
        else:
            ahead = home.ahead(of_each)
            queued += ahead
            cut[home.key] = (place_of(ahead[-1]), ahead[-1].id)
    snapshot = Snapshot(
        pools=tuple(world.books[pool].pool for pool in sorted(pools)),
        policies=tuple(policy for policy in world.policies.values() if any(pool in pools for pool in policy.pools)),
        profiles=tuple(world.profiles.values()),
        queued=tuple(queued),
        allocations=tuple(held for pool in sorted(pools) for held in world.books[pool].allocations.values()),
        claims=tuple(claims),
        require_policy=world.routes.require_policy,
        sequence=world.sequence,
        loose=tuple(claim.request for claim in claims if claim.request in world.loose),
        evict_borrowers=tuple(pool for pool in sorted(pools) if world.books[pool].evict_borrowers),
    )
    return Front(snapshot=snapshot, waiting={request.id: request for request in queued}, cut=cut)


def _homes(world: World, pools: Iterable[PoolId]) -> list[RequestClass]:
    """The classes that wait in these pools, each once."""
    found = (home for pool in sorted(pools) for homes in world.queue.classes_in(pool).values() for home in homes)
    return [home for home in dict.fromkeys(found) if home.members]

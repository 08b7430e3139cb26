"""What there is just now, as numbers: capacity and use of pools, use by policies, who waits and for how long.

Asked on the scheduler's thread, part by part, so that nobody's grant waits for all of it: with ten thousand policies
that would be a third of a second. A part costs in its policies and classes of waiting requests, not in requests; only
a class whose members differ in profile or own priority is gone through. Parts may show moments some rounds apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final

from fairpool.app.memory import Memory
from fairpool.app.queries import borrowed, borrowed_here, live_requests
from fairpool.app.records import Kind
from fairpool.core.accounts import PolicyBooks
from fairpool.core.books import PoolBooks
from fairpool.core.ids import SECOND, Instant, PolicyId, PoolId
from fairpool.core.waiting import Candidate, RequestClass


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolGauge:
    """A pool. Amounts by key, in thousandths; nodes: how many are in which state."""

    name: str
    capacity: Mapping[str, int]
    used: Mapping[str, int]
    free: Mapping[str, int]
    reserved: Mapping[str, int]
    borrowed: Mapping[str, int]
    nodes: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyGauge:
    """A policy in one pool. Amounts by key, in thousandths."""

    pool: str
    subject: str
    used: Mapping[str, int]
    reserved: Mapping[str, int]
    borrowed: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueGauge:
    """Those who wait for one pool through one policy with one profile ("" for none).

    A request that could be granted in several ways waits in each of these queues.
    """

    pool: str
    policy: str
    profile: str
    depth: int
    oldest_wait_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauges:
    """Everything. queued, active: each request once."""

    queued: int
    active: int
    pools: tuple[PoolGauge, ...]
    policies: tuple[PolicyGauge, ...]
    queues: tuple[QueueGauge, ...]


POLICIES_AT_ONCE: Final = 50
"""In one part: a millisecond, as a rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What is looked at in one go: some policies of a pool. is_first: the pool itself too."""

    pool: PoolId
    policies: tuple[PolicyId, ...]
    is_first: bool


def parts(memory: Memory, now: Instant) -> tuple[Part, ...]:
    """All that there is to look at."""
    found = []
    for pool in memory.all(Kind.POOL):
        books = memory.world.books[PoolId(pool.id)]
        policies = iter([name for name, policy in books.policies.items() if not policy.retired])
        some = tuple(islice(policies, POLICIES_AT_ONCE))
        found.append(Part(pool=books.pool.id, policies=some, is_first=True))
        while some := tuple(islice(policies, POLICIES_AT_ONCE)):
            found.append(Part(pool=books.pool.id, policies=some, is_first=False))
    return tuple(found)


def part_of(memory: Memory, now: Instant, part: Part) -> Gauges:
    """What there is in that part now; nothing where its pool has gone."""
    queued, active = live_requests(memory)
    books = memory.world.books.get(part.pool)
    if books is None:
        return Gauges(queued=queued, active=active, pools=(), policies=(), queues=())
    known = [policy for name in part.policies if (policy := books.policies.get(name)) and not policy.retired]
    return Gauges(
        queued=queued,
        active=active,
        pools=(_pool(memory, books),) if part.is_first else (),
        policies=tuple(_policies(memory, books, known)),
        queues=tuple(_queues(memory, now, books, known)),
    )


def together(counted: tuple[int, int], found: Sequence[Gauges]) -> Gauges:
    """Everything, from all parts. counted: how many are queued, and how many hold something."""
    queued, active = counted
    return Gauges(
        queued=queued,
        active=active,
        pools=tuple(chain.from_iterable(each.pools for each in found)),
        policies=tuple(chain.from_iterable(each.policies for each in found)),
        queues=tuple(chain.from_iterable(each.queues for each in found)),
    )


def gauges(memory: Memory, now: Instant) -> Gauges:
    """Everything at one moment."""
    return together(live_requests(memory), [part_of(memory, now, part) for part in parts(memory, now)])


Waiting = tuple[str, int, Instant]
"""Of which profile, how many wait, and since when the one that was queued first does."""


def _pool(memory: Memory, books: PoolBooks) -> PoolGauge:
    keys = books.capacity
    policies = [policy for policy in books.policies.values() if not policy.retired]
    reserved = [policy.reserved for policy in policies if not policy.policy.also]
    beyond = [borrowed_here(policy) for policy in policies]
    return PoolGauge(
        name=books.pool.name,
        capacity=dict(keys),
        used={key: value for key, value in memory.world.usage(books.pool.id).items() if key in keys},
        free=memory.world.free(books.pool.id),
        reserved={key: sum(each.get(key, 0) for each in reserved) for key in keys},
        borrowed={key: sum(each.get(key, 0) for each in beyond) for key in keys},
        nodes=Counter(node.state.value for node in books.pool.nodes),
    )


def _policies(memory: Memory, books: PoolBooks, known: Sequence[PolicyBooks]) -> Iterator[PolicyGauge]:
    """Each policy once: one that spans several pools is counted over all of them, under its first."""
    for policy in known:
        spec = policy.policy
        if spec.pool != books.pool.id:
            continue
        keys = policy.account.bounded
        yield PolicyGauge(
            pool=",".join(memory.pool_name(pool) for pool in spec.pools),
            subject=str(spec.subject),
            used={key: value for key, value in policy.used_now.items() if key in keys},
            reserved=dict(policy.reserved),
            borrowed={key: value for key, value in borrowed(policy).items() if key in keys},
        )


def _queues(memory: Memory, now: Instant, books: PoolBooks, known: Sequence[PolicyBooks]) -> Iterator[QueueGauge]:
    pool = books.pool.id
    claimed = _claimed(memory)
    for policy in known:
        depth: Counter[str] = Counter()
        oldest: dict[str, Instant] = {}
        way = Candidate(policy.policy.id, pool)
        waiting = chain.from_iterable(map(_waiting, memory.world.queue.classes_of(*way)))
        for profile, count, since in chain(waiting, claimed.get(way, ())):
            depth[profile] += count
            oldest[profile] = min(since, oldest.get(profile, since))
        for profile in sorted(depth):
            yield QueueGauge(
                pool=books.pool.name,
                policy=str(policy.policy.subject),
                profile=profile,
                depth=depth[profile],
                oldest_wait_s=max(0, now - oldest[profile]) / SECOND,
            )


def _waiting(home: RequestClass) -> Iterator[Waiting]:
    if not home.members:
        return
    profiles = {origin.profile for origin in home.origins}
    if len(profiles) == 1:
        yield profiles.pop(), len(home.members), home.oldest()
    else:
        for request in home.members.values():
            yield request.profile, 1, request.queued_at


def _claimed(memory: Memory) -> dict[Candidate, list[Waiting]]:
    """Those for whom room is being made, of whom there are few, by the ways in which they could start."""
    queue = memory.world.queue
    found: dict[Candidate, list[Waiting]] = {}
    for request in queue.claimants.values():
        home = queue.home(request.id)
        for way in home.key.candidates if home is not None else ():
            found.setdefault(way, []).append((request.profile, 1, request.queued_at))
    return found

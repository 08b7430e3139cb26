"""What there is just now, as numbers: capacity and use of pools, use by policies, who waits and for how long.

Asked on the scheduler's thread, so it costs little: in the number of pools, policies and classes of waiting requests,
not of requests. Only a class whose members differ in profile or own priority is gone through.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from fairpool.app.memory import Memory
from fairpool.app.queries import borrowed, borrowed_here, live_requests
from fairpool.app.records import Kind
from fairpool.core.books import PoolBooks
from fairpool.core.ids import SECOND, Instant, PoolId
from fairpool.core.requests import Request
from fairpool.core.waiting import RequestClass


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


def gauges(memory: Memory, now: Instant) -> Gauges:
    """What there is now."""
    queued, active = live_requests(memory)
    pools: list[PoolGauge] = []
    policies: list[PolicyGauge] = []
    for pool in memory.all(Kind.POOL):
        books = memory.world.books[PoolId(pool.id)]
        found = _policies(memory, books)
        policies += found
        pools.append(_pool(memory, books))
    return Gauges(
        queued=queued,
        active=active,
        pools=tuple(pools),
        policies=tuple(policies),
        queues=tuple(_queues(memory, now)),
    )


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


def _policies(memory: Memory, books: PoolBooks) -> list[PolicyGauge]:
    """Each policy once: one that spans several pools is counted over all of them, under its first."""
    found = []
    for declared in memory.policies_of(books.pool.id):
        if declared.spec.pool != books.pool.id:
            continue
        policy = books.policies[declared.spec.id]
        keys = policy.account.bounded
        found.append(
            PolicyGauge(
                pool=",".join(memory.pool_name(pool) for pool in declared.spec.pools),
                subject=memory.subject_of(declared.id),
                used={key: value for key, value in policy.used_now.items() if key in keys},
                reserved=dict(policy.reserved),
                borrowed={key: value for key, value in borrowed(policy).items() if key in keys},
            )
        )
    return found


def _queues(memory: Memory, now: Instant) -> Iterator[QueueGauge]:
    names = {pool.id: pool.name for pool in memory.all(Kind.POOL)}
    subjects = {policy.id: memory.subject_of(policy.id) for policy in memory.all(Kind.POLICY)}
    depth: Counter[tuple[str, str, str]] = Counter()
    oldest: dict[tuple[str, str, str], Instant] = {}
    for home, profile, count, since in _waiting(memory):
        for policy, pool in home.key.candidates:
            where = (names.get(pool, ""), subjects.get(policy, ""), profile)
            depth[where] += count
            oldest[where] = min(since, oldest.get(where, since))
    for where in sorted(depth):
        name, subject, profile = where
        waited_s = max(0, now - oldest[where]) / SECOND
        yield QueueGauge(pool=name, policy=subject, profile=profile, depth=depth[where], oldest_wait_s=waited_s)


def _waiting(memory: Memory) -> Iterator[tuple[RequestClass, str, int, Instant]]:
    """Class, profile, how many wait there, and since when the one that was queued first does."""
    queue = memory.world.queue
    for home in queue.classes():
        if not home.members:
            continue
        profiles = {origin.profile for origin in home.origins}
        if len(profiles) == 1:
            yield home, profiles.pop(), len(home.members), home.oldest()
        else:
            yield from _each(home, home.members.values())
    for request in queue.claimants.values():
        claimed = queue.home(request.id)
        if claimed is not None:
            yield from _each(claimed, [request])


def _each(home: RequestClass, members: Iterable[Request]) -> Iterator[tuple[RequestClass, str, int, Instant]]:
    for request in members:
        yield home, request.profile, 1, request.queued_at

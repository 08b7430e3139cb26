"""Read models of pools and policies: what there is, who uses it, who waits. Asked on the scheduler's thread."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fairpool.app.memory import Memory
from fairpool.app.records import Declared, Kind
from fairpool.app.use_cases.pools import count_work_of
from fairpool.core.accounts import PolicyBooks
from fairpool.core.amounts import Amounts, of
from fairpool.core.books import PoolBooks
from fairpool.core.ids import Instant, PoolId, RequestId
from fairpool.core.policies import Policy
from fairpool.core.pools import Node, Pool, PoolState
from fairpool.core.requests import Allocation
from fairpool.core.waiting import RequestClass


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyStatus:
    """A policy with what its requests use in all of its pools. in_share, borrowed: what of `used` lies in the
    reservation, what beyond. pool_name, also: its first pool, and the others."""

    declared: Declared[Policy]
    pool_name: str
    also: tuple[str, ...]
    used: Amounts
    in_share: Amounts
    borrowed: Amounts
    queued: int
    active: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStatus:
    """A node with what is used of it, and by whom."""

    node: Node
    used: Amounts
    requests: tuple[RequestId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolStatus:
    """A pool as it is now.

    state: ``active``, ``draining``, ``degraded`` (S6) or ``over capacity`` (S9). Amounts name every key that the pool
    meters, those with nothing in them too. reserved: by the policies of this pool alone; what is reserved over several
    pools together is nowhere in particular.
    """

    declared: Declared[Pool]
    state: str
    capacity: Mapping[str, int]
    nominal: Mapping[str, int]
    used: Mapping[str, int]
    free: Mapping[str, int]
    reserved: Mapping[str, int]
    borrowed: Mapping[str, int]
    queued: int
    active: int
    nodes: tuple[NodeStatus, ...]
    policies: tuple[PolicyStatus, ...]


def pool_statuses(memory: Memory, now: Instant) -> list[PoolStatus]:
    """All pools, by name."""
    return [pool_status(memory, now, declared.id) for declared in memory.all(Kind.POOL)]


def pool_status(memory: Memory, now: Instant, ref: str) -> PoolStatus:
    """One pool. Raises NotFound, Ambiguous."""
    declared = memory.pool(ref)
    books = memory.world.books[declared.spec.id]
    policies = tuple(_policy_status(memory, books, policy) for policy in memory.policies_of(declared.spec.id))
    queued, active = count_work_of(memory, declared.spec.id)
    used = memory.world.usage(declared.spec.id)
    in_force = [each for each in books.policies.values() if not each.retired]
    return PoolStatus(
        declared=declared,
        state=_state(books),
        capacity=books.capacity,
        nominal=books.nominal,
        used=used,
        free=memory.world.free(declared.spec.id),
        reserved=_sums(books, [each.policy.reserved for each in in_force if not each.policy.also]),
        borrowed=_sums(books, [of(borrowed_here(each)) for each in in_force]),
        queued=queued,
        active=active,
        nodes=_nodes(books),
        policies=policies,
    )


def policy_status(memory: Memory, now: Instant, ref: str) -> PolicyStatus:
    """One policy. Raises NotFound, Ambiguous."""
    declared = memory.policy(ref)
    return _policy_status(memory, memory.world.books[declared.spec.pool], declared)


def policy_statuses(memory: Memory, now: Instant) -> list[PolicyStatus]:
    """All policies, by name."""
    return [policy_status(memory, now, declared.id) for declared in memory.all(Kind.POLICY)]


def in_share(memory: Memory, request: RequestId) -> bool | None:
    """Whether what a request holds lies inside its policy's reservation (S20); None where that means nothing."""
    held = memory.world.allocations.get(request)
    if held is None or held.pool is None or held.policy is None:
        return None
    policy = memory.world.books[held.pool].policies[held.policy]
    return all(other.request.id != request for other in policy.account.borrowing())


def _policy_status(memory: Memory, books: PoolBooks, declared: Declared[Policy]) -> PolicyStatus:
    policy = books.policies[declared.spec.id]
    beyond = borrowed(policy)
    used = {key: value for key, value in policy.used_now.items() if value}
    return PolicyStatus(
        declared=declared,
        pool_name=memory.pool_name(declared.spec.pool),
        also=tuple(map(memory.pool_name, declared.spec.also)),
        used=of(used),
        in_share=of({key: value - beyond.get(key, 0) for key, value in used.items()}),
        borrowed=of(beyond),
        queued=sum(len(home.members) for home in _classes_of(memory, declared.spec)),
        active=len(policy.by_precedence),
    )


def _classes_of(memory: Memory, policy: Policy) -> list[RequestClass]:
    """The classes that wait through the policy in any of its pools, each once."""
    queue = memory.world.queue
    return list({id(home): home for pool in policy.pools for home in queue.classes_of(policy.id, pool)}.values())


def borrowed(policy: PolicyBooks) -> dict[str, int]:
    """What a policy uses beyond its reservation (S20), in all of its pools, by key."""
    if policy.account.is_inside_reservation_now():
        return {}  # the usual case, without going through all that it holds
    return _sum_of(policy.account.borrowing())


def borrowed_here(policy: PolicyBooks) -> dict[str, int]:
    """What of that lies in one pool."""
    if policy.account.is_inside_reservation_now():
        return {}
    return _sum_of(held for held in policy.account.borrowing() if held.pool == policy.pool)


def _sum_of(allocations: Iterable[Allocation]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for allocation in allocations:
        for key, value in allocation.request.demand.total:
            sums[key] = sums.get(key, 0) + value
    return sums


def _state(books: PoolBooks) -> str:
    if books.pool.state is PoolState.DRAINING:
        return "draining"
    if any(free < 0 for free in books.free_now.values()):
        return "over capacity"
    return "degraded" if books.degraded else "active"


def _sums(books: PoolBooks, vectors: list[Amounts]) -> dict[str, int]:
    sums = dict.fromkeys(books.nominal, 0)
    for amounts in vectors:
        for key, value in amounts:
            if key in sums:
                sums[key] += value
    return sums


def _nodes(books: PoolBooks) -> tuple[NodeStatus, ...]:
    used: dict[str, dict[str, int]] = {}
    users: dict[str, dict[RequestId, None]] = {}
    for request, held in books.allocations.items():
        for place, part in zip(held.parts, held.request.demand.parts, strict=True):
            users.setdefault(place.node, {})[request] = None
            on_node = used.setdefault(place.node, {})
            for key, value in part:
                on_node[key] = on_node.get(key, 0) + value
    return tuple(
        NodeStatus(
            node=node,
            used=of({key: value for key, value in used.get(node.name, {}).items() if key in dict(node.capacity)}),
            requests=tuple(sorted(users.get(node.name, {}))),
        )
        for node in books.pool.nodes
    )


def live_requests(memory: Memory) -> tuple[int, int]:
    """How many requests are queued, and how many hold something."""
    return len(memory.world.queue), len(memory.world.allocations)


def pool_id(memory: Memory, now: Instant, ref: str) -> PoolId:
    """The id of the pool that `ref` means."""
    return memory.pool(ref).spec.id

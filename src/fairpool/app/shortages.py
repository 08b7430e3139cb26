"""Pools that have less than is in use there, or than policies reserve: what whoever changes them should know."""

from __future__ import annotations

from collections.abc import Iterator

from fairpool.app.memory import Memory
from fairpool.app.queries import PoolStatus, pool_statuses
from fairpool.app.warnings import Shortage
from fairpool.core.amounts import UNMETERED_BY_DEFAULT
from fairpool.core.ids import Instant
from fairpool.core.pools import NodeState, Pool, healthy_capacity


def shortages(memory: Memory, now: Instant) -> list[Shortage]:
    """Those of all pools, by name."""
    return [each for status in pool_statuses(memory, now) for each in shortages_of(status, status.declared.spec)]


def shortages_of(status: PoolStatus, pool: Pool) -> Iterator[Shortage]:
    """Those of one pool, were it so."""
    capacity, short_of_promises = dict(healthy_capacity(pool)), False
    for key in sorted({*status.used, *status.reserved}):
        if key not in capacity and key in UNMETERED_BY_DEFAULT:
            continue
        there, used, reserved = capacity.get(key, 0), _counted(status, pool, key), status.reserved.get(key, 0)
        short_of_promises = short_of_promises or reserved > there
        if used > there:
            yield Shortage(pool=pool.name, key=key, capacity=there, used=used)
        if reserved > there:
            yield Shortage(pool=pool.name, key=key, capacity=there, reserved=reserved)
    if status.state == "degraded" and not short_of_promises and pool is status.declared.spec:
        yield Shortage(pool=pool.name)


def _counted(status: PoolStatus, pool: Pool, key: str) -> int:
    """What is in use of what there is: work on machines that are not ready, or not there, takes none of it (S6)."""
    if not any(key in dict(node.capacity) for node in pool.nodes):
        return status.used.get(key, 0)
    ready = {node.name for node in pool.nodes if node.state is NodeState.READY}
    return sum(dict(each.used).get(key, 0) for each in status.nodes if each.node.name in ready)

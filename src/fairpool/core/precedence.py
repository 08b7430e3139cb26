"""A policy's own precedence, and who of it is in share (S20)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fairpool.core.ids import PoolId
from fairpool.core.requests import Allocation

Precedence = tuple[bool, int, int]
"""A policy's own precedence (S20): 1 firm first, 2 higher request priority, 3 the order of granting."""


def precedence(allocation: Allocation) -> Precedence:
    """Where the allocation stands in its policy's own precedence; lower comes first."""
    request = allocation.request
    return (request.preemptible, -request.priority, allocation.sequence)


Metered = Mapping[PoolId | None, frozenset[str]]
"""The metered keys of each of a policy's pools. What a pool does not meter needs no reservation there (S5)."""


def take_shares(allocations: Iterable[Allocation], left: dict[str, int], metered: Metered) -> list[Allocation]:
    """Those of the allocations, in their order, that do not fit what is left of the reservation; `left` is drawn down
    by those that do (S20)."""
    borrowing = []
    for allocation in allocations:
        amounts, bounded = allocation.request.demand.total, metered[allocation.pool]
        for key, value in amounts:
            if key in bounded and value > left.get(key, 0):
                borrowing.append(allocation)
                break
        else:
            for key, value in amounts:
                if key in bounded:
                    left[key] -= value
    return borrowing


def borrowing_of(allocations: Iterable[Allocation], reserved: dict[str, int], metered: Metered) -> list[Allocation]:
    """Those of the allocations, in precedence, that borrow (S20)."""
    return take_shares(allocations, dict(reserved), metered)

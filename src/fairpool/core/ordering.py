"""Total orders: who is considered first (S23), and who gives way first (S29). Criteria are numbered as there."""

from __future__ import annotations

from typing import NamedTuple

from fairpool.core.books import PoolBooks
from fairpool.core.ids import RequestId
from fairpool.core.pools import Ordering
from fairpool.core.requests import Allocation, Request
from fairpool.core.shares import PolicyBooks, dominant_borrowed_share, is_entitled


class Standing(NamedTuple):
    """How a pool ranks one policy's requests of one kind. Criterion 1 stands apart: claims are served before all."""

    borrowing: bool  # 2 entitled before borrowing
    priority: int  # 3 policy priority, highest first
    preemptible: bool  # 4 firm before preemptible
    share: int  # 5 among borrowers: dominant borrowed share over weight, lowest first


Rank = tuple[Standing, int, str]
"""Standing, then 7 the time first queued and 8 the id. Criterion 6, the request's own priority, only orders requests
inside their policy: there it comes before 7 and 8; between policies their heads are compared without it."""


def standing(pool: PoolBooks, policy: PolicyBooks, amounts: tuple[tuple[str, int], ...], preemptible: bool) -> Standing:
    """Criteria 2 to 5 for requests of `policy` with that demand."""
    borrowing = not is_entitled(policy, amounts, preemptible)
    fair = borrowing and pool.pool.ordering is Ordering.FAIR
    share = dominant_borrowed_share(policy, policy.used_now, pool.capacity) if fair else 0
    return Standing(borrowing, -policy.policy.priority, preemptible, share)


def rank(placed: Standing, request: Request) -> Rank:
    """The rank of a request that heads its policy's requests of that standing."""
    return (placed, request.queued_at, request.id)


VictimRank = tuple[int, int, int, int, RequestId]


def victim_rank(pool: PoolBooks, policy: PolicyBooks, victim: Allocation) -> VictimRank:
    """The order in which other policies' borrowers give way, lowest first (S29)."""
    return (
        policy.policy.priority,  # 1 lowest policy priority
        -dominant_borrowed_share(policy, policy.used_after, pool.capacity),  # 2 furthest above its reservation
        victim.request.priority,  # 3 lowest request priority
        -victim.sequence,  # 4 granted last, which is total: sequences are never shared
        victim.request.id,
    )

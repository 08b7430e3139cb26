"""Total orders: who is considered first (S23), and who gives way first (S29). Criteria are numbered as there."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heapreplace

from fairpool.core.accounts import PolicyBooks
from fairpool.core.amounts import Amounts
from fairpool.core.books import PoolBooks
from fairpool.core.ids import PolicyId, RequestId
from fairpool.core.pools import Ordering
from fairpool.core.requests import Allocation, Request
from fairpool.core.shares import dominant_borrowed_share, is_entitled
from fairpool.core.waiting import place_of

Standing = tuple[bool, int, bool, int]
"""How a pool ranks one policy's requests of one kind; criterion 1 stands apart: claims are served before all others.

2 entitled (False) before borrowing (True), 3 policy priority, highest first (negated), 4 firm (False) before
preemptible (True), 5 among borrowers the dominant borrowed share over weight, lowest first (0 for the entitled and in
a pool that is set to fifo).
"""

Rank = tuple[Standing, int, str]
"""Standing, then 7 the time first queued and 8 the id. Criterion 6, the request's own priority, only orders requests
inside their policy: there it comes before 7 and 8; between policies their heads are compared without it."""


def standing(pool: PoolBooks, policy: PolicyBooks, amounts: Amounts, preemptible: bool) -> Standing:
    """Criteria 2 to 5 for requests of `policy` with that demand."""
    if is_entitled(policy, amounts, preemptible):
        return (False, -policy.policy.priority, preemptible, 0)
    return (True, -policy.policy.priority, preemptible, fair_share(pool, policy))


def fair_share(pool: PoolBooks, policy: PolicyBooks) -> int:
    """Criterion 5: what the policy has borrowed already, in proportion to what it deserves."""
    if pool.pool.ordering is Ordering.FIFO:
        return 0
    return dominant_borrowed_share(policy.account, policy.metered_now)


def rank(placed: Standing, request: Request) -> Rank:
    """The rank of a request that heads its policy's requests of that standing."""
    return (placed, request.queued_at, request.id)


def in_order(asking: Iterable[tuple[PolicyBooks, Standing, Request]]) -> list[Request]:
    """Requests in the order of S23: inside each policy by criteria 6 to 8, and between policies by their heads."""
    lines: dict[tuple[PolicyId, Standing], list[Request]] = {}
    for policy, placed, request in asking:
        lines.setdefault((policy.policy.id, placed), []).append(request)
    heads: list[tuple[Rank, tuple[PolicyId, Standing]]] = []
    for line, requests in lines.items():
        requests.sort(key=place_of, reverse=True)
        heads.append((rank(line[1], requests[-1]), line))
    heapify(heads)
    ordered = []
    while heads:
        line = heads[0][1]
        ordered.append(lines[line].pop())
        if lines[line]:
            heapreplace(heads, (rank(line[1], lines[line][-1]), line))
        else:
            heappop(heads)
    return ordered


VictimRank = tuple[int, int, int, int, RequestId]


def victim_rank(policy: PolicyBooks, victim: Allocation) -> VictimRank:
    """The order in which other policies' borrowers give way, lowest first (S29)."""
    return (
        policy.policy.priority,  # 1 lowest policy priority
        -dominant_borrowed_share(policy.account, policy.metered_after),  # 2 furthest above its reservation
        victim.request.priority,  # 3 lowest request priority
        -victim.sequence,  # 4 granted last, which is total: sequences are never shared
        victim.request.id,
    )

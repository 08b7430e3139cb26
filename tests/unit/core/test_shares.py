"""Shares: who is in share and who borrows, who is entitled, and how far above its reservation a policy is."""

from __future__ import annotations

import pytest

from fairpool.core.accounts import Account, PolicyBooks
from fairpool.core.amounts import vector
from fairpool.core.ids import Instant, PolicyId, PoolId, RequestId
from fairpool.core.ordering import in_order, standing
from fairpool.core.planner import plan
from fairpool.core.policies import Policy
from fairpool.core.pools import Ordering
from fairpool.core.requests import Because, Eviction, Request
from fairpool.core.shares import RESOLUTION, dominant_borrowed_share, is_entitled
from fairpool.core.world import World
from fairpool.testing import builders as make

P = PoolId("p")
EIGHT = {"gpu": 8, "mcpu": 8000}


def _books(policy: Policy, *running: Request) -> PolicyBooks:
    world = make.settled(make.pool("p", EIGHT), policy, later=running)
    assert len(world.allocations) == len(running), "all of them run"
    return world.books[P].policies[policy.id]


def _borrowing(books: PolicyBooks) -> list[str]:
    return [held.request.id for held in books.borrowers()]


# ---- S20: in share or borrowed ---------------------------------------------------------------------------------------


def test_who_came_first_is_in_share() -> None:
    """S20: the order of granting decides among equals."""
    running = [make.request(name, "team:t", {"gpu": 2}) for name in "abc"]
    assert _borrowing(_books(make.policy("team:t", {"gpu": 4}), *running)) == ["c"]


def test_higher_priority_pushes_earlier_work_out_of_share() -> None:
    """S20: request priority comes before the order of granting."""
    running = [make.request("a", "team:t", {"gpu": 4}), make.request("b", "team:t", {"gpu": 4}, priority=1)]
    assert _borrowing(_books(make.policy("team:t", {"gpu": 4}), *running)) == ["a"]


def test_firm_work_is_in_share_before_all_else() -> None:
    """S20."""
    running = [
        make.request("a", "team:t", {"gpu": 4}, priority=9),
        make.request("b", "team:t", {"gpu": 4}, preemptible=False),
    ]
    assert _borrowing(_books(make.policy("team:t", {"gpu": 4}), *running)) == ["a"]


def test_what_does_not_fit_borrows_as_a_whole_and_takes_nothing() -> None:
    """S20: the 3 of `b` leave the remaining 2 to `c`."""
    running = [make.request(name, "team:t", {"gpu": gpus}) for name, gpus in (("a", 2), ("b", 3), ("c", 2))]
    assert _borrowing(_books(make.policy("team:t", {"gpu": 4}), *running)) == ["b"]


def test_one_key_above_the_reservation_is_enough_to_borrow() -> None:
    """S20: on every bounded key; an unbounded one does not count."""
    policy = make.policy("team:t", {"gpu": 4})
    assert _borrowing(_books(policy, make.request("a", "team:t", {"gpu": 1, "mcpu": 1}))) == ["a"]
    assert _borrowing(_books(policy, make.request("a", "team:t", {"gpu": 1, "memory_mb": 1}))) == []


def test_who_is_in_share_as_soon_as_others_have_left_is_no_borrower_today() -> None:
    """S31: `a` still counts, and `b` borrows beside it; but `a` has been told to let go. `c` borrows in any case."""
    policy = make.policy("team:t", {"gpu": 4})
    sizes = {"a": 3, "b": 3, "c": 2}
    running = [make.request(name, "team:t", {"gpu": size}, priority=int(name == "a")) for name, size in sizes.items()]
    world = make.settled(make.pool("p", EIGHT), policy, later=running)
    assert _borrowing(world.books[P].policies[policy.id]) == ["b", "c"]
    world.evict(RequestId("a"), Eviction(cause=None, because=Because.CAPACITY, deadline_at=make.START))
    assert _borrowing(world.books[P].policies[policy.id]) == ["c"]


# ---- S21: entitled ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("asked", "entitled"), [(1, True), (2, True), (3, False)])
def test_a_request_is_entitled_up_to_the_unused_part_of_the_reservation(asked: int, entitled: bool) -> None:
    """S21."""
    books = _books(make.policy("team:t", {"gpu": 4}), make.request("a", "team:t", {"gpu": 2}))
    assert is_entitled(books, vector({"gpu": asked}), preemptible=True) is entitled


def test_for_firm_work_only_firm_work_uses_the_reservation() -> None:
    """S21."""
    books = _books(
        make.policy("team:t", {"gpu": 4}),
        make.request("a", "team:t", {"gpu": 3}),
        make.request("b", "team:t", {"gpu": 1}, preemptible=False),
    )
    assert is_entitled(books, vector({"gpu": 3}), preemptible=False)
    assert not is_entitled(books, vector({"gpu": 4}), preemptible=False)
    assert not is_entitled(books, vector({"gpu": 1}), preemptible=True)


# ---- S23: the dominant borrowed share --------------------------------------------------------------------------------


def _share(used: dict[str, int], reserved: dict[str, object] | None = None, weight: float = 1) -> float:
    policy = make.policy("team:t", reserved, weight=weight)
    return dominant_borrowed_share(_account(policy, {"gpu": 8000, "mcpu": 16000}), used) / RESOLUTION


def _account(policy: Policy, capacity: dict[str, int], *metered: str) -> Account:
    return Account(policy, {policy.pool: frozenset(capacity) | set(metered)}, capacity)


def test_the_dominant_share_is_the_largest_over_the_keys() -> None:
    assert _share({"gpu": 2000, "mcpu": 12000}) == 0.75
    assert _share({"gpu": 8000, "mcpu": 12000}) == 1.0


def test_only_what_lies_above_the_reservation_counts() -> None:
    assert _share({"gpu": 4000}, {"gpu": 4}) == 0
    assert _share({"gpu": 3000}, {"gpu": 4}) == 0
    assert _share({"gpu": 6000}, {"gpu": 4}) == 0.25


def test_weight_divides_the_share() -> None:
    assert _share({"gpu": 4000}, weight=2) == 0.25
    assert _share({"gpu": 4000}, weight=0.5) == 1.0


def test_unbounded_keys_have_no_share() -> None:
    assert _share({"memory_mb": 10**9}) == 0


def test_shares_tie_exactly_where_they_are_equal() -> None:
    """2 of 6 under weight 1 is 4 of 6 under weight 2, though neither is a finite binary fraction."""
    capacity = {"gpu": 6000}
    light = _account(make.policy("team:a"), capacity)
    heavy = _account(make.policy("team:b", weight=2), capacity)
    one = dominant_borrowed_share(light, {"gpu": 2000})
    assert one == dominant_borrowed_share(heavy, {"gpu": 4000})
    assert one < dominant_borrowed_share(light, {"gpu": 2001})


def test_one_thousandth_in_the_largest_capacity_makes_a_difference() -> None:
    account = _account(make.policy(), {"gpu": 10**18})
    assert dominant_borrowed_share(account, {"gpu": 1}) > 0
    assert dominant_borrowed_share(account, {"gpu": 10**18 - 1}) < RESOLUTION


def test_a_pool_that_has_lost_all_of_a_key_has_a_share_still() -> None:
    """A capacity of nothing divides nothing by zero."""
    assert dominant_borrowed_share(_account(make.policy(), {}, "gpu"), {"gpu": 1000}) > RESOLUTION


# ---- S23: the order --------------------------------------------------------------------------------------------------


def _next_granted(ordering: Ordering, *, a_uses: int, b_uses: int, a_priority: int = 0) -> list[str]:
    """Who gets the one GPU that is left of 8: `a1`, which is first by id, or `b1`."""
    world: World = make.settled(
        make.pool("p", {"gpu": 8}, ordering=ordering),
        make.policy("team:a", priority=a_priority),
        make.policy("team:b"),
        make.request("a0", "team:a", {"gpu": a_uses}),
        make.request("b0", "team:b", {"gpu": b_uses}),
    )
    world.enqueue(make.request("a1", "team:a"))
    world.enqueue(make.request("b1", "team:b"))
    return [str(grant.request) for grant in plan(world, make.START).grants]


def test_the_policy_that_borrows_least_comes_first_among_equals() -> None:
    """S23, criterion 5; so `a1` waits where `a` has borrowed more."""
    assert _next_granted(Ordering.FAIR, a_uses=4, b_uses=3) == ["b1"]
    assert _next_granted(Ordering.FAIR, a_uses=3, b_uses=4) == ["a1"]


def test_a_fifo_pool_skips_that_criterion() -> None:
    """S23."""
    assert _next_granted(Ordering.FIFO, a_uses=4, b_uses=3) == ["a1"]


def test_policy_priority_comes_before_the_share() -> None:
    """S23, criterion 3."""
    assert _next_granted(Ordering.FAIR, a_uses=4, b_uses=3, a_priority=1) == ["a1"]


def test_the_standings_order_by_entitlement_then_priority_then_firmness() -> None:
    """S23, criteria 2 to 4."""
    world = make.settled(
        make.pool("p", EIGHT),
        make.policy("team:owner", {"gpu": 2}),
        make.policy("team:high", priority=5),
        make.policy("team:low"),
    )
    pool = world.books[P]
    policies = {name: pool.policies[PolicyId(f"p/team:{name}")] for name in ("owner", "high", "low")}
    one = vector({"gpu": 1})
    order = [
        standing(pool, policies["owner"], one, preemptible=False),
        standing(pool, policies["owner"], one, preemptible=True),
        standing(pool, policies["high"], one, preemptible=True),
        standing(pool, policies["low"], one, preemptible=True),
    ]
    assert order == sorted(order)
    assert len(set(order)) == len(order)


def test_a_policy_is_inside_its_reservation_as_long_as_nothing_of_it_borrows() -> None:
    """What is leaving still counts now, and no more as things will be."""
    policy = make.policy("team:t", {"gpu": 4})
    running = [make.request(name, "team:t", {"gpu": 3}) for name in "ab"]
    world = make.settled(make.pool("p", EIGHT), policy, later=running)
    account = world.books[P].policies[policy.id].account
    assert (account.is_inside_reservation_now(), account.is_inside_reservation()) == (False, False)
    world.evict(RequestId("b"), Eviction(cause=None, because=Because.CAPACITY, deadline_at=make.START))
    assert (account.is_inside_reservation_now(), account.is_inside_reservation()) == (False, True)
    world.let_go(RequestId("b"))
    assert (account.is_inside_reservation_now(), account.is_inside_reservation()) == (True, True)


def test_requests_of_equal_standing_come_by_age_between_policies_and_by_priority_inside_one() -> None:
    """S23, criteria 6 to 8: `late` is a's more important one, and holds up `early` behind it in a's own line alone."""
    world = make.settled(make.pool("p", EIGHT), make.policy("team:a"), make.policy("team:b"))
    books = world.books[P].policies
    asks = [("early", "a", 0, 0), ("second", "b", 1, 0), ("late", "a", 2, 1), ("last", "a", 3, 0)]
    asking = []
    for name, team, at, priority in asks:
        policy = books[PolicyId(f"p/team:{team}")]
        request = make.request(name, f"team:{team}", queued_at=Instant(at), priority=priority)
        asking.append((policy, standing(world.books[P], policy, request.demand.total, preemptible=True), request))
    assert [str(request.id) for request in in_order(asking)] == ["second", "late", "early", "last"]
    assert [str(request.id) for request in in_order([asking[0], asking[1], asking[3]])] == ["early", "second", "last"]

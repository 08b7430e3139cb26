"""Victims: who may be evicted for whom, in which order, and never one more than needed (S27 to S31)."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from fairpool.core import events as ev
from fairpool.core.feasibility import amounts_fit_after
from fairpool.core.ids import SECOND, Instant, PolicyId, PoolId, RequestId
from fairpool.core.plan import Plan
from fairpool.core.planner import decide, plan
from fairpool.core.policies import Policy
from fairpool.core.pools import Pool
from fairpool.core.requests import Because, Request, Status
from fairpool.core.world import World
from fairpool.testing import builders as make

P = PoolId("p")
EIGHT = make.pool("p", {"gpu": 8})
W = RequestId("w")


def _world(policies: Iterable[Policy], running: Iterable[Request], pool: Pool = EIGHT) -> World:
    """`running` one after the other, all of it running."""
    world = make.settled(pool, *policies, later=list(running))
    assert not world.queued, "the test means all of them to run"
    return world


def _asks(world: World, request: Request, now: Instant = make.START) -> Plan:
    world.apply(ev.Submitted(request=request), now)
    return decide(world, now)


def _evicted(made: Plan) -> dict[str, Because]:
    return {str(evict.request): evict.because for evict in made.evictions}


def _gpus(name: str, gpus: float, subject: str = "team:b", **settings: int) -> Request:
    return make.request(name, subject, {"gpu": gpus}, priority=settings.get("priority", 0))


OWNER, BORROWER = make.policy("team:t", {"gpu": 4}), make.policy("team:b", {"gpu": 4})


# ---- whose right -----------------------------------------------------------------------------------------------------


def test_an_entitled_request_reclaims_from_borrowers() -> None:
    """S28, S31: with a deadline one grace period away, and what is freed is kept."""
    made = _asks(_world([OWNER, BORROWER], [_gpus("a", 4), _gpus("b", 4)]), _gpus("w", 4, "team:t"))
    assert _evicted(made) == {"b": Because.RECLAIM}
    assert made.evictions[0].deadline_at == 30 * SECOND
    assert [claim.request for claim in made.claims] == ["w"]


def test_reclaiming_pays_no_heed_to_priority() -> None:
    """S28."""
    high = make.policy("team:b", priority=100)
    made = _asks(_world([OWNER, high], [_gpus("b", 8)]), _gpus("w", 4, "team:t"))
    assert _evicted(made) == {"b": Because.RECLAIM}


def test_a_borrower_evicts_only_policies_of_strictly_lower_priority() -> None:
    """S28, preempt."""
    for priority, expected in ((0, {}), (1, {"b": Because.PRIORITY})):
        world = _world([make.policy("team:t", priority=priority), make.policy("team:b")], [_gpus("b", 8)])
        assert _evicted(_asks(world, _gpus("w", 4, "team:t"))) == expected


def test_firm_work_and_work_in_share_are_never_evicted() -> None:
    """S27: not for the highest priority either."""
    firm = make.request("firm", "team:b", {"gpu": 2}, preemptible=False)
    world = _world([make.policy("team:t", priority=9), BORROWER], [firm, _gpus("share", 2), _gpus("extra", 4)])
    assert _evicted(_asks(world, _gpus("w", 4, "team:t"))) == {"extra": Because.PRIORITY}
    assert _evicted(_asks(world, _gpus("x", 2, "team:t"))) == {}


def test_own_work_gives_way_to_own_work_of_higher_priority_only() -> None:
    """S28, own work; a limit is only ever made room under by it."""
    limited = make.policy("team:t", None, {"gpu": 4})
    for priority, expected in ((0, {}), (1, {"own": Because.PRIORITY})):
        world = _world([limited], [_gpus("own", 4, "team:t")])
        assert _evicted(_asks(world, _gpus("w", 4, "team:t", priority=priority))) == expected


def test_young_allocations_are_spared_until_they_have_run_long_enough() -> None:
    """S30: and the planner asks to be woken then."""
    patient = make.policy("team:b", min_runtime_s=60)
    world = _world([OWNER, patient], [_gpus("b", 8)])
    made = _asks(world, _gpus("w", 4, "team:t"))
    assert _evicted(made) == {}
    assert made.wake_at == 60 * SECOND
    assert _evicted(decide(world, Instant(60 * SECOND))) == {"b": Because.RECLAIM}


def test_if_even_all_would_not_make_room_nobody_goes() -> None:
    """S29."""
    firm = make.request("firm", "team:b", {"gpu": 4}, preemptible=False)
    world = _world([make.policy("team:t", priority=9), BORROWER], [firm, _gpus("extra", 4)])
    assert _evicted(_asks(world, _gpus("w", 5, "team:t"))) == {}


def test_firm_work_above_a_reservation_that_fell_stays() -> None:
    """INV-5: it borrows, and is firm."""
    firm = make.request("firm", "team:b", {"gpu": 4}, preemptible=False)
    world = _world([make.policy("team:t", {"gpu": 4}), BORROWER], [firm, _gpus("extra", 4)])
    for policy in (make.policy("team:b", {"gpu": 1}), make.policy("team:t", {"gpu": 7})):
        world.apply(ev.PolicySet(policy=policy), make.START)
    assert _evicted(_asks(world, _gpus("x", 7, "team:t"))) == {}, "4 is the most that can be freed for it"
    assert _evicted(_asks(world, _gpus("w", 4, "team:t"))) == {"extra": Because.RECLAIM}


# ---- which of them ---------------------------------------------------------------------------------------------------


def test_others_give_way_by_priority_then_share_then_request_priority_then_age() -> None:
    """S29: each of these comes before all that follow."""
    policies = [
        make.policy("team:t", {"gpu": 5}),
        make.policy("team:low", priority=-1),
        make.policy("team:far"),
        make.policy("team:near"),
    ]
    pool = make.pool("p", {"gpu": 9})
    running = [  # the oldest first: age alone would choose otherwise every time
        _gpus("low", 1, "team:low"),
        _gpus("old", 1, "team:far"),
        _gpus("new", 1, "team:far"),
        _gpus("important", 2, "team:far", priority=1),
        _gpus("near", 1, "team:near"),
        _gpus("own", 3, "team:t"),
    ]
    assert _evicted(_asks(_world(policies, running, pool), _gpus("w", 1, "team:t"))) == {"low": Because.RECLAIM}
    assert set(_evicted(_asks(_world(policies, running, pool), _gpus("w", 2, "team:t")))) == {"low", "new"}


def test_own_work_in_share_does_not_give_way_for_a_key_of_which_nothing_is_reserved() -> None:
    """S20, S28: with a thousandth of a licence `w` would borrow as a whole, so that shares are judged without it."""
    pool = make.pool("p", {"gpu": 4, "lic": 1})
    world = _world([make.policy("team:t", {"gpu": 4})], [_gpus("own", 4, "team:t")], pool)
    borrows = make.request("w", "team:t", {"gpu": 4, "lic": 0.001}, priority=9)
    assert _evicted(_asks(world, borrows)) == {}
    assert _evicted(_asks(world, _gpus("x", 4, "team:t", priority=9))) == {"own": Because.PRIORITY}


def test_own_work_goes_newest_first() -> None:
    """S29."""
    running = [_gpus(name, 2, "team:t") for name in "abcd"]
    made = _asks(_world([make.policy("team:t")], running), _gpus("w", 2, "team:t", priority=1))
    assert _evicted(made) == {"d": Because.PRIORITY}


def test_a_policy_stops_giving_once_it_is_back_inside_its_reservation() -> None:
    """S29: of 6 with 4 reserved only one of 2 may be taken."""
    high = make.policy("team:t", priority=9)
    running = [_gpus("a", 2), _gpus("b", 2), _gpus("c", 2), _gpus("own", 2, "team:t")]
    world = _world([high, BORROWER], running)
    assert _evicted(_asks(world, _gpus("w", 4, "team:t"))) == {}, "taking 2 would not do"
    assert _evicted(_asks(world, _gpus("x", 2, "team:t"))) == {"c": Because.PRIORITY}


SIZES = [
    ([1, 1, 1, 1, 4], 4),
    ([4, 1, 1, 1, 1], 4),
    ([1, 2, 1, 3, 1], 3),
    ([3, 3, 2], 2),
    ([1, 1, 1, 5], 5),
    ([2, 1, 5], 6),
    ([0.5, 0.5, 1, 2, 3], 4),
]


@pytest.mark.parametrize(("sizes", "asked"), SIZES)
def test_with_any_one_victim_spared_it_would_not_fit(sizes: list[float], asked: float) -> None:
    """S29: no smaller subset of the chosen set would do."""
    policies = [make.policy("team:t", {"gpu": 8}), make.policy("team:b")]
    world = _world(policies, [_gpus(f"b{at}", size) for at, size in enumerate(sizes)])
    request = _gpus("w", asked, "team:t")
    victims = list(_evicted(_asks(world, request)))
    assert victims
    for spared in victims:
        tried = _world(policies, [_gpus(f"b{at}", size) for at, size in enumerate(sizes)])
        for victim in victims:
            if victim != spared:
                tried.apply(ev.Ended(request=RequestId(victim), how=Status.RELEASED), make.START)
        pool = tried.books[P]
        ours = pool.policies[PolicyId("p/team:t")]
        assert not amounts_fit_after(pool, ours, request.demand.total) or (
            pool.nodes.place_after(request.demand.parts) is None
        ), f"{spared} need not have gone"


def test_a_victim_on_another_node_would_not_help_and_is_spared() -> None:
    """S8, S29: the newest borrower lies where nobody needs it."""
    pool = make.pool(nodes={"n1": {"gpu": 4, "mcpu": 4000}, "n2": {"gpu": 1}})
    world = _world(
        [make.policy("team:t", {"gpu": 4, "mcpu": 4000}), make.policy("team:b")], [_gpus("a", 4), _gpus("b", 1)], pool
    )
    assert world.allocations[RequestId("b")].parts[0].node == "n2"
    assert set(_evicted(_asks(world, _gpus("w", 2, "team:t")))) == {"a"}


# ---- meanwhile -------------------------------------------------------------------------------------------------------


def test_what_is_being_freed_is_kept_for_whom_it_was_freed() -> None:
    """S31: a request that comes later does not slip in, and causes no eviction for the same room."""
    world = _world([OWNER, make.policy("team:b"), make.policy("team:c", priority=50)], [_gpus("b", 8)])
    _asks(world, _gpus("w", 4, "team:t"))
    world.apply(ev.Ended(request=RequestId("b"), how=Status.RELEASED), make.START)
    world.apply(ev.Submitted(request=_gpus("c", 8, "team:c")), make.START)
    made = decide(world, make.START)
    assert [grant.request for grant in made.grants] == ["w"]
    assert world.status_of(RequestId("c")) is Status.QUEUED


def test_who_is_withdrawn_frees_what_was_kept_for_it() -> None:
    """S31: until that request is granted or withdrawn."""
    world = _world([OWNER, make.policy("team:b")], [_gpus("b", 8)])
    _asks(world, _gpus("w", 4, "team:t"))
    world.apply(ev.Ended(request=W, how=Status.CANCELLED), make.START)
    world.apply(ev.Ended(request=RequestId("b"), how=Status.RELEASED), make.START)
    made = _asks(world, _gpus("c", 8))
    assert [grant.request for grant in made.grants] == ["c"]
    assert dict(world.claims) == {}


def test_an_operator_may_have_borrowers_leave_a_pool_that_shrank() -> None:
    """S9: only as many as it takes, and never otherwise."""
    world = _world([make.policy("team:t", {"gpu": 2}), make.policy("team:b")], [_gpus(f"b{at}", 2) for at in range(4)])
    world.apply(ev.PoolSet(pool=make.pool("p", {"gpu": 5})), make.START)
    assert plan(world, make.START).is_empty
    world.apply(ev.BorrowersEvicted(pool=P), make.START)
    made = decide(world, make.START)
    assert _evicted(made) == {"b2": Because.CAPACITY, "b3": Because.CAPACITY}
    assert {evict.cause for evict in made.evictions} == {None}
    assert world.snapshot().evict_borrowers == (), "it is asked for once"


# ---- more than one part ----------------------------------------------------------------------------------------------


def test_room_is_made_for_all_parts_of_a_gang_at_once() -> None:
    """S3, S8: on two of three nodes; the third borrower is spared."""
    pool = make.pool(nodes={name: {"gpu": 4} for name in ("n1", "n2", "n3")})
    world = _world([make.policy("team:t", {"gpu": 8}), make.policy("team:b")], [_gpus(n, 4) for n in "abc"], pool)
    made = _asks(world, make.request("gang", "team:t", {"gpu": 4}, {"gpu": 4}))
    assert set(_evicted(made)) == {"b", "c"}
    assert sorted(part.node for part in made.claims[0].parts) == ["n2", "n3"]


def test_who_frees_a_fraction_on_the_right_device_is_chosen() -> None:
    """S2, S8: the halves of one device, and not the newest of all, which is alone on another."""
    world = _world(
        [make.policy("team:t", {"gpu": 1}), make.policy("team:b"), make.policy("team:keep", {"gpu": 1})],
        [_gpus("a", 0.5), _gpus("b", 0.5), _gpus("firm", 0.5, "team:keep"), _gpus("c", 0.5)],
        make.pool("p", {"gpu": 2}),
    )
    assert set(_evicted(_asks(world, _gpus("w", 1, "team:t")))) == {"a", "b"}


def test_a_gang_of_halves_takes_the_halves_that_are_there() -> None:
    world = _world(
        [make.policy("team:t", {"gpu": 1}), make.policy("team:b")],
        [_gpus("a", 0.5), _gpus("b", 0.5)],
        make.pool("p", {"gpu": 1}),
    )
    assert set(_evicted(_asks(world, make.request("w", "team:t", {"gpu": 0.5}, {"gpu": 0.5})))) == {"a", "b"}


# ---- firm requests, and capacity that is held ------------------------------------------------------------------------


def test_no_eviction_makes_a_firm_request_entitled() -> None:
    """S22: with 3 of 4 in firm use its own borrowing work is left alone."""
    firm = make.request("firm", "team:t", {"gpu": 3}, preemptible=False)
    world = _world([make.policy("team:t", {"gpu": 4})], [firm, _gpus("own", 5, "team:t")])
    made = _asks(world, make.request("w", "team:t", {"gpu": 2}, preemptible=False))
    assert made.is_empty
    assert world.status_of(W) is Status.QUEUED


def test_a_firm_request_that_is_entitled_reclaims_from_own_borrowing_work() -> None:
    """S28: firm over preemptible."""
    world = _world([make.policy("team:t", {"gpu": 4})], [_gpus("own", 8, "team:t")])
    made = _asks(world, make.request("w", "team:t", {"gpu": 4}, preemptible=False))
    assert _evicted(made) == {"own": Because.PRIORITY}


def test_evictions_reckon_with_capacity_that_is_held_for_an_older_request() -> None:
    """S25, S31: the 2 free GPUs are held for `old`, so that `w` needs all 3 of its own work, not 1 and those."""
    pool = make.pool("p", {"gpu": 8}, max_bypass_s=0)
    policies = [make.policy("team:old", priority=5), make.policy("team:t"), make.policy("team:x", {"gpu": 3})]
    firm = make.request("firm", "team:x", {"gpu": 3}, preemptible=False)
    world = _world(policies, [firm, _gpus("a", 2, "team:t"), _gpus("b", 1, "team:t")], pool)
    assert _evicted(_asks(world, _gpus("old", 6, "team:old"))) == {}, "5 is the most that can be freed for it"
    made = _asks(world, _gpus("w", 3, "team:t", priority=1))
    assert _evicted(made) == {"a": Because.PRIORITY, "b": Because.PRIORITY}
    assert made.grants == ()
    assert [(hold.pool, hold.request) for hold in made.holds] == [("p", "old")]


# ---- ties between policies -------------------------------------------------------------------------------------------


def _between_equals(**priorities: int) -> set[str]:
    """Who of two policies with one borrower of 4 each gives way; `a` was granted before `b`."""
    policies = [make.policy("team:t", {"gpu": 4}), make.policy("team:a"), make.policy("team:b")]
    running = [_gpus(name, 4, f"team:{name}", priority=priorities.get(name, 0)) for name in "ab"]
    return set(_evicted(_asks(_world(policies, running), _gpus("w", 4, "team:t"))))


def test_between_equal_policies_the_lower_request_priority_gives_way_and_then_who_came_last() -> None:
    """S29."""
    assert _between_equals() == {"b"}
    assert _between_equals(b=1) == {"a"}


def test_victims_that_lie_far_from_where_room_is_made_are_spared() -> None:
    """S8, S29: no node but `big` could ever hold `w`."""
    pool = make.pool(nodes={"big": {"gpu": 4}, **{f"s{number}": {"gpu": 1} for number in range(4)}})
    running = [_gpus("b4", 4), *(_gpus(f"far{number}", 1) for number in range(4))]
    world = _world([make.policy("team:t", {"gpu": 4}), make.policy("team:b")], running, pool)
    assert set(_evicted(_asks(world, _gpus("w", 3, "team:t")))) == {"b4"}


def test_a_victim_on_another_node_goes_too_where_it_holds_what_is_the_pools() -> None:
    """S6, S29: `b` lies on the wrong node, and holds the licence that `w` needs."""
    pool = make.pool("p", {"lic": 1}, nodes={"n1": {"gpu": 2}, "n2": {"gpu": 1}})
    running = [_gpus("a", 2), make.request("b", "team:b", {"gpu": 1, "lic": 1})]
    world = _world([make.policy("team:t", {"gpu": 2, "lic": 1}), make.policy("team:b")], running, pool)
    assert [world.allocations[RequestId(name)].parts[0].node for name in "ab"] == ["n1", "n2"]
    made = _asks(world, make.request("w", "team:t", {"gpu": 2, "lic": 1}))
    assert set(_evicted(made)) == {"a", "b"}


def test_room_on_one_of_a_victims_nodes_is_room() -> None:
    """S29: `s1` and `s2` hold enough, on two nodes. `gang` frees enough on n3, though not on n1, so that `last`, whose
    turn would be next, stays; and then `s1` and `s2` are not needed either."""
    sizes = {"n1": 4, "n2": 4, "n3": 4, "n4": 2, "n5": 2}
    pool = make.pool(nodes={name: {"gpu": gpus} for name, gpus in sizes.items()})
    policies = [make.policy("team:t", {"gpu": 4}), make.policy("team:b"), make.policy("team:x", {"gpu": 3})]
    firm = make.request("firm", "team:x", {"gpu": 3}, preemptible=False)
    gang = make.request("gang", "team:b", {"gpu": 4}, {"gpu": 1})
    world = _world(policies, [firm, _gpus("last", 4), gang, _gpus("s1", 2), _gpus("s2", 2)], pool)
    lying = {str(name): [part.node for part in held.parts] for name, held in world.allocations.items()}
    assert lying == {"firm": ["n1"], "last": ["n2"], "gang": ["n3", "n1"], "s1": ["n4"], "s2": ["n5"]}
    assert set(_evicted(_asks(world, _gpus("w", 4, "team:t")))) == {"gang"}


def test_a_thousandth_too_much_is_no_reclaim() -> None:
    """S28: the whole usage, with it, stays inside the reservation or it does not."""
    for mine, expected in ((0.001, {}), (0, {"b": Because.RECLAIM})):
        world = make.world(make.pool("p", {"cpu": 8}), make.policy("team:t", {"cpu": 4}), make.policy("team:b"))
        running = [make.request("mine", "team:t", {"cpu": mine})] if mine else []
        for request in [*running, make.request("b", "team:b", {"cpu": 7.5})]:
            world.apply(ev.Submitted(request=request), make.START)
            decide(world, make.START)
        assert _evicted(_asks(world, make.request("w", "team:t", {"cpu": 4}))) == expected


def test_room_is_made_for_a_gang_that_only_a_search_places() -> None:
    """S3, S8: best fit would lay the part of 2 GPUs on n1, where alone the CPUs of the other are."""
    pool = make.pool(nodes={"n1": {"gpu": 2, "mcpu": 8}, "n2": {"gpu": 4, "mcpu": 1}})
    running = [make.request("b1", "team:b", {"gpu": 4}), make.request("b2", "team:b", {"gpu": 2, "mcpu": 8})]
    world = _world([make.policy("team:t", {"gpu": 6, "mcpu": 9}), make.policy("team:b")], running, pool)
    gang = make.request("gang", "team:t", {"gpu": 2, "mcpu": 1}, {"gpu": 1, "mcpu": 8})
    made = _asks(world, gang)
    assert set(_evicted(made)) == {"b1", "b2"}
    assert [part.node for part in made.claims[0].parts] == ["n2", "n1"]


def test_an_operator_takes_only_from_who_holds_what_is_over() -> None:
    """S9, S29: `lic` fits, `gpu` does not; who holds only licences stays, though its turn would come first."""
    pool = make.pool("p", {"gpu": 4, "lic": 2})
    running = [_gpus("g1", 2), _gpus("g2", 2), make.request("l", "team:b", {"lic": 2})]
    world = _world([make.policy("team:b")], running, pool)
    world.apply(ev.PoolSet(pool=make.pool("p", {"gpu": 3, "lic": 2})), make.START)
    world.apply(ev.BorrowersEvicted(pool=P), make.START)
    assert set(_evicted(decide(world, make.START))) == {"g2"}


def test_an_operator_spares_whom_a_later_victim_makes_needless() -> None:
    """S9: as few as will do."""
    world = _world([make.policy("team:b")], [_gpus("large", 4), _gpus("small", 1), _gpus("tiny", 1)])
    world.apply(ev.PoolSet(pool=make.pool("p", {"gpu": 2})), make.START)
    world.apply(ev.BorrowersEvicted(pool=P), make.START)
    assert set(_evicted(decide(world, make.START))) == {"large"}


def test_room_for_parts_of_several_sizes_is_counted_in_devices() -> None:
    """S8: 1 and four times 0.6 are 3.4 by sums, and five devices."""
    world = _world([make.policy("team:t", {"gpu": 5}), make.policy("team:b")], [_gpus(n, 1) for n in "abcde"],
                   make.pool("p", {"gpu": 5}))  # fmt: skip
    asked = make.request("w", "team:t", {"gpu": 1}, *[{"gpu": 0.6}] * 4)
    assert set(_evicted(_asks(world, asked))) == set("abcde")


def test_room_that_one_node_has_by_amounts_but_not_on_one_device_is_made_on_another() -> None:
    pool = make.pool("p", nodes={"n0": {"gpu": 3}, "n1": {"gpu": 3}})
    in_share = [_gpus(f"s{at}", 0.6, "team:s") for at in range(3)]  # one on each device of n0: 1.2 GPUs are free there
    policies = [make.policy("team:s", {"gpu": 2}), make.policy("team:t", {"gpu": 1}), make.policy("team:b")]
    made = _asks(_world(policies, [*in_share, _gpus("b", 3)], pool), _gpus("w", 1, "team:t"))
    assert _evicted(made) == {"b": Because.RECLAIM}
    assert [place.node for claim in made.claims for place in claim.parts] == ["n1"]

"""What is under way when pools and policies change: what is kept stays, moves or ends; what runs goes on (S6, S31)."""

from __future__ import annotations

from dataclasses import replace

from fairpool.core import events as ev
from fairpool.core.audit import audit
from fairpool.core.ids import PolicyId, PoolId, RequestId
from fairpool.core.planner import decide, plan
from fairpool.core.pools import Node, NodeState, Pool, PoolState
from fairpool.core.requests import Request, Status
from fairpool.core.world import World
from fairpool.testing import builders as make

P = PoolId("p")
W = RequestId("w")
NODES = make.pool(nodes={"n1": {"gpu": 4}, "n2": {"gpu": 4}})


def _ask(name: str, gpus: float, subject: str = "team:b", *, preemptible: bool = True) -> Request:
    return make.request(name, subject, {"gpu": gpus}, preemptible=preemptible)


def _evicting(pool: Pool = NODES) -> World:
    """`b1` and `b2` hold a node each; `b2`, the newer one, must let go for `w`."""
    policies = (make.policy("team:t", {"gpu": 4}), make.policy("team:b"))
    world = make.settled(pool, *policies, later=[_ask("b1", 4), _ask("b2", 4), _ask("w", 4, "team:t")])
    assert world.claims[W].parts[0].node in ("n2", "")
    return world


def _with_node(pool: Pool, name: str, state: NodeState) -> Pool:
    nodes = tuple(replace(node, state=state) if node.name == name else node for node in pool.nodes)
    return replace(pool, nodes=nodes)


def _apply(world: World, event: ev.Event) -> None:
    world.apply(event, make.START)


def _release(world: World, request: str) -> None:
    _apply(world, ev.Ended(request=RequestId(request), how=Status.RELEASED))


# ---- what is kept (S31) ----------------------------------------------------------------------------------------------


def test_what_is_kept_stays_where_it_is_through_a_change_that_does_not_touch_it() -> None:
    """S31: the very same node and devices."""
    world = _evicting()
    kept = world.claims[W]
    bigger = replace(NODES, nodes=(*NODES.nodes, Node(name="n3", capacity=(("gpu", 1000),))))
    _apply(world, ev.PoolSet(pool=bigger))
    made = decide(world, make.START)
    assert (made.claims, made.unclaims) == ((), ())
    assert world.claims[W] == kept
    _release(world, "b2")
    (grant,) = decide(world, make.START).grants
    assert grant.allocation.parts == kept.parts


def test_what_is_kept_moves_when_its_node_fails_and_another_is_there() -> None:
    world = _evicting()
    third = Node(name="n3", capacity=(("gpu", 4000),))
    _apply(world, ev.PoolSet(pool=_with_node(replace(NODES, nodes=(*NODES.nodes, third)), "n2", NodeState.DOWN)))
    made = decide(world, make.START)
    assert [(str(grant.request), grant.allocation.parts[0].node) for grant in made.grants] == [("w", "n3")]
    assert dict(world.claims) == {}


def test_what_is_kept_ends_when_it_fits_nowhere_any_more() -> None:
    """`w` waits like others again, and may evict on the node that is left."""
    world = _evicting()
    _apply(world, ev.PoolSet(pool=_with_node(NODES, "n2", NodeState.DOWN)))
    made = decide(world, make.START)
    assert [evict.request for evict in made.evictions] == ["b1"]
    assert [claim.parts[0].node for claim in made.claims] == ["n1"]
    assert audit(world, make.START) == ()


def test_what_is_kept_for_firm_work_ends_when_its_reservation_falls() -> None:
    """S22."""
    policies = (make.policy("team:t", {"gpu": 4}), make.policy("team:b"))
    firm = _ask("w", 4, "team:t", preemptible=False)
    world = make.settled(NODES, *policies, later=[_ask("b1", 4), _ask("b2", 4), firm])
    assert set(world.claims) == {"w"}
    _apply(world, ev.PolicySet(policy=make.policy("team:t", {"gpu": 2})))
    made = decide(world, make.START)
    assert [reject.request for reject in made.rejects] == ["w"]
    assert dict(world.claims) == {}


def test_in_a_pool_on_its_way_out_nothing_is_kept_once_the_victims_have_gone() -> None:
    """S10: it grants nothing."""
    world = _evicting()
    _apply(world, ev.PoolSet(pool=replace(NODES, state=PoolState.DRAINING)))
    decide(world, make.START)
    _release(world, "b2")
    made = decide(world, make.START)
    assert made.unclaims == ("w",)
    assert world.status_of(W) is Status.QUEUED
    assert dict(world.claims) == {}


def test_a_request_keeps_what_is_kept_for_it_when_it_may_go_elsewhere_too() -> None:
    """A second pool opens that is full: the claim in the first one stands."""
    world = _evicting()
    kept = world.claims[W]
    _apply(world, ev.PoolSet(pool=make.pool("q", {"gpu": 4})))
    _apply(world, ev.PolicySet(policy=make.policy("team:x", pool="q")))
    _apply(world, ev.Submitted(request=_ask("x", 4, "team:x")))
    decide(world, make.START)
    _apply(world, ev.PolicySet(policy=make.policy("team:t", pool="q")))
    assert decide(world, make.START).grants == ()
    assert world.claims[W] == kept


def test_in_strict_order_nobody_passes_whom_an_eviction_is_under_way_for() -> None:
    """S25: not even where there is room."""
    pool = replace(NODES, backfill=False, nodes=(*NODES.nodes, Node(name="n3", capacity=(("gpu", 1000),))))
    world = _evicting(pool)
    _apply(world, ev.Submitted(request=_ask("small", 1)))
    assert plan(world, make.START).grants == ()
    relaxed = world.copy()
    _apply(relaxed, ev.PoolSet(pool=replace(pool, backfill=True)))
    assert [grant.request for grant in plan(relaxed, make.START).grants] == ["small"]


# ---- what runs -------------------------------------------------------------------------------------------------------


def test_work_on_a_node_that_was_taken_out_goes_on_and_its_end_frees_nothing() -> None:
    """S6: adding or taking a node is no reason to evict."""
    world = make.settled(NODES, make.policy(), later=[_ask("a", 4, "team:t"), _ask("b", 2, "team:t")])
    _apply(world, ev.PoolSet(pool=make.pool(nodes={"n2": {"gpu": 4}})))
    decide(world, make.START)
    assert set(world.allocations) == {"a", "b"}
    assert world.free(P) == {"gpu": 2000}
    _release(world, "a")
    assert world.free(P) == {"gpu": 2000}
    assert audit(world, make.START) == ()


def test_work_of_a_dropped_policy_stays_on_the_books_through_later_changes_until_it_ends() -> None:
    world = make.settled(make.pool("p", {"gpu": 8}), make.policy("team:t"), make.policy("team:b"), _ask("a", 2))
    _apply(world, ev.PolicyDropped(policy=PolicyId("p/team:b")))
    _apply(world, ev.PoolSet(pool=make.pool("p", {"gpu": 6})))
    assert world.usage(P) == {"gpu": 2000}
    assert str(world.books[P].policies[PolicyId("p/team:b")].policy.subject) == "team:b"
    _release(world, "a")
    assert PolicyId("p/team:b") not in world.books[P].policies
    assert world.free(P) == {"gpu": 6000}


def test_a_policy_may_move_to_another_pool_and_leaves_the_first() -> None:
    world = make.world(make.pool("p", {"gpu": 8}), make.pool("q", {"gpu": 8}), make.policy("team:t"))
    moved = replace(make.policy("team:t"), pool=PoolId("q"))
    _apply(world, ev.PolicySet(policy=moved))
    assert (list(world.books[P].policies), list(world.books[PoolId("q")].policies)) == ([], [moved.id])


def test_planning_does_not_use_up_what_an_operator_asked_for() -> None:
    """S9: the eviction of borrowers is asked for once, and done by the next decision, not by a look at it."""
    world = make.settled(
        make.pool("p", {"gpu": 8}), make.policy(), later=[_ask("a", 4, "team:t"), _ask("b", 4, "team:t")]
    )
    _apply(world, ev.PoolSet(pool=make.pool("p", {"gpu": 4})))
    _apply(world, ev.BorrowersEvicted(pool=P))
    seen = [[str(evict.request) for evict in plan(world, make.START).evictions] for _ in range(2)]
    assert seen == [["b"], ["b"]]
    assert [evict.request for evict in decide(world, make.START).evictions] == ["b"]
    assert decide(world, make.START).is_empty


def test_borrowers_leave_a_smaller_pool_only_as_far_as_it_takes() -> None:
    """S9: `c` alone does not do, and with `b` gone `c` may stay."""
    running = [_ask("a", 2, "team:t"), _ask("b", 4, "team:t"), _ask("c", 1, "team:t")]
    world = make.settled(make.pool("p", {"gpu": 8}), make.policy(), later=running)
    _apply(world, ev.PoolSet(pool=make.pool("p", {"gpu": 4})))
    _apply(world, ev.BorrowersEvicted(pool=P))
    assert [evict.request for evict in decide(world, make.START).evictions] == ["b"]


def test_the_very_devices_are_kept_though_others_would_come_first_now() -> None:
    """S31: device 0 has become free meanwhile. `w` needs all CPUs of the node."""
    policies = (make.policy("team:t", {"gpu": 4, "mcpu": 1}), make.policy("team:b"))
    running = [_ask("small", 1), _ask("b1", 3), _ask("b2", 4)]
    pool = make.pool(nodes={"n1": {"gpu": 8, "mcpu": 1}})
    asked = make.request("w", "team:t", {"gpu": 4, "mcpu": 1})
    world = make.settled(pool, *policies, later=[*running, asked])
    kept = world.claims[W]
    _release(world, "small")
    _apply(world, ev.PoolSet(pool=replace(pool, max_bypass_s=5)))
    assert decide(world, make.START).claims == ()
    assert world.claims[W] == kept
    assert [device for device, _ in kept.parts[0].devices] == [4, 5, 6, 7]


# ---- a restart before the next decision (INV-9) ----------------------------------------------------------------------


def test_a_restart_between_a_change_and_the_decision_changes_nothing() -> None:
    """INV-9: what is to be placed anew, and what an operator asked for, is in the snapshot."""
    claimed = _evicting()
    _apply(claimed, ev.PoolSet(pool=_with_node(NODES, "n2", NodeState.DOWN)))
    asked = make.settled(
        make.pool("p", {"gpu": 8}), make.policy(), later=[_ask("a", 4, "team:t"), _ask("b", 4, "team:t")]
    )
    _apply(asked, ev.PoolSet(pool=make.pool("p", {"gpu": 4})))
    _apply(asked, ev.BorrowersEvicted(pool=P))
    for world in (claimed, asked):
        made = plan(world, make.START)
        assert made.evictions
        assert plan(world.copy(), make.START) == made


# ---- several changes at once -----------------------------------------------------------------------------------------


def test_requests_that_others_ask_as_and_rules_change_in_one_and_all_are_looked_at() -> None:
    """S17: of the two that wait one is made somebody else's, while the limit falls for both."""
    limited = make.policy("team:t", None, {"gpu": 4})
    world = make.settled(make.pool("p", {"gpu": 8}), limited, make.policy("team:b"), _ask("a", 4, "team:t"))
    for request in (_ask("w", 6, "team:b"), _ask("other", 6)):
        _apply(world, ev.Submitted(request=request))
    decide(world, make.START)
    moved = replace(world.request(RequestId("other")), subjects=_ask("x", 1, "team:t").subjects)
    narrow = make.policy("team:b", None, {"gpu": 4})
    changes = ev.Together(events=(ev.Redirected(request=moved), ev.PolicySet(policy=narrow)))
    _apply(world, changes)
    made = decide(world, make.START)
    assert [reject.request for reject in made.rejects] == ["w"], "no number allows six any more"
    assert [cancel.request for cancel in made.cancels] == ["other"], "it has lost its right"


def test_what_is_kept_in_one_pool_stays_when_another_pool_of_its_policy_goes() -> None:
    """S10, S31."""
    a, b = make.pool("a", {"gpu": 4}), make.pool("b", {"gpu": 4})
    owner = make.policy("team:t", {"gpu": 4}, pool="a", also=("b",))
    guests = [make.policy("team:b", pool=name) for name in "ab"]
    running = [make.request(f"in_{name}", "team:b", {"gpu": 4}, pool=name) for name in "ab"]
    world = make.settled(a, b, owner, *guests, *running, later=[make.request("w", "team:t", {"gpu": 4}, pool="b")])
    kept = world.claims[W]
    assert kept.pool == "b"
    _apply(world, ev.PoolDropped(pool=PoolId("a")))
    made = decide(world, make.START)
    assert (made.claims, made.unclaims, made.evictions) == ((), (), ())
    assert world.claims[W] == kept


def test_a_carve_out_that_goes_leaves_those_of_others_alone() -> None:
    """S14: two GPUs each are dedicated to two teams; one of the policies is dropped."""
    owners = [make.policy(f"team:{name}", {"gpu": 2}, dedicated=True) for name in ("x", "y")]
    world = make.settled(make.pool("p", {"gpu": 4}), *owners, make.policy("team:b"), later=[_ask("a", 3), _ask("b", 2)])
    assert set(world.queued) == {"a", "b"}
    _apply(world, ev.PolicyDropped(policy=PolicyId("p/team:x")))
    assert [grant.request for grant in decide(world, make.START).grants] == ["b"], "and not `a`, though it comes first"


# ---- bounds that fell ------------------------------------------------------------------------------------------------


def test_what_was_in_use_when_a_bound_fell_is_remembered_to_the_thousandth() -> None:
    """S9, INV-1 to INV-3: as much may go on, and no more."""
    nodes = make.pool("p", {"lic": 3}, nodes={"n1": {"gpu": 4, "mcpu": 8}})
    policies = [make.policy("team:t", {"gpu": 2, "mcpu": 1, "lic": 1}), make.policy("team:b")]
    running = [
        make.request("firm", "team:t", {"gpu": 1, "mcpu": 1, "lic": 1}, preemptible=False),
        make.request("mine", "team:t", {"gpu": 1, "lic": 1}),
        make.request("guest", "team:b", {"gpu": 2, "mcpu": 2}),
    ]
    world = make.settled(nodes, *policies, *running)
    _apply(world, ev.PoolSet(pool=nodes))
    excused = {bound: value for bound, value in world.books[P].excused.items() if value}
    assert excused == {
        ("limit p/team:t", "gpu"): 2000,
        ("limit p/team:t", "mcpu"): 1000,
        ("limit p/team:t", "lic"): 2000,
        ("reserved p/team:t", "gpu"): 1000,
        ("reserved p/team:t", "mcpu"): 1000,
        ("reserved p/team:t", "lic"): 1000,
        ("limit p/team:b", "gpu"): 2000,
        ("limit p/team:b", "mcpu"): 2000,
        ("capacity", "gpu"): 4000,
        ("capacity", "mcpu"): 3000,
        ("capacity", "lic"): 2000,
        ("node n1", "gpu"): 4000,
        ("node n1", "mcpu"): 3000,
        ("node n1", "lic"): 2000,
    }

"""Queued requests when the rules change: made as others (place and claim stay), or without a right (S17)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fairpool.core import events as ev
from fairpool.core.audit import audit
from fairpool.core.errors import InvalidInput, InvalidRules, UnknownObject
from fairpool.core.explain import explain
from fairpool.core.ids import PolicyId, PoolId, ProfileId, RequestId
from fairpool.core.planner import decide, plan
from fairpool.core.policies import Policy, Profile, Subject
from fairpool.core.pools import PoolState
from fairpool.core.reasons import Code
from fairpool.core.requests import Request, Status
from fairpool.core.world import World
from fairpool.testing import builders as make

W = RequestId("w")
EIGHT = make.pool("p", {"gpu": 8})
HALF = Profile(id=ProfileId("half"), name="half", demand=(("gpu", 500),), pools=("p",))


def _waiting(request: Request, *policies: Policy) -> World:
    """`w` waits behind work that fills the pool."""
    rules = policies or (make.policy(),)
    return make.settled(EIGHT, HALF, *rules, make.request("a", str(rules[0].subject), {"gpu": 8}), later=[request])


def _apply(world: World, *happened: ev.RuleEvent) -> None:
    world.apply(ev.Together(events=happened), make.START)


def _lost(world: World) -> list[tuple[Code, str]]:
    """Why the next decision cancels `w`; the same after a restart, and whoever asks is told so."""
    made = plan(world, make.START)
    assert plan(world.copy(), make.START) == made
    (cancel,) = made.cancels
    told = explain(world, W, make.START)
    assert (told.status, told.reasons) == (Status.CANCELLED, cancel.reasons)
    return [(reason.code, reason.name) for reason in cancel.reasons]


@pytest.mark.parametrize(
    ("event", "code", "name"),
    [
        (ev.PolicyDropped(policy=PolicyId("p/team:t")), Code.POLICY_GONE, "team:t"),
        (
            ev.PolicySet(policy=replace(make.policy(), subject=Subject.parse("team:u"))),
            Code.POLICY_OF_OTHERS,
            "team:t",
        ),
        (ev.ProfileDropped(name="half"), Code.PROFILE_GONE, "half"),
        (ev.ProfileSet(profile=replace(HALF, pools=("q",))), Code.PROFILE_WITHDRAWN, "half"),
        (ev.PolicySet(policy=make.policy(profiles=("one",))), Code.PROFILE_WITHDRAWN, "half"),
        (ev.PoolSet(pool=make.pool("p", {"gpu": 8}, components=frozenset({"k8s"}))), Code.POOL_OUT_OF_REACH, "p"),
        (ev.Redirected(request=make.request("w", "user:ann", profile="half")), Code.POLICY_OF_OTHERS, "team:t"),
    ],
)
def test_the_last_right_that_goes_cancels_and_is_named(event: ev.RuleEvent, code: Code, name: str) -> None:
    """S17: code, and how that was called which is there no more."""
    world = _waiting(make.request("w", profile="half"))
    _apply(world, event)
    assert _lost(world) == [(code, name)]
    decide(world, make.START)
    assert world.queue.lapsed == {}
    assert audit(world, make.START) == ()


def test_a_right_that_comes_back_before_anybody_decides_was_never_lost() -> None:
    world = _waiting(make.request("w"))
    world.apply(ev.PolicyDropped(policy=PolicyId("p/team:t")), make.START)
    assert set(world.queue.lapsed) == {"w"}
    world.apply(ev.PolicySet(policy=make.policy()), make.START)
    assert world.queue.lapsed == {}
    assert plan(world, make.START).is_empty


def test_what_a_request_waited_for_is_named_though_more_goes_before_anybody_decides() -> None:
    world = _waiting(make.request("w", profile="half"))
    world.apply(ev.ProfileDropped(name="half"), make.START)
    world.apply(ev.PolicyDropped(policy=PolicyId("p/team:t")), make.START)
    assert _lost(world) == [(Code.PROFILE_GONE, "half")]


def test_who_withdraws_before_anybody_decides_leaves_nothing_behind() -> None:
    world = _waiting(make.request("w"))
    world.apply(ev.PolicyDropped(policy=PolicyId("p/team:t")), make.START)
    world.apply(ev.Ended(request=W, how=Status.CANCELLED), make.START)
    assert world.queue.lapsed == {}
    assert plan(world, make.START).is_empty


def test_deleting_the_policy_of_a_component_sets_nobody_free() -> None:
    """S15, S17: what waited is cancelled; what is submitted from now on is ungoverned."""
    world = _waiting(make.request("w", "component:k8s"), make.policy("component:k8s"))
    _apply(world, ev.PolicyDropped(policy=PolicyId("p/component:k8s")))
    assert _lost(world) == [(Code.POLICY_GONE, "component:k8s")]
    world.apply(ev.Submitted(request=make.request("x", "component:k8s")), make.START)
    assert [grant.request for grant in decide(world, make.START).grants] == ["x"]


def test_a_right_lost_here_and_numbers_that_fell_there_reject() -> None:
    """S17: were the numbers as before, it would wait on."""
    both = make.request("w", ("team:t", "team:u"), {"gpu": 4})
    world = _waiting(both, make.policy(), make.policy("team:u"))
    small = make.policy("team:u", None, {"gpu": 2})
    _apply(world, ev.PolicyDropped(policy=PolicyId("p/team:t")), ev.PolicySet(policy=small))
    (reject,) = plan(world, make.START).rejects
    assert {reason.code for reason in reject.reasons} == {Code.POLICY_GONE, Code.EXCEEDS_POLICY_LIMIT}


# ---- made as others --------------------------------------------------------------------------------------------------


def test_a_redirected_request_stands_where_it_stood() -> None:
    """S23, S24: it keeps its id and the time it was first queued, in another policy's line as well."""
    world = _waiting(make.request("w"), make.policy(), make.policy("team:u"))
    world.apply(ev.Submitted(request=make.request("x", "team:u", {"gpu": 8})), make.START)
    decide(world, make.START)
    moved = make.request("w", "team:u")
    _apply(world, ev.Redirected(request=moved))
    assert plan(world, make.START).is_empty
    assert world.request(W) == moved
    assert world.copy().snapshot() == world.snapshot()
    world.apply(ev.Ended(request=RequestId("a"), how=Status.RELEASED), make.START)
    (grant,) = decide(world, make.START).grants
    assert (grant.request, grant.allocation.policy) == ("w", "p/team:u")


def test_of_one_that_runs_only_what_is_said_of_it_changes() -> None:
    world = _waiting(make.request("w"))
    before = world.allocations[RequestId("a")]
    asked = replace(before.request, subjects=(Subject.parse("team:u"),), pool="p")
    _apply(world, ev.Redirected(request=asked))
    assert world.allocations[RequestId("a")] == replace(before, request=asked)
    assert plan(world, make.START).is_empty
    assert audit(world, make.START) == ()


def test_a_pool_renamed_together_with_what_asks_for_it_keeps_what_is_being_freed() -> None:
    """S31: nothing lies between the changes of one `Together`."""
    world = make.settled(
        make.pool("p", {"gpu": 4}),
        make.policy("team:t", {"gpu": 4}),
        make.policy("team:b"),
        make.request("b", "team:b", {"gpu": 4}),
        later=[make.request("w", "team:t", {"gpu": 4}, pool="p")],
    )
    kept = world.claims[W]
    renamed = replace(make.pool("p", {"gpu": 4}), name="onprem")
    asks = replace(world.request(W), pool="onprem")
    _apply(world, ev.Redirected(request=asks), ev.PoolSet(pool=renamed))
    assert decide(world, make.START).is_empty
    assert world.claims[W] == kept
    assert audit(world, make.START) == ()


@pytest.mark.parametrize(
    "other",
    [
        make.request("w", "team:u", {"gpu": 2}),
        make.request("w", "team:u", priority=1),
        make.request("w", "team:u", preemptible=False),
    ],
)
def test_a_redirected_request_is_the_same_request(other: Request) -> None:
    world = _waiting(make.request("w"))
    before = world.snapshot()
    with pytest.raises(InvalidInput):
        _apply(world, ev.Redirected(request=other))
    assert world.snapshot() == before


def test_one_that_is_not_live_cannot_be_redirected() -> None:
    with pytest.raises(UnknownObject):
        _apply(_waiting(make.request("w")), ev.Redirected(request=make.request("gone")))


# ---- together --------------------------------------------------------------------------------------------------------


def test_reservations_change_hands_in_one_go_though_between_them_they_would_be_too_many() -> None:
    """S11 holds of what there is when all have changed."""
    world = make.world(EIGHT, make.policy("team:t", {"gpu": 8}), make.policy("team:u"))
    taken, given = make.policy("team:u", {"gpu": 8}), make.policy("team:t")
    with pytest.raises(InvalidRules):
        world.apply(ev.PolicySet(policy=taken), make.START)
    _apply(world, ev.PolicySet(policy=taken), ev.PolicySet(policy=given))
    assert world.policies[taken.id] == taken


def test_of_several_changes_all_happen_or_none() -> None:
    world = _waiting(make.request("w"))
    before = world.snapshot()
    wrong = ev.PolicySet(policy=make.policy("team:u", {"gpu": 9}))
    with pytest.raises(InvalidRules):
        _apply(world, ev.PolicyDropped(policy=PolicyId("p/team:t")), ev.ProfileDropped(name="half"), wrong)
    with pytest.raises(UnknownObject):
        _apply(world, ev.PoolDropped(pool=PoolId("p")), ev.BorrowersEvicted(pool=PoolId("p")))
    assert world.snapshot() == before


def test_a_class_whose_last_member_left_is_still_looked_at_when_the_rules_change() -> None:
    """`w` waits for an eviction, out of its class; its class is forgotten when `x` leaves; then the eviction is for
    nothing, and `w` stands in a class again."""
    world = make.settled(
        make.pool("p", {"gpu": 4}),
        make.policy("team:t", {"gpu": 4}),
        make.policy("team:b"),
        make.request("b", "team:b", {"gpu": 4}),
        later=[make.request("w", "team:t", {"gpu": 4}), make.request("x", "team:t", {"gpu": 4})],
    )
    world.apply(ev.Ended(request=RequestId("x"), how=Status.CANCELLED), make.START)
    world.apply(ev.PoolSet(pool=make.pool("p", {"gpu": 4}, state=PoolState.DRAINING)), make.START)
    decide(world, make.START)
    world.apply(ev.Ended(request=RequestId("b"), how=Status.RELEASED), make.START)
    decide(world, make.START)
    assert W not in world.claims
    world.apply(ev.PolicyDropped(policy=PolicyId("p/team:t")), make.START)
    assert [cancel.request for cancel in decide(world, make.START).cancels] == ["w"]


def test_a_claimant_with_two_ways_into_another_pool_is_granted_there_once() -> None:
    """Evictions for `w` are under way in p; two policies of q speak of it, and q has room meanwhile."""
    world = make.settled(
        make.pool("p", {"gpu": 4}),
        make.pool("q", {"gpu": 4}),
        make.policy("team:t", {"gpu": 4}),
        make.policy("team:b"),
        make.policy("team:t", pool="q"),
        make.policy("team:v", pool="q"),
        make.request("b", "team:b", {"gpu": 4}),
        make.request("c", "team:v", {"gpu": 4}),
        later=[make.request("w", ("team:t", "team:v"), {"gpu": 4})],
    )
    assert world.claims[W].pool == "p"
    world.apply(ev.Ended(request=RequestId("c"), how=Status.RELEASED), make.START)
    made = decide(world, make.START)
    assert [(grant.request, grant.allocation.pool) for grant in made.grants] == [("w", "q")]
    assert audit(world, make.START) == ()

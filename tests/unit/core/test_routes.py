"""Routes: through which policies a request can go, in which order, and who runs ungoverned (S13, S13b, S15, S17)."""

from __future__ import annotations

import pytest

from fairpool.core import events as ev
from fairpool.core.amounts import vector
from fairpool.core.errors import UnknownObject
from fairpool.core.ids import PolicyId, ProfileId, RequestId
from fairpool.core.planner import decide, plan
from fairpool.core.policies import Profile, Subject
from fairpool.core.reasons import Code
from fairpool.core.requests import Demand, Request
from fairpool.core.waiting import Origin, Route
from fairpool.core.world import World
from fairpool.testing import builders as make

ONE = Demand((vector({"gpu": 1}),))


def _route(world: World, *subjects: str, profile: str = "", pool: str = "", demand: Demand = ONE) -> Route:
    origin = Origin(tuple(Subject.parse(each) for each in subjects), profile, pool)
    return world.routes.find(origin, demand, True)


def _pools(route: Route) -> list[str]:
    return [str(candidate.pool) for candidate in route.candidates]


def _three_pools(*extra: Profile) -> World:
    """Pools `a`, `b`, `c`; the team may use all three, and `b` with priority."""
    pools = [make.pool(name, {"gpu": 8}) for name in "abc"]
    policies = [make.policy(pool=name, priority=5 if name == "b" else 0) for name in "abc"]
    return make.world(*pools, *policies, *extra)


def _profile(name: str, *pools: str) -> Profile:
    return Profile(id=ProfileId(name), name=name, demand=vector({"gpu": 1}), pools=pools)


def test_candidates_come_by_policy_priority_and_then_by_pool_name() -> None:
    """S13."""
    assert _pools(_route(_three_pools(), "team:t")) == ["b", "a", "c"]


def test_a_profile_names_its_pools_in_its_own_order() -> None:
    """S13: the profile's order comes before priority, and other pools are none of its."""
    assert _pools(_route(_three_pools(_profile("half", "c", "b")), "team:t", profile="half")) == ["c", "b"]


def test_a_request_that_names_a_pool_goes_nowhere_else() -> None:
    assert _pools(_route(_three_pools(), "team:t", pool="c")) == ["c"]


def test_a_profile_that_is_not_there_leads_nowhere() -> None:
    route = _route(_three_pools(), "team:t", profile="missing")
    assert [reason.code for reason in route.refusals] == [Code.NO_POLICY]
    assert not route.ungoverned


def test_every_subject_of_the_requester_brings_its_policies() -> None:
    """S13: component, teams, user or service account."""
    subjects = ("component:k8s", "team:t", "user:u", "service-account:s")
    world = make.world(
        *(make.pool(f"p{index}", {"gpu": 8}) for index in range(4)),
        *(make.policy(subject, pool=f"p{index}") for index, subject in enumerate(subjects)),
    )
    assert _pools(_route(world, *subjects)) == ["p0", "p1", "p2", "p3"]
    assert _pools(_route(world, "user:u")) == ["p2"]


def test_two_policies_of_one_pool_are_two_candidates_by_priority() -> None:
    policies = (make.policy("user:u", priority=1), make.policy("team:t", priority=2))
    world = make.world(make.pool("p", {"gpu": 8}), *policies)
    found = [candidate.policy for candidate in _route(world, "user:u", "team:t").candidates]
    assert found == ["p/team:t", "p/user:u"]


def test_a_pool_that_names_components_admits_only_requests_on_them() -> None:
    """S13b."""
    world = make.world(make.pool("p", {"gpu": 8}, components=frozenset({"k8s"})), make.policy("team:t"))
    assert _pools(_route(world, "team:t", "component:k8s")) == ["p"]
    assert _pools(_route(world, "team:t", "component:vertex")) == []
    assert _pools(_route(world, "team:t")) == []


def test_an_impossible_candidate_is_left_out_and_told_with_its_reason() -> None:
    """S16, S17."""
    world = make.world(
        make.pool("big", {"gpu": 8}), make.pool("small", {"gpu": 2}), make.policy(pool="big"), make.policy(pool="small")
    )
    route = _route(world, "team:t", demand=Demand((vector({"gpu": 4}),)))
    assert _pools(route) == ["big"]
    assert [(reason.code, reason.pool) for reason in route.refusals] == [(Code.EXCEEDS_POOL_CAPACITY, "small")]


# ---- S15: ungoverned -------------------------------------------------------------------------------------------------


def test_a_component_without_a_policy_runs_ungoverned() -> None:
    """S15: it starts at once, in no pool and through no policy."""
    world = make.world(make.pool("p", {"gpu": 1}), make.policy("team:t"))
    world.apply(ev.Submitted(request=make.request("r", "component:local", {"gpu": 99})), make.START)
    (grant,) = plan(world, make.START).grants
    assert (grant.allocation.pool, grant.allocation.policy, grant.allocation.parts) == (None, None, ())


@pytest.mark.parametrize(
    ("subjects", "named"),
    [
        (("component:k8s",), {"pool": "p"}),  # it asks for a pool by name
        (("component:k8s",), {"profile": "half"}),
        (("team:u",), {}),  # no component at all
        (("component:governed", "team:u"), {"pool": "q"}),  # a policy speaks of its component
    ],
)
def test_who_asks_for_something_governed_is_not_ungoverned(subjects: tuple[str, ...], named: dict[str, str]) -> None:
    """S15."""
    world = make.world(make.pool("p", {"gpu": 8}), make.policy("component:governed"))
    route = _route(world, *subjects, profile=named.get("profile", ""), pool=named.get("pool", ""))
    assert not route.ungoverned
    assert [reason.code for reason in route.refusals] == [Code.NO_POLICY]


def test_a_workspace_that_requires_a_policy_rejects_the_ungoverned() -> None:
    """S15."""
    request = make.request("r", "component:local")
    world = make.world(request, require_policy=True)
    (reject,) = plan(world, make.START).rejects
    assert [reason.code for reason in reject.reasons] == [Code.NO_POLICY]


# ---- S17: changes of the rules ---------------------------------------------------------------------------------------


def test_a_queued_request_follows_the_rules_as_they_change() -> None:
    """S17: a second policy opens a second pool, and when the last one goes the request is cancelled."""
    world = make.settled(make.pool("p", {"gpu": 1}), make.policy(), make.request("a"), later=[make.request("w")])
    world.apply(ev.PoolSet(pool=make.pool("q", {"gpu": 1})), make.START)
    assert plan(world, make.START).is_empty
    world.apply(ev.PolicySet(policy=make.policy(pool="q")), make.START)
    assert [(grant.request, grant.allocation.pool) for grant in plan(world, make.START).grants] == [("w", "q")]
    for pool in "pq":
        world.apply(ev.PolicyDropped(policy=PolicyId(f"{pool}/team:t")), make.START)
    assert [cancel.request for cancel in plan(world, make.START).cancels] == ["w"]


def test_a_capacity_that_falls_rejects_what_can_never_run_any_more() -> None:
    """S17."""
    world = make.settled(make.pool("p", {"gpu": 4}), make.policy(), make.request("a"), later=[_asks(4)])
    world.apply(ev.PoolSet(pool=make.pool("p", {"gpu": 3})), make.START)
    (reject,) = decide(world, make.START).rejects
    assert reject.reasons[0].code is Code.EXCEEDS_POOL_CAPACITY
    assert reject.reasons[0].possible == 3000


def _asks(gpus: int) -> Request:
    return make.request("w", "team:t", {"gpu": gpus})


def test_a_dropped_pool_lets_running_work_go_on_unaccounted() -> None:
    """S10: queued requests are rejected with the reason."""
    world = make.settled(make.pool("p", {"gpu": 1}), make.policy(), make.request("a"), later=[make.request("w")])
    world.apply(ev.PoolDropped(pool=make.pool("p").id), make.START)
    (running,) = world.allocations.values()
    assert (running.request.id, running.pool, running.policy) == ("a", None, None)
    (reject,) = decide(world, make.START).rejects
    assert reject.request == "w"
    assert [(reason.code, reason.name) for reason in reject.reasons] == [(Code.POOL_GONE, "p")]
    assert world.policies == {}


def test_work_whose_policy_was_dropped_goes_on_and_can_be_reclaimed() -> None:
    """It is in nobody's share: another's reservation may call it in. A restart knows no more of the policy than its id,
    and decides the same (INV-9)."""
    world = make.settled(
        make.pool("p", {"gpu": 8}),
        make.policy("team:gone", {"gpu": 4}, grace_s=7),
        make.policy("team:t", {"gpu": 4}),
        make.request("a", "team:gone", {"gpu": 8}),
    )
    world.apply(ev.PolicyDropped(policy=PolicyId("p/team:gone")), make.START)
    assert plan(world, make.START).is_empty
    world.apply(ev.Submitted(request=_asks(4)), make.START)
    made = plan(world, make.START)
    assert [(evict.request, evict.cause) for evict in made.evictions] == [("a", "w")]
    assert plan(world.copy(), make.START) == made


def test_what_an_unknown_policy_uses_cannot_be_said() -> None:
    with pytest.raises(UnknownObject):
        make.world(make.pool()).policy_usage(PolicyId("p/team:t"))


def test_of_a_class_only_those_are_moved_whose_ways_have_changed() -> None:
    """S17: both wait through team:t; then team:x, of which only one is, gets a policy."""
    both = make.request("both", ("team:t", "team:x"), {"gpu": 4})
    world = make.settled(
        make.pool("p", {"gpu": 4}), make.policy(), make.request("a", "team:t", {"gpu": 4}),
        later=[make.request("one", "team:t", {"gpu": 4}), both],
    )  # fmt: skip
    world.apply(ev.PolicySet(policy=make.policy("team:x", {"gpu": 4})), make.START)
    ways = {}
    for name in ("one", "both"):
        home = world.queue.home(RequestId(name))
        assert home is not None
        ways[name] = {candidate.policy for candidate in home.key.candidates}
    assert ways == {"one": {"p/team:t"}, "both": {"p/team:t", "p/team:x"}}

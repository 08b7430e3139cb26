"""The builders write down what people mean, in units, with the product's own defaults."""

from __future__ import annotations

import pytest

from fairpool import testing as make
from fairpool.core.amounts import vector
from fairpool.core.errors import InvalidAmount, InvalidRules, UnknownObject
from fairpool.core.ids import Instant, PolicyId, PoolId, ProfileId, RequestId
from fairpool.core.policies import Policy, Profile, Subject
from fairpool.core.pools import Node, Pool
from fairpool.core.requests import Demand, Request, Status


def test_what_is_not_said_is_the_default_of_the_product() -> None:
    assert make.pool("p", {"gpu": 8}) == Pool(id=PoolId("p"), name="p", capacity=vector({"gpu": 8}))
    assert make.policy("team:t") == Policy(id=PolicyId("p/team:t"), pool=PoolId("p"), subject=Subject.parse("team:t"))
    assert make.request("r", "team:t", {"gpu": 2}) == Request(
        id=RequestId("r"),
        subjects=(Subject.parse("team:t"),),
        demand=Demand((vector({"gpu": 2}),)),
        queued_at=Instant(0),
    )


def test_amounts_are_in_units() -> None:
    policy = make.policy("team:t", {"gpu": 0.5}, {"gpu": 2}, weight=1.5)
    assert (policy.reserved, policy.limit, policy.weight) == ((("gpu", 500),), (("gpu", 2000),), 1500)
    with pytest.raises(InvalidAmount):
        make.pool("p", {"gpu": -1})


def test_a_pool_of_nodes() -> None:
    assert make.pool(nodes={"n1": {"gpu": 4}}).nodes == (Node(name="n1", capacity=vector({"gpu": 4})),)


def test_a_policy_is_named_by_its_pool_and_subject() -> None:
    assert make.policy("user:u", pool="q").id == "q/user:u"


def test_a_request_without_parts_asks_for_one_gpu_and_with_parts_for_each() -> None:
    assert make.request("r").demand.parts == (vector({"gpu": 1}),)
    assert make.request("r", "team:t", {"gpu": 8}, {"gpu": 4}).demand.parts == (vector({"gpu": 8}), vector({"gpu": 4}))


def test_a_request_may_come_from_several_subjects() -> None:
    subjects = make.request("r", ("k8s", "team:t")).subjects
    assert [str(subject) for subject in subjects] == ["component:k8s", "team:t"]


def test_a_world_holds_what_it_is_given_and_has_decided_nothing() -> None:
    profile = Profile(id=ProfileId("half"), name="half", demand=vector({"gpu": 0.5}), pools=("p",))
    world = make.world(make.pool("p", {"gpu": 8}), make.policy(), profile, make.request("r"))
    assert set(world.pools) == {"p"}
    assert set(world.policies) == {"p/team:t"}
    assert dict(world.profiles) == {"half": profile}
    assert world.status_of(RequestId("r")) is Status.QUEUED


def test_a_world_takes_things_in_an_order_in_which_each_may_refer_to_what_came_before() -> None:
    with pytest.raises(UnknownObject):
        make.world(make.policy(), make.pool("p", {"gpu": 8}))


def test_a_world_obeys_the_rules() -> None:
    with pytest.raises(InvalidRules):
        make.world(make.pool("p", {"gpu": 1}), make.policy("team:t", {"gpu": 2}))


def test_a_settled_world_has_decided_about_each_later_request_one_by_one() -> None:
    """`late` is smaller, yet came after `first`, which took everything."""
    world = make.settled(
        make.pool("p", {"gpu": 4}),
        make.policy(),
        later=[make.request("first", "team:t", {"gpu": 4}), make.request("late", "team:t", {"gpu": 1})],
    )
    assert world.status_of(RequestId("first")) is Status.ALLOCATED
    assert world.status_of(RequestId("late")) is Status.QUEUED


def test_a_settled_world_is_decided_at_its_moment() -> None:
    world = make.settled(make.pool("p", {"gpu": 4}), make.policy(), make.request("r"), now=Instant(9))
    assert world.allocations[RequestId("r")].granted_at == 9

"""Pools, nodes and policies: what contradicts itself is refused, with the field, the value and what is possible."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fairpool.core import events as ev
from fairpool.core.amounts import vector
from fairpool.core.errors import InvalidInput, InvalidName, InvalidRules, UnknownObject
from fairpool.core.ids import PolicyId, PoolId, ProfileId
from fairpool.core.policies import Policy, Profile, Subject, SubjectKind
from fairpool.core.pools import (
    Node,
    NodeState,
    Pool,
    device_count,
    healthy_capacity,
    is_bounded,
    nominal_capacity,
)
from fairpool.core.promises import check_rules
from fairpool.testing import builders as make

EIGHT = make.pool("p", {"gpu": 8, "mcpu": 4000})


# ---- pools ----------------------------------------------------------------------------------------------------------


def test_a_pool_of_nodes_has_the_sum_of_them_and_its_own_keys() -> None:
    """S6."""
    pool = make.pool("p", {"license/x": 3}, nodes={"n1": {"gpu": 4}, "n2": {"gpu": 2, "mcpu": 1000}})
    assert nominal_capacity(pool) == vector({"gpu": 6, "license/x": 3, "mcpu": 1000})


@pytest.mark.parametrize("state", [NodeState.CORDONED, NodeState.DOWN, NodeState.UNKNOWN])
def test_only_ready_nodes_count_now_and_all_nodes_count_for_ever(state: NodeState) -> None:
    """S6; what could ever be goes by the nominal capacity."""
    node = Node(name="n1", capacity=vector({"gpu": 4}), state=state)
    pool = replace(make.pool(nodes={"n2": {"gpu": 2}}), nodes=(node, Node(name="n2", capacity=vector({"gpu": 2}))))
    assert healthy_capacity(pool) == vector({"gpu": 2})
    assert nominal_capacity(pool) == vector({"gpu": 6})


@pytest.mark.parametrize(
    ("key", "bounded"), [("gpu", True), ("tpu", True), ("mcpu", True), ("memory_mb", False), ("step_run", False)]
)
def test_cpu_memory_and_steps_are_unbounded_where_the_pool_does_not_list_them(key: str, bounded: bool) -> None:
    """S5."""
    assert is_bounded(EIGHT, key) is bounded


def test_a_key_that_a_node_lists_is_bounded() -> None:
    assert is_bounded(make.pool(nodes={"n1": {"memory_mb": 1000}}), "memory_mb")


def test_a_fractional_rest_is_no_device() -> None:
    assert device_count(vector({"gpu": 2.5})) == 2
    assert device_count(vector({"mcpu": 1000})) == 0


def test_a_key_is_either_on_the_nodes_or_on_the_pool() -> None:
    with pytest.raises(InvalidRules, match="both from its nodes and as a pool-level key") as refusal:
        make.pool("p", {"gpu": 1}, nodes={"n1": {"gpu": 4}})
    assert refusal.value.field == "capacity.gpu"


def test_a_node_is_listed_once() -> None:
    node = Node(name="n1", capacity=vector({"gpu": 4}))
    with pytest.raises(InvalidRules, match="lists node 'n1' twice"):
        Pool(id=PoolId("p"), name="p", nodes=(node, node))


def test_names_of_pools_nodes_and_profiles_are_checked() -> None:
    with pytest.raises(InvalidName, match="pool name"):
        make.pool("a b")
    with pytest.raises(InvalidName, match="node name"):
        make.pool(nodes={"-n": {"gpu": 1}})
    with pytest.raises(InvalidName, match="profile name"):
        Profile(id=ProfileId("x"), name="a b", demand=(), pools=())


def test_the_bound_on_being_overtaken_is_not_negative() -> None:
    with pytest.raises(InvalidRules, match="max_bypass_s may not be negative"):
        make.pool("p", max_bypass_s=-1)


# ---- subjects -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", list(SubjectKind))
def test_a_subject_is_read_as_it_is_written(kind: SubjectKind) -> None:
    assert str(Subject.parse(f"{kind}:x")) == f"{kind}:x"
    assert Subject.parse(f"{kind}:x").kind is kind


def test_a_subject_without_a_kind_is_a_component() -> None:
    assert Subject.parse("trainer") == Subject(SubjectKind.COMPONENT, "trainer")


def test_an_unknown_kind_of_subject_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match="'squad' is no kind of subject") as refusal:
        Subject.parse("squad:red")
    assert refusal.value.possible == "component, team, user, service-account"


@pytest.mark.parametrize("text", ["team:", "", "team:a b", "team:a:b"])
def test_a_subject_needs_a_proper_name(text: str) -> None:
    with pytest.raises(InvalidName):
        Subject.parse(text)


# ---- policies -------------------------------------------------------------------------------------------------------


def test_lengths_of_time_are_not_negative() -> None:
    with pytest.raises(InvalidRules, match="grace_s may not be negative") as refusal:
        make.policy(grace_s=-1)
    assert refusal.value.field == "grace_s"
    with pytest.raises(InvalidRules, match="min_runtime_s may not be negative"):
        make.policy(min_runtime_s=-1)


@pytest.mark.parametrize("weight", [0, -1000])
def test_a_weight_is_above_nothing(weight: int) -> None:
    with pytest.raises(InvalidRules, match="weight must be above 0"):
        replace(make.policy(), weight=weight)


CONTRADICTIONS = {
    "more reserved than the limit": (make.policy("team:t", {"gpu": 4}, {"gpu": 3}), "reserved.gpu", "at most 3"),
    "more reserved than the capacity": (make.policy("team:t", {"gpu": 9}), "reserved.gpu", "at most 8"),
    "a limit above the capacity": (make.policy("team:t", None, {"gpu": 9}), "limit.gpu", "at most 8"),
    "a key reserved that the pool lacks": (make.policy("team:t", {"tpu": 1}), "reserved.tpu", "gpu, mcpu"),
    "a key limited that the pool lacks": (make.policy("team:t", None, {"tpu": 1}), "limit.tpu", "gpu, mcpu"),
    "reservations that exceed it together": (make.policy("team:t", {"gpu": 5}), "reserved.gpu", "at most 8 in all"),
    "two policies for one subject": (make.policy("team:other"), "subject", "one policy per subject and pool"),
}


@pytest.mark.parametrize(("policy", "field", "possible"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_rules_that_contradict_each_other_are_refused(policy: Policy, field: str, possible: str) -> None:
    """S11, S13: and the refusal names the field and what would be accepted."""
    other = replace(make.policy("team:other", {"gpu": 4}), id=PolicyId("another"))
    with pytest.raises(InvalidRules) as refusal:
        check_rules({EIGHT.id: EIGHT}, [other, policy], [EIGHT.id])
    assert refusal.value.field == field
    assert refusal.value.possible.startswith(possible)


def test_bounds_that_meet_exactly_are_accepted() -> None:
    """S11: reserved <= limit <= capacity, and all reservations together no more than the capacity."""
    ours = make.policy("team:t", {"gpu": 4}, {"gpu": 8})
    check_rules({EIGHT.id: EIGHT}, [ours, make.policy("team:other", {"gpu": 4}, {"gpu": 4})], [EIGHT.id])
    assert ours.reserved == vector({"gpu": 4})


def test_capacity_does_not_fall_below_the_reservations_and_the_refusal_lists_them() -> None:
    """S9."""
    world = make.world(EIGHT, make.policy("team:a", {"gpu": 4}), make.policy("team:b", {"gpu": 2}))
    before = world.snapshot()
    with pytest.raises(InvalidRules, match=r"add up to 6 \(team:a 4, team:b 2\), its capacity is 5"):
        world.apply(ev.PoolSet(pool=make.pool("p", {"gpu": 5})), make.START)
    assert world.snapshot() == before


def test_a_failing_node_contradicts_no_reservation() -> None:
    """S6: the pool reads degraded instead."""
    pool = make.pool(nodes={"n1": {"gpu": 4}, "n2": {"gpu": 4}})
    world = make.world(pool, make.policy("team:t", {"gpu": 8}))
    assert not world.books[pool.id].degraded
    failed = replace(pool, nodes=(replace(pool.nodes[0], state=NodeState.DOWN), pool.nodes[1]))
    world.apply(ev.PoolSet(pool=failed), make.START)
    assert world.books[pool.id].degraded


def test_a_limit_of_zero_stays_and_a_key_without_a_limit_has_none() -> None:
    """S12: nothing said is no limit; 0 said forbids."""
    policy = make.policy("team:t", {"gpu": 0}, {"gpu": 0})
    assert policy.limit == (("gpu", 0),)
    assert policy.reserved == ()


@pytest.mark.parametrize(
    "event",
    [
        ev.PolicySet(policy=make.policy(pool="elsewhere")),
        ev.PolicyDropped(policy=PolicyId("nobody's")),
        ev.PoolDropped(pool=PoolId("elsewhere")),
        ev.BorrowersEvicted(pool=PoolId("elsewhere")),
        ev.ProfileDropped(name="elsewhere"),
    ],
    ids=lambda event: type(event).__name__,
)
def test_rules_about_what_is_not_there_are_refused_and_change_nothing(event: ev.Event) -> None:
    world = make.world(EIGHT, make.policy())
    before = world.snapshot()
    with pytest.raises(UnknownObject):
        world.apply(event, make.START)
    assert world.snapshot() == before

"""What policies over one or several pools promise together is no more than there is (S11); who is short (S6)."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, combinations
from random import Random

import pytest

from fairpool.core import events as ev
from fairpool.core.errors import InvalidRules
from fairpool.core.ids import PolicyId, PoolId
from fairpool.core.policies import Policy
from fairpool.core.pools import NodeState
from fairpool.core.promises import check_rules, shortfalls
from fairpool.core.world import World
from fairpool.testing import builders as make

A, B, C = PoolId("a"), PoolId("b"), PoolId("c")
POOLS = {PoolId(name): make.pool(name, {"gpu": 4}) for name in "abc"}


def _check(*policies: Policy) -> None:
    check_rules(POOLS, policies, POOLS)


def _over(*pools: str, gpus: float, subject: str) -> Policy:
    return make.policy(subject, {"gpu": gpus}, pool=pools[0], also=pools[1:])


def test_a_reservation_over_several_pools_may_be_as_large_as_all_of_them() -> None:
    _check(_over("a", "b", "c", gpus=12, subject="team:t"))
    with pytest.raises(InvalidRules, match=r"over the capacity 12 of pools 'a', 'b', 'c' together"):
        _check(_over("a", "b", "c", gpus=13, subject="team:t"))


def test_a_limit_counts_over_all_pools_and_may_be_more_than_one_of_them_has() -> None:
    _check(make.policy("team:t", None, {"gpu": 8}, pool="a", also=("b",)))


def test_what_lies_wholly_inside_a_set_of_pools_may_not_exceed_the_set() -> None:
    """5 over a and b, 4 in b: b alone has 4 and the two have 8."""
    with pytest.raises(InvalidRules) as caught:
        _check(_over("a", "b", gpus=5, subject="team:t"), _over("b", gpus=4, subject="team:u"))
    assert caught.value.message == (
        "reservations of 'gpu' on pools 'a', 'b' together add up to 9 (team:t 5, team:u 4), their capacity is 8"
    )
    assert (caught.value.field, caught.value.possible) == ("reserved.gpu", "at most 8 in all")


def test_overlapping_spans_are_judged_together() -> None:
    """Each two of them go together; with the third, 13 would have to lie in 12."""
    spans = [
        _over("a", "b", gpus=5, subject="team:t"),
        _over("b", "c", gpus=4, subject="team:u"),
        _over("c", "a", gpus=4, subject="team:v"),
    ]
    for two in combinations(spans, 2):
        _check(*two)
    with pytest.raises(InvalidRules, match="add up to 13"):
        _check(*spans)
    _check(replace(spans[0], reserved=(("gpu", 4000),)), *spans[1:])


def test_what_is_reserved_moves_to_where_there_is_room() -> None:
    """4 in a, so that what is over a and b lies in b, and what is over b and c in c."""
    _check(
        _over("a", "b", gpus=4, subject="team:t"),
        _over("b", "c", gpus=4, subject="team:u"),
        _over("a", gpus=4, subject="team:v"),
    )


def test_a_key_has_to_be_in_one_of_the_pools() -> None:
    licences = {**POOLS, B: make.pool("b", {"gpu": 4, "lic": 2})}
    check_rules(licences, [make.policy("team:t", {"lic": 2}, pool="a", also=("b",))], [A])
    with pytest.raises(InvalidRules, match="pools 'a', 'c' together have no 'lic'"):
        check_rules(licences, [make.policy("team:t", {"lic": 2}, pool="a", also=("c",))], [A])


def test_a_subject_has_one_policy_per_pool_however_many_pools_each_has() -> None:
    with pytest.raises(InvalidRules, match="team:t already has a policy on pool 'b'"):
        _check(_over("a", "b", gpus=1, subject="team:t"), _over("b", "c", gpus=1, subject="team:t"))


def test_a_dedicated_reservation_is_in_one_pool() -> None:
    with pytest.raises(InvalidRules, match="would not say in which"):
        make.policy("team:t", {"gpu": 1}, pool="a", also=("b",), dedicated=True)
    with pytest.raises(InvalidRules, match="named twice"):
        make.policy("team:t", {"gpu": 1}, pool="a", also=("a",))


def test_a_pool_that_goes_leaves_no_promise_behind_that_the_others_cannot_keep() -> None:
    world = make.world(*POOLS.values(), _over("a", "b", gpus=5, subject="team:t"))
    with pytest.raises(InvalidRules, match="over the capacity 4 of pool 'b'"):
        world.apply(ev.PoolDropped(pool=A), make.START)
    world.apply(ev.PoolDropped(pool=C), make.START)
    world.apply(ev.PolicySet(policy=_over("a", "b", gpus=4, subject="team:t")), make.START)
    world.apply(ev.PoolDropped(pool=A), make.START)
    assert world.policies[PolicyId("a/team:t")].pools == (B,)


def test_no_set_of_pools_is_overlooked() -> None:
    """Against all sets, one by one."""
    for seed in range(2000):
        rng = Random(seed)
        pools = [PoolId(name) for name in "abcd"[: rng.randint(1, 4)]]
        capacity = {pool: rng.randint(0, 4) for pool in pools}
        reserved = {frozenset(rng.sample(pools, rng.randint(1, len(pools)))): rng.randint(0, 6) for _ in range(4)}
        sets = [frozenset(some) for some in chain(*(combinations(pools, n) for n in range(1, len(pools) + 1)))]
        short = [
            each
            for each in sets
            if sum(value for span, value in reserved.items() if span <= each) > sum(capacity[pool] for pool in each)
        ]
        found = list(shortfalls(capacity, reserved))
        assert bool(found) == bool(short), f"seed {seed}"
        assert not found or found[0] in short, f"seed {seed}"


def test_what_is_left_of_a_span_is_judged_with_what_lies_there_anyway() -> None:
    """Once a is known to be short, all that may lie in a or b counts against b."""
    ab = frozenset({A, B})
    reserved = {frozenset({A}): 1, ab: 2, frozenset({B}): 2}
    assert list(shortfalls({A: 0, B: 3}, reserved)) == [frozenset({A}), frozenset({B})]
    assert list(shortfalls({A: 0, B: 4}, reserved)) == [frozenset({A})]


# ---- degraded (S6) ---------------------------------------------------------------------------------------------------


def _failing(*policies: Policy) -> World:
    """Two pools of nodes; n1, half of a, is down."""
    a = make.pool("a", nodes={"n1": {"gpu": 2}, "n2": {"gpu": 2}})
    down = tuple(replace(node, state=NodeState.DOWN) if node.name == "n1" else node for node in a.nodes)
    world = make.world(a, make.pool("b", nodes={"n3": {"gpu": 4}}), *policies)
    world.apply(ev.PoolSet(pool=replace(a, nodes=down)), make.START)
    return world


@pytest.mark.parametrize(
    ("policies", "ailing"),
    [
        ((), set()),
        ((make.policy("team:t", {"gpu": 2}, pool="a"),), set()),
        ((make.policy("team:t", {"gpu": 3}, pool="a"),), {A}),
        ((_over("a", "b", gpus=6, subject="team:t"),), set()),
        ((_over("a", "b", gpus=7, subject="team:t"),), {A}),
        ((_over("a", "b", gpus=4, subject="team:t"), _over("b", gpus=3, subject="team:u")), {A}),
        ((_over("b", gpus=4, subject="team:u"),), set()),
    ],
)
def test_a_pool_is_degraded_where_its_failing_nodes_leave_less_than_is_promised(
    policies: tuple[Policy, ...], ailing: set[PoolId]
) -> None:
    """S6: over all the pools in which a promise may be kept."""
    world = _failing(*policies)
    assert {pool for pool, books in world.books.items() if books.degraded} == ailing
    again = world.copy()
    assert {pool for pool, books in again.books.items() if books.degraded} == ailing

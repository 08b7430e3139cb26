"""Placement: whole parts on one node, whole GPUs on whole devices, fractions together, best fit (S2, S3, S7, S8)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fairpool.core import events as ev
from fairpool.core.ids import RequestId
from fairpool.core.planner import decide, plan
from fairpool.core.pools import NodeState, Placement, Pool
from fairpool.core.requests import Request, Status
from fairpool.core.world import World
from fairpool.testing import builders as make

HALF = {"gpu": 0.5}


def _settled(pool: Pool, *requests: Request) -> World:
    """A world in which the requests came one after the other."""
    return make.settled(pool, make.policy(), later=requests)


def _nodes(world: World, request: str) -> list[str]:
    return [part.node for part in world.allocations[RequestId(request)].parts]


def _devices(world: World, request: str) -> list[tuple[tuple[int, int], ...]]:
    return [part.devices for part in world.allocations[RequestId(request)].parts]


def _waits(world: World, request: str) -> bool:
    return world.status_of(RequestId(request)) is Status.QUEUED


def _ask(name: str, *parts: make.Units) -> Request:
    return make.request(name, "team:t", *parts)


# ---- one bucket ------------------------------------------------------------------------------------------------------


def test_a_pool_without_nodes_names_devices_too() -> None:
    """S7."""
    world = _settled(make.pool("p", {"gpu": 4}), _ask("a", {"gpu": 2}), _ask("b", {"gpu": 1}))
    assert _devices(world, "a") == [((0, 1000), (1, 1000))]
    assert _devices(world, "b") == [((2, 1000),)]
    assert _nodes(world, "a") == [""]


def test_fractions_share_one_device_until_it_is_full() -> None:
    """S7, S8."""
    world = _settled(make.pool("p", {"gpu": 2}), _ask("a", HALF), _ask("b", HALF), _ask("c", HALF))
    assert [_devices(world, name) for name in "abc"] == [[((0, 500),)], [((0, 500),)], [((1, 500),)]]


def test_a_fraction_takes_the_device_that_is_left_with_least() -> None:
    """S8, best fit: 0.25 goes beside 0.75, and not beside 0.5."""
    pool = make.pool("p", {"gpu": 2})
    world = _settled(pool, _ask("a", HALF), _ask("b", {"gpu": 0.75}), _ask("c", {"gpu": 0.25}))
    assert _devices(world, "b") == [((1, 750),)]
    assert _devices(world, "c") == [((1, 250),)]


def test_a_whole_gpu_never_shares_though_halves_add_up_to_one() -> None:
    """S8: adding up free units over devices never counts as room."""
    world = _settled(make.pool("p", {"gpu": 2}), _ask("a", {"gpu": 0.6}), _ask("b", {"gpu": 0.6}), _ask("w"))
    assert _waits(world, "w")
    assert world.free(make.pool("p").id) == {"gpu": 800}


def test_what_was_let_go_is_given_out_again_the_lowest_first() -> None:
    world = _settled(make.pool("p", {"gpu": 3}), _ask("a"), _ask("b"), _ask("c"))
    for name in "ba":
        world.apply(ev.Ended(request=RequestId(name), how=Status.RELEASED), make.START)
    world.apply(ev.Submitted(request=_ask("d")), make.START)
    decide(world, make.START)
    assert _devices(world, "d") == [((0, 1000),)]


def test_work_without_gpus_lies_anywhere() -> None:
    world = _settled(make.pool("p", {"gpu": 1}), _ask("a", {"mcpu": 500}))
    assert _devices(world, "a") == [()]


# ---- nodes -----------------------------------------------------------------------------------------------------------

TWO = make.pool(nodes={"n1": {"gpu": 4}, "n2": {"gpu": 4}})


def test_a_part_lies_on_one_node() -> None:
    """S8: 3 and 3 leave 2 free, on two nodes."""
    world = _settled(TWO, _ask("a", {"gpu": 3}), _ask("b", {"gpu": 3}), _ask("w", {"gpu": 2}))
    assert _nodes(world, "a") != _nodes(world, "b")
    assert _waits(world, "w")


def test_pack_fills_the_fullest_node_that_fits() -> None:
    """S8."""
    world = _settled(TWO, _ask("a", {"gpu": 3}), _ask("b", {"gpu": 1}), _ask("c", {"gpu": 1}))
    assert [_nodes(world, name) for name in "abc"] == [["n1"], ["n1"], ["n2"]]


def test_spread_takes_the_emptiest_node() -> None:
    """S8."""
    world = _settled(replace(TWO, placement=Placement.SPREAD), _ask("a"), _ask("b"), _ask("c", {"gpu": 2}))
    assert [_nodes(world, name) for name in "ab"] == [["n1"], ["n2"]]


def test_a_node_lacks_what_it_lacks_of_any_key() -> None:
    """The fullest node by GPUs has no CPUs left."""
    pool = make.pool(nodes={"n1": {"gpu": 4, "mcpu": 1000}, "n2": {"gpu": 4, "mcpu": 1000}})
    world = _settled(pool, _ask("a", {"gpu": 1, "mcpu": 800}), _ask("b", {"gpu": 1, "mcpu": 300}))
    assert [_nodes(world, name) for name in "ab"] == [["n1"], ["n2"]]


@pytest.mark.parametrize("state", [NodeState.CORDONED, NodeState.DOWN, NodeState.UNKNOWN])
def test_nothing_starts_on_a_node_that_is_not_ready(state: NodeState) -> None:
    """S6."""
    pool = replace(TWO, nodes=(replace(TWO.nodes[0], state=state), TWO.nodes[1]))
    world = _settled(pool, _ask("a", {"gpu": 4}), _ask("w", {"gpu": 1}))
    assert _nodes(world, "a") == ["n2"]
    assert _waits(world, "w")


def test_pool_level_keys_bind_to_no_node() -> None:
    """S6: licences are the pool's."""
    pool = make.pool("p", {"license/x": 1}, nodes={"n1": {"gpu": 4}, "n2": {"gpu": 4}})
    world = _settled(pool, _ask("a", {"gpu": 1, "license/x": 1}), _ask("w", {"gpu": 1, "license/x": 1}))
    assert _nodes(world, "a") == ["n1"]
    assert _waits(world, "w")


# ---- gangs -----------------------------------------------------------------------------------------------------------


def test_all_parts_start_together_or_none_does() -> None:
    """S3."""
    world = _settled(TWO, _ask("a", {"gpu": 1}), _ask("gang", {"gpu": 4}, {"gpu": 4}))
    assert _waits(world, "gang")
    assert world.free(TWO.id) == {"gpu": 7000}
    world.apply(ev.Ended(request=RequestId("a"), how=Status.RELEASED), make.START)
    decide(world, make.START)
    assert sorted(_nodes(world, "gang")) == ["n1", "n2"]


def test_unequal_parts_keep_the_order_of_the_demand() -> None:
    """S3: 12 GPUs on nodes of 8 as one part of 4 and one of 8."""
    pool = make.pool(nodes={"n1": {"gpu": 8}, "n2": {"gpu": 8}})
    world = _settled(pool, _ask("gang", {"gpu": 4}, {"gpu": 8}))
    assert [len(devices) for devices in _devices(world, "gang")] == [4, 8]
    assert len(set(_nodes(world, "gang"))) == 2


def test_parts_share_a_node_where_both_fit() -> None:
    world = _settled(TWO, _ask("gang", {"gpu": 2}, {"gpu": 2}))
    assert _nodes(world, "gang") == ["n1", "n1"]
    assert len({device for part in _devices(world, "gang") for device in part}) == 4


def test_a_gang_is_placed_where_the_obvious_order_would_fail() -> None:
    """Largest first by GPUs would put the 2 on `n1`, where alone the CPU part can lie."""
    pool = make.pool(nodes={"n1": {"gpu": 2, "mcpu": 8000}, "n2": {"gpu": 4, "mcpu": 1000}})
    world = _settled(pool, _ask("gang", {"gpu": 2, "mcpu": 1000}, {"gpu": 1, "mcpu": 8000}))
    assert _nodes(world, "gang") == ["n2", "n1"]


def test_halves_of_a_gang_may_share_a_device() -> None:
    world = _settled(make.pool("p", {"gpu": 1}), _ask("gang", HALF, HALF))
    assert _devices(world, "gang") == [((0, 500),), ((0, 500),)]


# ---- supply that changes ---------------------------------------------------------------------------------------------


def test_devices_beyond_a_capacity_that_fell_are_not_given_out_again() -> None:
    """S9: nobody is evicted; what stood beyond never counts as free."""
    world = _settled(make.pool("p", {"gpu": 4}), _ask("a", {"gpu": 3}))
    world.apply(ev.PoolSet(pool=make.pool("p", {"gpu": 2})), make.START)
    world.apply(ev.Submitted(request=_ask("w")), make.START)
    assert plan(world, make.START).is_empty
    world.apply(ev.Ended(request=RequestId("a"), how=Status.RELEASED), make.START)
    decide(world, make.START)
    assert _devices(world, "w") == [((0, 1000),)]
    assert world.free(TWO.id) == {"gpu": 1000}


def test_a_node_that_comes_back_brings_its_gpus_back() -> None:
    """S6."""
    down = replace(TWO, nodes=(replace(TWO.nodes[0], state=NodeState.DOWN), TWO.nodes[1]))
    world = _settled(down, _ask("a", {"gpu": 4}), _ask("w", {"gpu": 4}))
    assert _waits(world, "w")
    world.apply(ev.PoolSet(pool=TWO), make.START)
    decide(world, make.START)
    assert _nodes(world, "w") == ["n1"]


# ---- fractions on nodes ----------------------------------------------------------------------------------------------


def test_a_fraction_joins_the_fraction_that_leaves_least_whichever_node_that_is_on() -> None:
    """S8: 0.25 goes beside 0.75 on `n2`, not beside 0.5 on `n1`, and not on a device of its own."""
    pool = make.pool(nodes={"n1": {"gpu": 2, "mcpu": 1000}, "n2": {"gpu": 2, "mcpu": 4000}})
    world = _settled(pool, _ask("a", HALF), _ask("b", {"gpu": 0.75, "mcpu": 4000}), _ask("c", {"gpu": 0.25}))
    assert _nodes(world, "b") == ["n2"]
    assert (_nodes(world, "c"), _devices(world, "c")) == (["n2"], [((0, 250),)])


def test_a_fraction_does_not_join_where_another_key_is_used_up() -> None:
    pool = make.pool(nodes={"n1": {"gpu": 1, "mcpu": 1000}, "n2": {"gpu": 1, "mcpu": 1000}})
    world = _settled(pool, _ask("a", {"gpu": 0.5, "mcpu": 800}), _ask("b", {"gpu": 0.5, "mcpu": 800}))
    assert [_nodes(world, name) for name in "ab"] == [["n1"], ["n2"]]


def test_a_fraction_that_fits_no_shared_and_no_free_device_waits() -> None:
    world = _settled(make.pool("p", {"gpu": 1}), _ask("a", {"gpu": 0.6}), _ask("w", HALF))
    assert _waits(world, "w")


def test_a_gang_that_fits_by_units_but_not_by_nodes_waits() -> None:
    """S8: 3 + 3 free, asked 2 + 2 + 2."""
    pool = make.pool(nodes={"n1": {"gpu": 3}, "n2": {"gpu": 3}})
    world = _settled(pool, _ask("a", {"gpu": 0.5}), _ask("gang", {"gpu": 2}, {"gpu": 2}, {"gpu": 1}))
    assert world.status_of(RequestId("gang")) is Status.ALLOCATED
    other = _settled(replace(pool, name="p"), _ask("w", {"gpu": 2}, {"gpu": 2}, {"gpu": 2}))
    assert plan(other, make.START).is_empty
    assert other.status_of(RequestId("w")) is None, "rejected: no nodes could ever hold it (S16)"


def test_a_fraction_opens_no_new_device_where_it_can_join_another() -> None:
    """S8: n1 is the fuller node by what it has, and `b` would be the first there."""
    pool = make.pool(nodes={"n1": {"gpu": 1, "mcpu": 1}, "n2": {"gpu": 2, "mcpu": 8}})
    world = _settled(pool, _ask("a", {"gpu": 0.5, "mcpu": 4}), _ask("b", {"gpu": 0.5}))
    assert [_nodes(world, name) for name in "ab"] == [["n2"], ["n2"]]
    assert _devices(world, "b") == [((0, 500),)]


def test_a_device_that_is_shared_no_more_is_one_like_the_others() -> None:
    pool = make.pool(nodes={"n1": {"gpu": 1}, "n2": {"gpu": 2}})
    world = _settled(pool, _ask("a", {"gpu": 2}), _ask("b", HALF))
    world.apply(ev.Ended(request=RequestId("b"), how=Status.RELEASED), make.START)
    world.apply(ev.Ended(request=RequestId("a"), how=Status.RELEASED), make.START)
    for name, gpus in (("c", 1), ("d", 0.5), ("e", 0.5), ("f", 1)):
        world.apply(ev.Submitted(request=_ask(name, {"gpu": gpus})), make.START)
        decide(world, make.START)
    assert [_nodes(world, name) for name in "cdef"] == [["n1"], ["n2"], ["n2"], ["n2"]]


def test_a_gang_of_fractions_is_placed_where_the_obvious_order_would_fail() -> None:
    """Best fit would lay the larger part beside `a` on n1, where alone the CPUs of the other are."""
    pool = make.pool(nodes={"n1": {"gpu": 1, "mcpu": 8}, "n2": {"gpu": 1, "mcpu": 1}})
    world = _settled(pool, make.request("a", "team:t", {"gpu": 0.25, "mcpu": 0}), _ask("g1", {"gpu": 0.25, "mcpu": 2}))
    assert [_nodes(world, name) for name in ("a", "g1")] == [["n1"], ["n1"]]
    world.apply(ev.Ended(request=RequestId("g1"), how=Status.RELEASED), make.START)
    world.apply(ev.Submitted(request=_ask("gang", {"gpu": 0.5, "mcpu": 1}, {"gpu": 0.25, "mcpu": 8})), make.START)
    decide(world, make.START)
    assert _nodes(world, "gang") == ["n2", "n1"]
    assert _devices(world, "gang") == [((0, 500),), ((0, 250),)]


def test_a_gang_that_fits_nowhere_is_given_up_after_so_many_trials() -> None:
    """Eleven parts, of which no node takes two, on ten nodes: to try all ways would take until tomorrow."""
    pool = make.pool(nodes={f"n{number:02d}": {"gpu": 5, "mcpu": 99} for number in range(10)})
    parts = [{"gpu": 3, "mcpu": number} for number in range(11)]
    assert make.settled(pool, make.policy(), _ask("gang", *parts)).status_of(RequestId("gang")) is None, "rejected"
    assert not _waits(_settled(pool, _ask("gang", *parts[:10])), "gang")

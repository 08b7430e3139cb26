"""`placement: defragment`: a part goes where it spoils least for the kinds of demand that run and wait there (S8)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairpool.core import events as ev
from fairpool.core.amounts import GPU, WHOLE, Amounts, get, of
from fairpool.core.books import PoolBooks
from fairpool.core.ids import RequestId
from fairpool.core.planner import decide
from fairpool.core.pools import NodeState, Placement, Pool
from fairpool.core.requests import PartPlacement, Request, Status
from fairpool.core.world import World
from fairpool.testing import builders as make

BOTH = (Placement.PACK, Placement.DEFRAGMENT)


def _settled(pool: Pool, *requests: Request) -> World:
    """A world in which the requests came one after the other."""
    return make.settled(pool, make.policy(), later=requests)


def _ask(name: str, *parts: make.Units) -> Request:
    return make.request(name, "team:t", *parts)


def _place(world: World, request: str) -> PartPlacement:
    (place,) = world.allocations[RequestId(request)].parts
    return place


def _nodes(world: World, *requests: str) -> list[str]:
    return [_place(world, request).node for request in requests]


# ---- what it is for --------------------------------------------------------------------------------------------------


def test_work_that_takes_many_cpus_strands_no_gpu() -> None:
    """With `pack` the first one takes all CPUs of `n1`, whose second GPU is then of no use to anybody."""
    heavy, light = {"gpu": 1, "mcpu": 16_000}, {"gpu": 1, "mcpu": 4000}
    asks = [_ask("h1", heavy), _ask("h2", heavy), _ask("l1", light), _ask("l2", light)]
    nodes = {"n1": {"gpu": 2, "mcpu": 16_000}, "n2": {"gpu": 2, "mcpu": 32_000}}
    packed, tidy = (_settled(make.pool(nodes=nodes, placement=placement), *asks) for placement in BOTH)
    assert packed.status_of(RequestId("l2")) is Status.QUEUED
    assert _nodes(tidy, "h1", "h2", "l1", "l2") == ["n2", "n2", "n1", "n1"]


def test_fractions_lie_so_that_what_is_left_is_of_use() -> None:
    """Best fit puts 0.5 beside 0.4 and leaves a tenth. Two GPUs are just enough for these five."""
    asks = [_ask(name, {"gpu": gpus}) for name, gpus in zip("abcde", (0.4, 0.5, 0.2, 0.4, 0.5), strict=True)]
    packed, tidy = (_settled(make.pool(nodes={"n1": {"gpu": 2}}, placement=placement), *asks) for placement in BOTH)
    assert packed.status_of(RequestId("e")) is Status.QUEUED
    assert [_place(tidy, name).devices for name in "abcde"] == [
        ((0, 400),),
        ((1, 500),),
        ((0, 200),),
        ((0, 400),),
        ((1, 500),),
    ]


@pytest.mark.parametrize(("waits", "expected"), [(False, "n1"), (True, "n2")])
def test_what_waits_is_typical_too(waits: bool, expected: str) -> None:
    """A request for four GPUs waits for its limit. One that asks for a single GPU leaves four together where it can."""
    pool = make.pool(nodes={"n0": {"gpu": 1}, "n1": {"gpu": 4}, "n2": {"gpu": 5}}, placement=Placement.DEFRAGMENT)
    limited = make.policy("team:u", limit={"gpu": 4})
    wide = [make.request("wide", "team:u", {"gpu": 4})] if waits else []
    asks = [make.request("first", "team:u", {"gpu": 1}), *wide, _ask("single", {"gpu": 1})]
    world = make.settled(pool, make.policy(), limited, later=asks)
    assert (RequestId("wide") in world.queue) == waits
    assert _nodes(world, "single") == [expected]


@pytest.mark.parametrize("how", ["cancelled", "unaffected"])
def test_what_is_gone_is_typical_no_more(how: str) -> None:
    """The same when the request for four has gone again, and when the pool has changed meanwhile."""
    pool = make.pool(nodes={"n0": {"gpu": 1}, "n1": {"gpu": 4}, "n2": {"gpu": 5}}, placement=Placement.DEFRAGMENT)
    limited = make.policy("team:u", limit={"gpu": 4})
    asks = [make.request("first", "team:u", {"gpu": 1}), make.request("wide", "team:u", {"gpu": 4})]
    world = make.settled(pool, make.policy(), limited, later=asks)
    world.apply(ev.PoolSet(pool=replace(pool, max_bypass_s=5)), make.START)
    if how == "cancelled":
        world.apply(ev.Ended(request=RequestId("wide"), how=Status.CANCELLED), make.START)
    world.apply(ev.Submitted(request=_ask("single", {"gpu": 1})), make.START)
    decide(world, make.START)
    assert _nodes(world, "single") == ["n1" if how == "cancelled" else "n2"]


def test_of_devices_with_as_much_left_a_fraction_takes_the_first() -> None:
    pool = make.pool(nodes={"n1": {"gpu": 3}}, placement=Placement.DEFRAGMENT)
    world = _settled(pool, _ask("a", {"gpu": 0.6}), _ask("b", {"gpu": 0.6}), _ask("c", {"gpu": 0.4}))
    assert [_place(world, name).devices for name in "abc"] == [((0, 600),), ((1, 600),), ((0, 400),)]


def test_what_has_run_and_ended_is_typical_no_more() -> None:
    """Had it any say yet, the four of `n1` would be kept together."""
    pool = make.pool(nodes={"n0": {"gpu": 1}, "n1": {"gpu": 4}, "n2": {"gpu": 5}}, placement=Placement.DEFRAGMENT)
    world = _settled(pool, _ask("first"), _ask("wide", {"gpu": 4}))
    world.apply(ev.Ended(request=RequestId("wide"), how=Status.RELEASED), make.START)
    world.apply(ev.Submitted(request=_ask("single")), make.START)
    decide(world, make.START)
    assert _nodes(world, "first", "single") == ["n0", "n1"]


def test_work_without_gpus_takes_cpus_where_no_gpu_is_left() -> None:
    """`n1` has fewer left, and its GPUs need them."""
    nodes = {"n1": {"gpu": 2, "mcpu": 16_000}, "n2": {"gpu": 1, "mcpu": 64_000}}
    one = {"gpu": 1, "mcpu": 8000}
    asks = [_ask("g1", one), _ask("cpus", {"mcpu": 8000}), _ask("g2", one), _ask("g3", one)]
    world = _settled(make.pool(nodes=nodes, placement=Placement.DEFRAGMENT), *asks)
    assert _nodes(world, "g1", "cpus", "g2", "g3") == ["n2", "n2", "n1", "n1"]


def test_where_nothing_is_spoilt_the_node_that_is_worth_least_is_taken() -> None:
    """One kind of one GPU can use whatever is left: nodes are filled one after the other, as with `pack`."""
    pool = make.pool(nodes={"n1": {"gpu": 3}, "n2": {"gpu": 2}}, placement=Placement.DEFRAGMENT)
    world = _settled(pool, *(_ask(name, {"gpu": 1}) for name in "abcde"))
    assert _nodes(world, *"abcde") == ["n2", "n2", "n1", "n1", "n1"]


# ---- what it never does ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [NodeState.CORDONED, NodeState.DOWN, NodeState.UNKNOWN])
def test_nothing_starts_on_a_node_that_is_not_ready(state: NodeState) -> None:
    """S6."""
    pool = make.pool(nodes={"n1": {"gpu": 4}, "n2": {"gpu": 4}}, placement=Placement.DEFRAGMENT)
    pool = replace(pool, nodes=(replace(pool.nodes[0], state=state), pool.nodes[1]))
    world = _settled(pool, _ask("a", {"gpu": 4}), _ask("w", {"gpu": 0.5}))
    assert _nodes(world, "a") == ["n2"]
    assert world.status_of(RequestId("w")) is Status.QUEUED


def test_a_pool_without_nodes_is_one_node_and_places_as_ever() -> None:
    """S7."""
    world = _settled(make.pool("p", {"gpu": 2}, placement=Placement.DEFRAGMENT), *(_ask(n, {"gpu": 0.5}) for n in "ab"))
    assert [_place(world, name).devices for name in "ab"] == [((0, 500),), ((0, 500),)]


@pytest.mark.parametrize("seed", range(60))
def test_a_part_goes_where_least_is_spoilt_for_the_kinds_there_are(seed: int) -> None:
    """Against the definition, node by node and device by device: a kind can use the devices of which it could take one,
    on a node that has enough else for it. Ties go to the node that is worth least."""
    rng = Random(seed)
    nodes = {f"n{n}": {"gpu": rng.choice([1, 2, 2, 4]), "mcpu": rng.randint(2, 9)} for n in range(7)}
    books = PoolBooks(make.pool(nodes=nodes, placement=Placement.DEFRAGMENT))
    lying: list[tuple[PartPlacement, Amounts]] = []
    kinds: list[Amounts] = []
    for _ in range(20):
        gpus = rng.choice([0, 250, 500, 500, 750, 1000, 1000, 2000, 3000])
        part = of({GPU: gpus, "mcpu": rng.choice([0, 1000, 1000, 2000, 4000])})
        if rng.random() < 0.7:
            kinds.append(part)
            books.nodes.expect((part,), 1)
        if kinds and rng.random() < 0.3:
            books.nodes.expect((kinds.pop(rng.randrange(len(kinds))),), -1)
        found = books.nodes.place((part,))
        ways = {way: _spoils(books, lying, set(kinds), way, part) for way in _ways(books, lying, part)}
        assert (found is None) == (not ways)
        if found is not None:
            assert ways[found[0]] == min(ways.values())
            books.nodes.shift(found[0], part, 1, 1)
            lying.append((found[0], part))
        if lying and rng.random() < 0.4:
            place, gone = lying.pop(rng.randrange(len(lying)))
            books.nodes.shift(place, gone, -1, -1)


def _ways(books: PoolBooks, lying: list[tuple[PartPlacement, Amounts]], part: Amounts) -> Iterator[PartPlacement]:
    gpus = get(part, GPU)
    for node in books.pool.nodes:
        left, devices = _left_of(dict(node.capacity), node.name, lying)
        untouched = [device for device, value in devices.items() if value == WHOLE]
        if any(value > left[key] for key, value in part if key != GPU):
            continue
        if gpus % WHOLE:
            beside = [device for device, value in devices.items() if gpus <= value < WHOLE]
            for device in [*beside, *untouched[:1]]:
                yield PartPlacement(node.name, ((device, gpus),))
        elif len(untouched) * WHOLE >= gpus:
            yield PartPlacement(node.name, tuple((device, WHOLE) for device in untouched[: gpus // WHOLE]))


def _spoils(
    books: PoolBooks, lying: list[tuple[PartPlacement, Amounts]], kinds: set[Amounts], way: PartPlacement, part: Amounts
) -> tuple[int, int]:
    """How much less its node is worth with it, and what it is worth without."""
    (capacity,) = [dict(node.capacity) for node in books.pool.nodes if node.name == way.node]
    worth, less = (
        sum(_usable(kind, *_left_of(capacity, way.node, there)) for kind in kinds if get(kind, GPU))
        for there in (lying, [*lying, (way, part)])
    )
    return worth - less, worth


def _usable(kind: Amounts, left: dict[str, int], devices: dict[int, int]) -> int:
    gpus, untouched = get(kind, GPU), sum(value == WHOLE for value in devices.values()) * WHOLE
    if any(value > left[key] for key, value in kind if key != GPU):
        return 0
    if gpus >= WHOLE:
        return untouched if gpus <= untouched else 0
    return sum(value for value in devices.values() if value >= gpus)


PARTS = st.tuples(
    st.sampled_from([0, 100, 300, 500, 700, 1000, 2000, 4000]), st.integers(0, 6_000), st.integers(0, 3_000)
)


@settings(max_examples=150)
@given(st.lists(PARTS, min_size=1, max_size=40), st.integers(0, 2**32))
def test_it_finds_room_exactly_where_there_is_some_and_gives_no_device_twice(
    asked: list[tuple[int, int, int]], seed: int
) -> None:
    """INV-4 and INV-7, after anything that came and went: looked for node by node, device by device."""
    rng = Random(seed)
    books = PoolBooks(
        make.pool(
            nodes={f"n{n}": {"gpu": rng.randint(0, 4), "mcpu": rng.randint(1, 12), "mem": 5} for n in range(4)},
            placement=Placement.DEFRAGMENT,
        )
    )
    lying: list[tuple[PartPlacement, Amounts]] = []
    for gpus, mcpu, mem in asked:
        part = of({GPU: gpus, "mcpu": mcpu, "mem": mem})
        if rng.random() < 0.8:
            books.nodes.expect((part,), 1)
        places = books.nodes.place((part,))
        assert (places is not None) == _fits_somewhere(books, lying, part)
        if places is not None:
            books.nodes.shift(places[0], part, 1, 1)
            lying.append((places[0], part))
        if lying and rng.random() < 0.3:
            place, gone = lying.pop(rng.randrange(len(lying)))
            books.nodes.shift(place, gone, -1, -1)


def _fits_somewhere(books: PoolBooks, lying: list[tuple[PartPlacement, Amounts]], part: Amounts) -> bool:
    return any(_fits(dict(node.capacity), node.name, lying, part) for node in books.pool.nodes)


def _left_of(
    capacity: dict[str, int], node: str, lying: list[tuple[PartPlacement, Amounts]]
) -> tuple[dict[str, int], dict[int, int]]:
    """What is left of each key, and of each device."""
    devices = dict.fromkeys(range(capacity.get(GPU, 0) // WHOLE), WHOLE)
    left = dict(capacity)
    for place, other in lying:
        if place.node == node:
            for key, value in other:
                left[key] -= value
            for device, share in place.devices:
                devices[device] -= share
    assert all(value >= 0 for value in (*left.values(), *devices.values()))
    return left, devices


def _fits(capacity: dict[str, int], node: str, lying: list[tuple[PartPlacement, Amounts]], part: Amounts) -> bool:
    left, devices = _left_of(capacity, node, lying)
    gpus = get(part, GPU)
    whole = sum(value == WHOLE for value in devices.values()) * WHOLE
    enough = gpus <= whole if gpus >= WHOLE or not gpus else any(value >= gpus for value in devices.values())
    return enough and all(value <= left[key] for key, value in part if key != GPU)

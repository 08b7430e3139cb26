"""What is held for the first blocked request of a pool: until when where that is known, and what of it (S25)."""

from __future__ import annotations

from random import Random

import pytest

from fairpool.core import events as ev
from fairpool.core.holding import Held
from fairpool.core.ids import SECOND, Instant, PolicyId, PoolId
from fairpool.core.planner import decide
from fairpool.core.pools import Pool
from fairpool.core.requests import Because, Eviction, Request
from fairpool.core.world import World
from fairpool.testing import builders as make
from tests.property.recount import differences

P = PoolId("p")


def _held(world: World, request: Request, now: Instant = make.START) -> Held:
    books = world.books[P]
    return Held(books, books.policies[PolicyId("p/team:t")], request, now)


def _ask(name: str, *parts: make.Units, runtime_s: int | None = None) -> Request:
    return make.request(name, "team:t", *parts, max_runtime_s=runtime_s)


def _kept(world: World, request: Request) -> dict[str, dict[str, int]]:
    """What holding for the request takes out of each node in the `after` book."""
    nodes = world.books[P].nodes.nodes
    before = {node.name: dict(node.free_after) for node in nodes}
    _held(world, request)
    after = {node.name: node.free_after for node in nodes}
    taken = {name: {key: value - after[name][key] for key, value in keys.items()} for name, keys in before.items()}
    taken = {name: {key: value for key, value in keys.items() if value} for name, keys in taken.items()}
    return {name: keys for name, keys in taken.items() if keys}


@pytest.mark.parametrize("seed", range(40))
def test_it_is_complete_when_enough_of_what_has_an_end_has_ended(seed: int) -> None:
    """Counted by hand: what is leaving goes by its deadline, and the others end one after the other."""
    rng = Random(seed)
    world = make.world(make.pool("p", {"cpu": 10}), make.policy())
    for number in range(rng.randint(2, 8)):
        began = Instant(rng.randint(0, 20) * SECOND)
        runtime_s = rng.choice([None, 5, 20, 40, 60])
        world.apply(ev.Submitted(request=_ask(f"a{number}", {"cpu": rng.randint(1, 4)}, runtime_s=runtime_s)), began)
        decide(world, began)
    for running in list(world.allocations):
        if rng.random() < 0.3:
            until = Instant(rng.randint(25, 70) * SECOND)
            world.evict(running, Eviction(cause=None, because=Because.CAPACITY, deadline_at=until))
    now, wanted = Instant(30 * SECOND), rng.randint(3, 10)
    held = _held(world, _ask("w", {"cpu": wanted}), now)
    assert held.complete_at == _complete_at(world, wanted * 1000, now)
    held.lift()
    assert differences(world) == []


def _complete_at(world: World, wanted: int, now: Instant) -> int | None:
    running = [each for each in world.allocations.values() if each.eviction is None]
    free = 10_000 - sum(each.request.demand.total[0][1] for each in running)
    leaving = [each.eviction.deadline_at for each in world.allocations.values() if each.eviction is not None]
    known = [each for each in running if each.request.max_runtime_s is not None]
    if not known and not leaving:
        return None
    at = max(leaving, default=now)
    ends = sorted(
        (max(now, each.granted_at + (each.request.max_runtime_s or 0) * SECOND), each.request.demand.total[0][1])
        for each in known
    )
    for ends_at, amount in ends:
        if free >= wanted:
            break
        free, at = free + amount, Instant(max(at, ends_at))
    return at if free >= wanted else None


def test_where_nothing_has_an_end_all_that_is_free_and_asked_for_is_held() -> None:
    world = make.settled(make.pool("p", {"cpu": 8, "lic": 1}), make.policy(), _ask("a", {"cpu": 5}))
    _held(world, _ask("w", {"cpu": 6, "lic": 1}))
    assert world.books[P].free_after == {"cpu": 0, "lic": 0}


def test_no_more_is_held_than_is_asked_for() -> None:
    world = make.settled(make.pool("p", {"cpu": 8, "lic": 3}), make.policy(), _ask("a", {"cpu": 5}))
    _held(world, _ask("w", {"cpu": 6, "lic": 1}))
    assert world.books[P].free_after == {"cpu": 0, "lic": 2000}


def _nodes(**nodes: make.Units) -> Pool:
    return make.pool(nodes=nodes)


def test_it_is_held_on_the_node_that_lacks_fewest_gpus_and_then_least_of_the_rest() -> None:
    eight = {"gpu": 4, "mcpu": 8}
    pool = _nodes(n1=eight, n2=eight, n3=eight)
    world = make.settled(
        pool, make.policy(), later=[_ask("a", {"gpu": 3, "mcpu": 1}), _ask("b", {"gpu": 2, "mcpu": 7})]
    )
    assert _kept(world, _ask("w", {"gpu": 4, "mcpu": 1})) == {"n3": {"gpu": 4000, "mcpu": 1000}}
    full = make.settled(pool, make.policy(), later=[_ask(n, {"gpu": g, "mcpu": c}) for n, g, c in FILLING])
    assert {str(name): held.parts[0].node for name, held in full.allocations.items()} == {
        "a": "n1",
        "b": "n2",
        "c": "n3",
    }
    assert _kept(full, _ask("w", {"gpu": 4, "mcpu": 6})) == {"n3": {"gpu": 1000, "mcpu": 6000}}


FILLING = [("a", 4, 1), ("b", 3, 4), ("c", 3, 2)]
"""n2 and n3 lack three GPUs each; of CPUs n2 lacks two more."""


def test_whole_gpus_are_lacked_where_only_parts_of_devices_are_free() -> None:
    """S8: three times 0.4 is more than one, and no device."""
    pool = _nodes(n1={"gpu": 3}, n2={"gpu": 3})
    running = [_ask("whole", {"gpu": 3}), *(_ask(name, {"gpu": 0.6}) for name in "abc"), _ask("two", {"gpu": 2})]
    world = make.settled(pool, make.policy(), later=running[:4])
    assert [world.allocations[request.id].parts[0].node for request in running[:4]] == ["n1", "n2", "n2", "n2"]
    world.let_go(running[0].id)
    world.enqueue(running[4])
    decide(world, make.START)
    assert _kept(world, _ask("w", {"gpu": 3})) == {"n1": {"gpu": 1000}}
    other = make.settled(_nodes(n1={"gpu": 3}, n2={"gpu": 3}), make.policy(), later=[*running[1:4], running[4]])
    assert [other.allocations[request.id].parts[0].node for request in running[1:]] == ["n1", "n1", "n1", "n2"]
    assert _kept(other, _ask("w", {"gpu": 3})) == {"n2": {"gpu": 1000}}


def test_a_node_that_could_never_hold_the_part_is_none_of_them() -> None:
    pool = _nodes(n1={"gpu": 2, "mcpu": 8}, n2={"gpu": 4, "mcpu": 8})
    world = make.settled(pool, make.policy(), _ask("a", {"gpu": 4, "mcpu": 1}))
    assert _kept(world, _ask("w", {"gpu": 3, "mcpu": 2})) == {"n2": {"mcpu": 2000}}


def test_a_thousandth_that_is_lacking_is_lacking() -> None:
    """In order of the keys: `n2` lacks next to nothing of the first of them, `n1` half of the second."""
    keys = {"a": 4, "b": 2, "c": 1}
    pool = _nodes(n1=keys, n2=keys)
    world = make.settled(pool, make.policy(), later=[_ask("x", {"b": 1, "c": 1}), _ask("y", {"a": 0.001, "c": 1})])
    assert [held.parts[0].node for held in world.allocations.values()] == ["n1", "n2"]
    assert _kept(world, _ask("w", {"a": 4, "b": 2})) == {"n1": {"a": 4000, "b": 1000}}


def test_of_a_fraction_no_device_is_held_but_the_rest_is() -> None:
    world = make.settled(_nodes(n1={"gpu": 1, "mcpu": 8}), make.policy(), _ask("a", {"gpu": 1, "mcpu": 4}))
    assert _kept(world, _ask("w", {"gpu": 0.5, "mcpu": 8})) == {"n1": {"mcpu": 4000}}

"""The audit names every invariant that is broken on purpose. A check that cannot fail is no check.

Each case starts from a sound world, breaks one thing behind the planner's back, and says which invariant goes. INV-5
and INV-9 have a second half that one world cannot show: `tests/property` asks that of every decision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from fairpool.core import events as ev
from fairpool.core.audit import audit
from fairpool.core.ids import SECOND, Instant, PolicyId, PoolId, RequestId
from fairpool.core.requests import Allocation, Because, Eviction, PartPlacement, Request
from fairpool.core.world import World
from fairpool.testing import builders as make

P = PoolId("p")
OURS = PolicyId("p/team:t")
A = RequestId("a")


def _world(*running: Request, reserved: float = 4, limit: float = 6) -> World:
    """A pool of 8 GPUs, one policy of ours and one of others, and what runs."""
    ours = make.policy("team:t", {"gpu": reserved}, {"gpu": limit})
    return make.settled(make.pool("p", {"gpu": 8}), ours, make.policy("team:b"), *running)


def _force(world: World, request: Request, *places: PartPlacement) -> None:
    """Enter an allocation that no planner would have granted."""
    world.sequence += 1
    world.hold(
        Allocation(
            request=request,
            pool=P,
            policy=PolicyId(f"p/{request.subjects[0]}"),
            parts=places,
            granted_at=make.START,
            sequence=world.sequence,
        )
    )


def _devices(*indices: int, node: str = "", share: int = 1000) -> PartPlacement:
    return PartPlacement(node, tuple((index, share) for index in indices))


def _gpus(name: str, gpus: float, subject: str = "team:t", *, preemptible: bool = True) -> Request:
    return make.request(name, subject, {"gpu": gpus}, preemptible=preemptible)


def _over_capacity() -> World:
    world = _world(_gpus("a", 6))
    _force(world, _gpus("x", 3, "team:b"), _devices(6, 7, 8))
    return world


def _over_limit() -> World:
    world = _world(_gpus("a", 6))
    _force(world, _gpus("x", 1), _devices(6))
    return world


def _firm_over_reservation() -> World:
    world = _world(_gpus("a", 4, preemptible=False))
    _force(world, _gpus("x", 1, preemptible=False), _devices(4))
    return world


def _device_given_twice() -> World:
    world = _world(_gpus("a", 2))
    _force(world, _gpus("x", 1), _devices(0))
    return world


def _whole_gpu_in_halves() -> World:
    world = _world()
    _force(world, _gpus("x", 1), _devices(0, 1, share=500))
    return world


def _fewer_devices_than_asked() -> World:
    world = _world()
    _force(world, _gpus("x", 2), _devices(0))
    return world


def _node_over_capacity() -> World:
    pool = make.pool(nodes={"n1": {"gpu": 2, "mcpu": 1000}, "n2": {"gpu": 2, "mcpu": 1000}})
    world = make.settled(pool, make.policy())
    part = {"gpu": 1, "mcpu": 600}
    for number, name in enumerate("xy"):
        _force(world, make.request(name, "team:t", part), _devices(number, node="n1"))
    return world


def _firm_evicted() -> World:
    world = _world(_gpus("a", 4, preemptible=False))
    world.evict(A, Eviction(cause=None, because=Because.CAPACITY, deadline_at=Instant(30 * SECOND)))
    return world


def _entitled_waits_behind_borrower() -> World:
    """A plan that forgets to evict: `w` has the whole reservation to itself and waits behind a borrower."""
    world = _world(_gpus("b", 8, "team:b"))
    world.apply(ev.Submitted(request=_gpus("w", 4)), make.START)
    return world


def _idle_gpus_beside_a_waiting_request() -> World:
    world = _world()
    world.apply(ev.Submitted(request=_gpus("w", 4)), make.START)
    return world


def _queued_and_running() -> World:
    world = _world(_gpus("a", 2))
    world.queue.add(_gpus("a", 2))
    return world


def _missing_on_the_books() -> World:
    world = _world(_gpus("a", 2))
    world.books[P].leave(world.allocations[A])
    return world


def _in_a_pool_that_is_gone() -> World:
    world = _world(_gpus("a", 2))
    held = world.let_go(A)
    world.hold(replace(held, pool=None, policy=None))
    world._allocations[A] = replace(held, pool=PoolId("gone"))  # no public way leads here
    return world


def _counter_that_drifted() -> World:
    world = _world(_gpus("a", 2))
    world.books[P].free_now["gpu"] += 1000
    return world


def _usage_that_drifted() -> World:
    world = _world(_gpus("a", 2))
    world.books[P].policies[OURS].used_now["gpu"] -= 1000
    return world


def _device_that_drifted() -> World:
    world = _world(_gpus("a", 2))
    world.books[P].nodes.nodes[0].devices.shift(_devices(0).devices, -1, -1)
    return world


def _plan_not_carried_out() -> World:
    """What a restart would decide must be nothing: here it would reject a request that can never run."""
    world = _world()
    world.apply(ev.Submitted(request=_gpus("w", 9)), make.START)
    return world


BROKEN: list[tuple[str, Callable[[], World]]] = [
    ("INV-1", _over_capacity),
    ("INV-2", _over_limit),
    ("INV-3", _firm_over_reservation),
    ("INV-4", _device_given_twice),
    ("INV-4", _whole_gpu_in_halves),
    ("INV-4", _fewer_devices_than_asked),
    ("INV-4", _node_over_capacity),
    ("INV-5", _firm_evicted),
    ("INV-6", _entitled_waits_behind_borrower),
    ("INV-7", _idle_gpus_beside_a_waiting_request),
    ("INV-8", _queued_and_running),
    ("INV-8", _missing_on_the_books),
    ("INV-8", _in_a_pool_that_is_gone),
    ("INV-8", _counter_that_drifted),
    ("INV-8", _usage_that_drifted),
    ("INV-8", _device_that_drifted),
    ("INV-9", _plan_not_carried_out),
]


@pytest.mark.parametrize(("invariant", "broken"), BROKEN, ids=[f"{inv}{make_.__name__}" for inv, make_ in BROKEN])
def test_the_audit_names_what_was_broken(invariant: str, broken: Callable[[], World]) -> None:
    found = audit(broken(), make.START)
    assert invariant in {violation.invariant for violation in found}, found


def test_there_is_a_broken_world_for_each_invariant() -> None:
    assert {invariant for invariant, _ in BROKEN} == {f"INV-{number}" for number in range(1, 10)}


def test_the_worlds_are_sound_before_they_are_broken() -> None:
    """Otherwise the cases above would prove nothing."""
    for running in ((_gpus("a", 6),), (_gpus("a", 4, preemptible=False),), (_gpus("b", 8, "team:b"),), ()):
        assert audit(_world(*running), make.START) == ()


def test_who_could_preempt_and_is_not_entitled_breaks_no_promise() -> None:
    """INV-6 is about the entitled alone; that a decision is missing is said all the same."""
    world = make.settled(make.pool("p", {"gpu": 8}), make.policy("team:t", priority=9), make.policy("team:b"),
                         _gpus("b", 8, "team:b"))  # fmt: skip
    world.apply(ev.Submitted(request=_gpus("w", 4)), make.START)
    assert {violation.invariant for violation in audit(world, make.START)} == {"INV-9"}

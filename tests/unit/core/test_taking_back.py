"""What if leaves nothing behind, and a world restored from its snapshot is the same world (INV-9, S33)."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import pytest

from fairpool.core import events as ev
from fairpool.core.accounts import PolicyBooks
from fairpool.core.audit import audit
from fairpool.core.explain import check
from fairpool.core.forecast import estimate_start
from fairpool.core.ids import SECOND, Instant, PoolId, RequestId
from fairpool.core.journal import Journal
from fairpool.core.planner import decide, plan
from fairpool.core.requests import Status
from fairpool.core.world import World
from fairpool.testing import builders as make

P = PoolId("p")
COUNTS = ("used_now", "used_after", "firm_now", "firm_after")
ALL_BOOKS = ("free_now", "free_after", "leaving", "ends", "claims", "allocations")


def _busy() -> World:
    """Nodes, a fraction, a borrower who lets go, what is kept meanwhile, and one that waits."""
    pool = make.pool("p", {"license/x": 2}, nodes={"n1": {"gpu": 4}, "n2": {"gpu": 4}})
    world = make.settled(
        pool,
        make.policy("team:t", {"gpu": 4, "license/x": 1}),
        make.policy("team:b", min_runtime_s=0, grace_s=20),
        make.request("half", "team:b", {"gpu": 0.5}, max_runtime_s=100),
        make.request("b1", "team:b", {"gpu": 3}),
        make.request("b2", "team:b", {"gpu": 4}, max_runtime_s=50),
        later=[make.request("c", "team:t", {"gpu": 4, "license/x": 1})],
    )
    world.apply(ev.Submitted(request=make.request("w", "team:b", {"gpu": 2}, wait_timeout_s=90)), make.START)
    decide(world, make.START)
    return world


def _insides(world: World) -> object:
    """Everything that a decision looks at, running totals included."""
    books = {
        pool: (
            {name: deepcopy(getattr(books, name)) for name in ALL_BOOKS},
            [(n.name, n.devices.in_use(), n.devices.free, dict(n.free_now)) for n in books.nodes.nodes],
            {
                policy: (*(_used(of, name) for name in COUNTS), [held.request.id for held in of.by_precedence])
                for policy, of in books.policies.items()
            },
        )
        for pool, books in world.books.items()
    }
    return books, world.snapshot(), set(world.touched), world.moments.next(), sorted(world.queue)


def _used(books: PolicyBooks, name: str) -> dict[str, int]:
    return {key: value for key, value in getattr(books, name).items() if value}


def test_the_busy_world_is_as_busy_as_the_tests_below_need() -> None:
    world = _busy()
    assert world.status_of(RequestId("c")) is Status.QUEUED
    assert set(world.claims) == {"c"}
    assert {held.request.id for held in world.allocations.values() if held.eviction} == {"b2"}
    assert audit(world, make.START) == ()


def test_whatever_happens_inside_what_if_is_taken_back() -> None:
    """Ends, submissions, decisions, deadlines and waits that end."""
    world = _busy()
    before = _insides(world)
    with world.what_if():
        world.apply(ev.Ended(request=RequestId("b1"), how=Status.RELEASED), make.START)
        world.apply(ev.Ended(request=RequestId("c"), how=Status.CANCELLED), make.START)
        world.apply(ev.Submitted(request=make.request("new", "team:t", {"gpu": 1})), make.START)
        decide(world, Instant(60 * SECOND))
        decide(world, Instant(1000 * SECOND))
        assert _insides(world) != before
    assert _insides(world) == before


def test_what_if_takes_back_what_was_done_before_an_error_too() -> None:
    world = _busy()
    before = _insides(world)

    def try_something() -> None:
        with world.what_if():
            world.apply(ev.Ended(request=RequestId("b1"), how=Status.RELEASED), make.START)
            decide(world, make.START)
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        try_something()
    assert _insides(world) == before


def test_the_inner_what_if_leaves_what_the_outer_one_has_done() -> None:
    world = _busy()
    before = _insides(world)
    with world.what_if():
        world.apply(ev.Ended(request=RequestId("b1"), how=Status.RELEASED), make.START)
        between = _insides(world)
        with world.what_if():
            decide(world, Instant(60 * SECOND))
        assert _insides(world) == between
    assert _insides(world) == before


@pytest.mark.parametrize("at_s", [0, 20, 60, 95, 1000])
def test_planning_and_forecasting_leave_the_world_alone(at_s: int) -> None:
    world = _busy()
    before = _insides(world)
    now = Instant(at_s * SECOND)
    first = plan(world, now)
    estimate_start(world, RequestId("w"), now)
    assert _insides(world) == before
    assert plan(world, now) == first, "INV-9: same world, same time, same plan"


@pytest.mark.parametrize("at_s", [0, 20, 60, 95, 1000])
def test_deciding_does_what_planning_said(at_s: int) -> None:
    world = _busy()
    now = Instant(at_s * SECOND)
    foretold = plan(world, now)
    assert decide(world, now) == foretold
    assert decide(world, now).is_empty, "S33"


def test_rules_do_not_change_inside_what_if() -> None:
    world = _busy()
    with world.what_if(), pytest.raises(AssertionError, match="use copy"):
        world.apply(ev.SettingsChanged(require_policy=True), make.START)


def test_the_journal_plays_undoings_backwards_and_forgets_what_nobody_asked_for() -> None:
    journal, undone = Journal(), list[str]()
    journal.record(lambda: undone.append("outside"))
    with journal.recording():
        assert journal.active
        journal.record(lambda: undone.append("first"))
        with journal.recording():
            journal.record(lambda: undone.append("inner"))
        assert undone == ["inner"]
        assert journal.active, "the outer one still records"
        journal.record(lambda: undone.append("second"))
    assert undone == ["inner", "second", "first"]
    assert not journal.active


# ---- copies ----------------------------------------------------------------------------------------------------------


def test_a_restored_world_has_the_same_snapshot_and_decides_the_same() -> None:
    """INV-9; S34: what a store keeps is enough to go on exactly as before. Only when to look again may differ: moments
    that turned out to matter to nobody are not kept."""
    world = _busy()
    again = World.restore(world.snapshot())
    assert again.snapshot() == world.snapshot()
    for at_s in (0, 20, 60, 95, 1000):
        now = Instant(at_s * SECOND)
        assert replace(plan(again, now), wake_at=None) == replace(plan(world, now), wake_at=None)


def test_a_copy_is_independent() -> None:
    world = _busy()
    before = _insides(world)
    copy = world.copy()
    copy.apply(ev.PoolDropped(pool=P), make.START)
    decide(copy, Instant(1000 * SECOND))
    assert _insides(world) == before
    assert copy.pools == {}


def test_the_snapshot_of_an_empty_world_restores_to_an_empty_world() -> None:
    world = World.restore(World().snapshot())
    assert world.snapshot() == World().snapshot()
    assert plan(world, make.START).is_empty


def test_settings_travel_in_the_snapshot() -> None:
    world = make.world(require_policy=True)
    assert world.copy().routes.require_policy


# ---- reading ---------------------------------------------------------------------------------------------------------


def test_usage_counts_what_lets_go_and_free_is_never_below_nothing() -> None:
    """S19, S9."""
    world = _busy()
    assert world.usage(P) == {"gpu": 7500, "license/x": 0}
    assert world.free(P) == {"gpu": 500, "license/x": 2000}
    shrunk = make.settled(make.pool("p", {"gpu": 8}), make.policy(), make.request("a", "team:t", {"gpu": 8}))
    shrunk.apply(ev.PoolSet(pool=make.pool("p", {"gpu": 2})), make.START)
    assert shrunk.usage(P) == {"gpu": 8000}
    assert shrunk.free(P) == {"gpu": 0}


def test_each_policy_has_its_own_usage() -> None:
    """S19."""
    world = _busy()
    assert world.policy_usage(make.policy("team:b").id) == {"gpu": 7500}
    assert world.policy_usage(make.policy("team:t").id) == {}


def test_a_policy_may_go_after_it_was_asked_what_would_become_of_a_new_kind_of_request() -> None:
    """What was only asked leaves no class behind that waits for what is gone."""
    world = make.settled(make.pool("p", {"gpu": 4}), make.policy("team:t"), make.policy("team:b"))
    world.apply(ev.Submitted(request=make.request("big", "team:t", {"gpu": 4})), make.START)
    decide(world, make.START)
    check(world, make.request("asked", "team:b", {"gpu": 3}), make.START)
    assert list(world.queue.classes()) == []
    (policy,) = [each for each in world.policies.values() if each.subject.name == "b"]
    world.apply(ev.PolicyDropped(policy=policy.id), make.START)
    assert decide(world, make.START).is_empty
    assert audit(world, make.START) == ()

"""What a round looks at grows with the kinds of waiting requests, not with their number."""

from __future__ import annotations

import pytest

from fairpool.core import events as ev
from fairpool.core.books import PoolBooks
from fairpool.core.ids import SECOND, Instant, RequestId
from fairpool.core.lanes import Lanes, Turn
from fairpool.core.planner import decide
from fairpool.core.pools import Placement
from fairpool.core.requests import Status
from fairpool.core.world import World
from fairpool.testing import builders as make


def _crowd(waiting: int, kinds: int) -> World:
    """A full pool, and `waiting` requests of as many `kinds` (each asks for another number of GPUs)."""
    world = make.world(make.pool("p", {"gpu": 64}), make.policy())
    for i in range(64):
        world.apply(ev.Submitted(request=make.request(f"running{i}")), make.START)
    for i in range(waiting):
        asked = make.request(f"waiting{i}", "team:t", {"gpu": 1 + i % kinds}, queued_at=Instant(1 + i))
        world.apply(ev.Submitted(request=asked), make.START)
    decide(world, make.START)
    return world


def _turns_after_one_end(world: World, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """(requests considered, requests granted) in the round that follows the end of one request."""
    seen: list[Turn] = []
    plain = Lanes.next

    def counting(lanes: Lanes) -> Turn | None:
        turn = plain(lanes)
        if turn is not None:
            seen.append(turn)
        return turn

    with monkeypatch.context() as patch:
        patch.setattr(Lanes, "next", counting)
        now = Instant(SECOND)
        world.apply(ev.Ended(request=RequestId("running0"), how=Status.RELEASED), now)
        granted = decide(world, now).grants
    return len(seen), len(granted)


@pytest.mark.parametrize("waiting", [10, 1_000, 20_000])
def test_ten_kinds_cost_eleven_looks_however_many_wait(waiting: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _turns_after_one_end(_crowd(waiting, kinds=10), monkeypatch) == ((10 if waiting == 10 else 11), 1)


def test_a_round_looks_at_nobody_in_a_pool_where_nothing_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    world = _crowd(100, kinds=10)
    world.apply(ev.PoolSet(pool=make.pool("q", {"gpu": 1})), make.START)
    world.apply(ev.PolicySet(policy=make.policy(pool="q", subject="team:u")), make.START)
    decide(world, make.START)
    seen: list[object] = []
    monkeypatch.setattr(Lanes, "next", lambda lanes: seen.append(lanes))
    now = Instant(SECOND)
    for name in ("elsewhere", "behind"):
        world.apply(ev.Submitted(request=make.request(name, "team:u", queued_at=now)), now)
    decide(world, now)
    assert len(seen) == 1, "only pool q was served"


def test_who_comes_while_nobody_waits_is_granted_without_an_order_being_made(monkeypatch: pytest.MonkeyPatch) -> None:
    world = _crowd(0, kinds=1)
    world.apply(ev.Ended(request=RequestId("running0"), how=Status.RELEASED), make.START)
    monkeypatch.setattr(Lanes, "next", lambda lanes: pytest.fail("nobody else waits"))
    world.apply(ev.Submitted(request=make.request("sole")), make.START)
    assert [grant.request for grant in decide(world, make.START).grants] == ["sole"]


def test_what_concerns_nobody_who_waits_asks_for_no_look() -> None:
    """An arrival behind the head of its class, and an end where nobody waits."""
    crowd, idle = _crowd(10, kinds=1), _crowd(0, kinds=1)
    crowd.apply(ev.Submitted(request=make.request("last", queued_at=Instant(1000))), make.START)
    idle.apply(ev.Ended(request=RequestId("running0"), how=Status.RELEASED), make.START)
    assert not crowd.touched
    assert not idle.touched
    crowd.apply(ev.Submitted(request=make.request("first", queued_at=Instant(0))), make.START)
    assert crowd.touched, "a new head may have rights that the old one has not"


def test_where_no_node_holds_enough_no_borrower_is_taken_out_to_see_that(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty nodes, each with work in share on one of its two GPUs and a borrower on the other."""
    nodes = {f"n{at:02}": {"gpu": 2} for at in range(20)}
    shares = [make.policy("team:s", {"gpu": 20}), make.policy("team:t", {"gpu": 4}), make.policy("team:b")]
    world = make.world(make.pool("p", nodes=nodes, placement=Placement.SPREAD), *shares)
    for team in ("s", "b"):
        for at in range(20):
            world.apply(ev.Submitted(request=make.request(f"{team}{at:02}", f"team:{team}")), make.START)
            assert decide(world, make.START).grants
    world.apply(ev.Submitted(request=make.request("pair", "team:t", {"gpu": 2})), make.START)
    moved: list[object] = []
    monkeypatch.setattr(PoolBooks, "shift", lambda books, *told: moved.append(told))
    assert decide(world, make.START).is_empty
    assert not moved

"""Explaining and forecasting: position, who holds what is missing, what an eviction does, and when (S37)."""

from __future__ import annotations

import pytest

from fairpool.core import events as ev
from fairpool.core import forecast
from fairpool.core.errors import UnknownObject
from fairpool.core.explain import MAX_HOLDERS, CandidateView, check, explain, foretold, positions
from fairpool.core.forecast import estimate_start
from fairpool.core.ids import SECOND, Instant, PoolId, RequestId
from fairpool.core.lanes import Lanes
from fairpool.core.outlook import Estimate, Ground, Unknown, Why
from fairpool.core.planner import decide
from fairpool.core.reasons import Code
from fairpool.core.requests import Because, Eviction, Request, Status
from fairpool.core.usual import Basis
from fairpool.core.world import World
from fairpool.testing import builders as make

W = RequestId("w")
EIGHT = make.pool("p", {"gpu": 8})


def _ask(
    name: str, gpus: float = 1, subject: str = "team:t", *, at_s: int = 0, runtime_s: int | None = None
) -> Request:
    queued_at = Instant(at_s * SECOND)
    return make.request(name, subject, {"gpu": gpus}, queued_at=queued_at, max_runtime_s=runtime_s)


def _view(world: World, request: str = "w", now: Instant = make.START) -> CandidateView:
    (view,) = explain(world, RequestId(request), now).candidates
    return view


# ---- what is told ----------------------------------------------------------------------------------------------------


def test_an_unknown_request_cannot_be_explained() -> None:
    with pytest.raises(UnknownObject):
        explain(make.world(), W, make.START)


def test_a_running_request_is_told_by_what_it_holds() -> None:
    world = make.settled(EIGHT, make.policy(), _ask("w", 2))
    told = explain(world, W, make.START)
    assert told.status is Status.ALLOCATED
    assert told.allocation == world.allocations[W]
    assert (told.candidates, told.reasons, told.eviction) == ((), (), None)


def test_what_is_missing_is_how_much_more_would_have_to_be_free() -> None:
    world = make.settled(EIGHT, make.policy(), _ask("a", 6), later=[_ask("w", 5)])
    assert _view(world).missing == (("gpu", 3000),)


def test_what_is_missing_counts_neither_carve_outs_nor_what_is_kept_as_free() -> None:
    """S14, S31: of 4 free GPUs 2 are dedicated to others; of 4 that are being freed none is for `w`."""
    owner = make.policy("team:owner", {"gpu": 2}, dedicated=True)
    world = make.settled(EIGHT, owner, make.policy(), _ask("a", 4), later=[_ask("w", 5)])
    assert _view(world).missing == (("gpu", 3000),)
    owner, guest = make.policy("team:owner", {"gpu": 4}), make.policy("team:b")
    asks = [_ask("b", 4, "team:b"), _ask("a", 3, "team:b"), _ask("o", 4, "team:owner"), _ask("w", 2)]
    world = make.settled(EIGHT, owner, guest, make.policy(), later=asks)
    assert [evict.request.id for evict in world.allocations.values() if evict.eviction] == ["a"]
    assert _view(world).missing == (("gpu", 2000),)


def test_holders_are_told_with_what_they_hold_of_what_is_missing_and_of_that_alone() -> None:
    """The largest by whichever key they hold most of."""
    pool = make.pool("p", {"gpu": 8, "lic": 8, "mcpu": 9000})
    asks = [("few", {"gpu": 3, "lic": 2, "mcpu": 900}), ("many", {"gpu": 1, "lic": 6}), ("gpus", {"gpu": 4, "mcpu": 9})]
    running = [make.request(name, "team:t", units) for name, units in asks]
    world = make.settled(pool, make.policy(), *running, later=[make.request("w", "team:t", {"gpu": 2, "lic": 1})])
    (reason,) = _view(world).reasons
    assert reason.key == "gpu"
    assert [(holder.request, holder.amounts) for holder in _view(world).holders] == [
        ("gpus", (("gpu", 4000),)),
        ("few", (("gpu", 3000),)),
        ("many", (("gpu", 1000),)),
    ]


def test_who_holds_most_of_any_missing_key_comes_first() -> None:
    pool = make.pool("p", {"gpu": 4, "lic": 9})
    limited = make.policy("team:t", None, {"lic": 9})
    running = [
        make.request("few", "team:t", {"gpu": 3, "lic": 2}),
        make.request("many", "team:t", {"gpu": 1, "lic": 7}),
    ]
    world = make.settled(pool, limited, *running, later=[make.request("w", "team:t", {"gpu": 2, "lic": 1})])
    view = _view(world)
    assert {reason.key for reason in view.reasons} == {"gpu", "lic"}
    assert [holder.request for holder in view.holders] == ["many", "few"]


def test_the_largest_holders_come_first_and_no_more_than_a_person_reads() -> None:
    pool = make.pool("p", {"gpu": 40})
    small = [_ask(f"s{number:02d}") for number in range(MAX_HOLDERS + 5)]
    world = make.settled(pool, make.policy(), *small, _ask("large", 10), later=[_ask("w", 8)])
    holders = _view(world).holders
    assert len(holders) == MAX_HOLDERS
    assert holders[0].request == "large"
    assert holders[0].amounts == (("gpu", 10_000),)


def test_holders_are_told_with_what_is_known_of_their_end() -> None:
    policies = (make.policy("team:t", {"gpu": 4}), make.policy("team:b"))
    world = make.settled(EIGHT, *policies, _ask("own", 4, runtime_s=70), _ask("b", 4, "team:b"), later=[_ask("w", 8)])
    told = {str(holder.request): holder for holder in _view(world).holders}
    assert (told["own"].borrowed, told["own"].ends_at) == (False, 70 * SECOND)
    assert (told["b"].borrowed, told["b"].ends_at) == (True, None)


def test_where_only_own_rights_stand_in_the_way_only_own_work_is_named() -> None:
    policies = (make.policy("team:t", None, {"gpu": 2}), make.policy("team:b"))
    world = make.settled(EIGHT, *policies, _ask("own", 2), _ask("b", 2, "team:b"), later=[_ask("w", 1)])
    view = _view(world)
    assert [reason.code for reason in view.reasons] == [Code.LIMIT_IN_USE]
    assert [holder.request for holder in view.holders] == ["own"]


def test_a_limit_that_the_policy_does_not_state_is_no_reason() -> None:
    """S37: the pool's fullness is."""
    world = make.settled(EIGHT, make.policy(), _ask("a", 8), later=[_ask("w")])
    assert [reason.code for reason in _view(world).reasons] == [Code.POOL_FULL]


def test_every_failing_condition_is_told_not_only_the_first() -> None:
    """S37."""
    world = make.settled(EIGHT, make.policy("team:t", None, {"gpu": 4}), make.policy("team:b"),
                         _ask("a", 4), _ask("b", 4, "team:b"), later=[_ask("w")])  # fmt: skip
    assert {reason.code for reason in _view(world).reasons} == {Code.LIMIT_IN_USE, Code.POOL_FULL}


def test_a_refused_candidate_is_told_beside_the_one_where_it_waits() -> None:
    """S17, S37."""
    small = make.pool("q", {"gpu": 1})
    world = make.settled(EIGHT, small, make.policy(), make.policy(pool="q"), _ask("a", 8), later=[_ask("w", 4)])
    told = explain(world, W, make.START)
    assert [view.pool for view in told.candidates] == ["p"]
    assert [(reason.code, reason.pool) for reason in told.refused] == [(Code.EXCEEDS_POOL_CAPACITY, "q")]


def test_a_firm_request_is_told_that_it_would_start_if_it_could_be_interrupted() -> None:
    firm = make.request("w", "team:t", {"gpu": 2}, preemptible=False)
    busy = make.request("a", "team:t", {"gpu": 4}, preemptible=False)
    world = make.settled(EIGHT, make.policy("team:t", {"gpu": 4}), busy, later=[firm])
    assert explain(world, W, make.START).starts_if_preemptible
    full = make.settled(EIGHT, make.policy("team:t", {"gpu": 4}), make.policy("team:b"), busy,
                        _ask("b", 4, "team:b"), later=[firm])  # fmt: skip
    assert not explain(full, W, make.START).starts_if_preemptible


# ---- position --------------------------------------------------------------------------------------------------------


def test_positions_are_the_order_in_which_the_pool_considers_its_queue() -> None:
    """S23, S37: the same as a pass takes them."""
    policies = (make.policy("team:t"), make.policy("team:b", {"gpu": 2}), make.policy("team:high", priority=9))
    world = make.settled(
        EIGHT,
        make.policy("team:x", {"gpu": 6}),
        *policies,
        make.request("x", "team:x", {"gpu": 6}, preemptible=False),
        make.request("y", "team:b", {"gpu": 2}, preemptible=False),
    )
    waiting = [_ask("t1", 2, at_s=1), _ask("h", 2, "team:high", at_s=3), _ask("b", 2, "team:b", at_s=0), _ask("t0", 3)]
    for request in waiting:
        world.apply(ev.Submitted(request=request), make.START)
    decide(world, make.START)
    positions = {name: _view(world, name).position for name in ("t1", "h", "b", "t0")}
    with world.what_if():
        lanes, turns = Lanes(world.books[EIGHT.id], world.queue), []
        while (turn := lanes.next()) is not None:
            turns.append(str(turn.request.id))
    assert positions == {name: at for at, name in enumerate(turns, start=1)}
    assert positions["h"] == 1


def test_whoever_an_eviction_is_under_way_for_is_first() -> None:
    """S23, criterion 1."""
    world = _evicting()
    world.apply(ev.Submitted(request=_ask("other", 1, "team:high")), make.START)
    decide(world, make.START)
    assert _view(world).position == 1
    assert _view(world, "other").position == 2


def test_among_those_that_evictions_are_under_way_for_the_more_important_of_a_policy_is_first() -> None:
    """S23, criterion 6."""
    policies = (make.policy("team:t", {"gpu": 2}), make.policy("team:b"))
    urgent = make.request("urgent", "team:t", {"gpu": 1}, priority=1, queued_at=Instant(SECOND))
    guests = [_ask(name, 1, "team:b") for name in ("b1", "b2")]
    world = make.settled(make.pool("p", {"gpu": 2}), *policies, *guests, later=[_ask("plain"), urgent])
    assert set(world.claims) == {"plain", "urgent"}
    assert [_view(world, name).position for name in ("urgent", "plain")] == [1, 2]
    assert positions(world, RequestId("plain")) == {"p": 2}


# ---- evictions -------------------------------------------------------------------------------------------------------


def _evicting() -> World:
    policies = (make.policy("team:t", {"gpu": 4}), make.policy("team:b", {"gpu": 4}), make.policy("team:high"))
    return make.settled(EIGHT, *policies, _ask("b0", 4, "team:b"), _ask("b1", 4, "team:b"), later=[_ask("w", 4)])


def test_an_eviction_is_told_to_both_sides() -> None:
    """S31, S37: for whom, why, and until when."""
    world = _evicting()
    ours, theirs = explain(world, W, make.START).eviction, explain(world, RequestId("b1"), make.START).eviction
    assert ours is not None
    assert (ours.victims, ours.because, ours.deadline_at) == (("b1",), Because.RECLAIM, 30 * SECOND)
    assert theirs == ours


# ---- check -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("gpus", "status"), [(2, Status.ALLOCATED), (3, Status.QUEUED), (9, Status.REJECTED)])
def test_checking_says_what_submitting_would_do_and_submits_nothing(gpus: int, status: Status) -> None:
    world = make.settled(EIGHT, make.policy(), _ask("a", 6))
    before = world.snapshot()
    told = check(world, _ask("w", gpus), make.START)
    assert told.status is status
    assert (told.allocation is not None) == (status is Status.ALLOCATED)
    assert bool(told.reasons) == (status is not Status.ALLOCATED)
    assert world.snapshot() == before
    world.apply(ev.Submitted(request=_ask("w", gpus)), make.START)
    decide(world, make.START)
    assert world.status_of(W) is (None if status is Status.REJECTED else status)


# ---- forecast --------------------------------------------------------------------------------------------------------


def _declared(at: Instant) -> Estimate:
    return Estimate(low=at, about=at, high=at, grounds=(Ground(basis=Basis.MAX_RUNTIME, request=RequestId("a")),))


def test_a_request_starts_when_enough_declared_work_has_ended() -> None:
    world = make.settled(
        EIGHT, make.policy(), _ask("a", 4, runtime_s=60), _ask("b", 4, runtime_s=90), later=[_ask("w", 6)]
    )
    assert estimate_start(world, W, make.START) == _declared(Instant(90 * SECOND))


def test_work_that_should_have_ended_counts_as_ending_now() -> None:
    world = make.settled(EIGHT, make.policy(), _ask("a", 8, runtime_s=60), later=[_ask("w", 6)])
    late = Instant(1000 * SECOND)
    assert estimate_start(world, W, late) == _declared(late)


def test_an_eviction_under_way_bounds_the_start_by_its_deadline() -> None:
    """Who was told to let go may do so at once."""
    deadline = Instant(30 * SECOND)
    told = Estimate(low=make.START, about=deadline, high=deadline, grounds=(Ground(basis=Basis.GRACE_PERIOD),))
    assert estimate_start(_evicting(), W, make.START) == told


def test_without_declared_run_times_nothing_is_known() -> None:
    world = make.settled(EIGHT, make.policy(), _ask("a", 8), later=[_ask("w", 6)])
    unknown = Unknown(why=Why.RUN_TIMES, requests=(RequestId("a"),))
    assert estimate_start(world, W, make.START) == unknown
    assert foretold(explain(world, W, make.START), unknown).estimate == unknown


def test_a_request_that_gives_up_first_has_no_start() -> None:
    """S36."""
    waiting = make.request("w", "team:t", {"gpu": 6}, wait_timeout_s=30)
    world = make.settled(EIGHT, make.policy(), _ask("a", 8, runtime_s=60), later=[waiting])
    assert estimate_start(world, W, make.START) == Unknown(why=Why.GIVES_UP)


def test_who_comes_before_in_line_is_reckoned_with() -> None:
    world = make.settled(
        EIGHT, make.policy(), _ask("a", 8, runtime_s=60), later=[_ask("first", 8, runtime_s=40), _ask("w", 8, at_s=1)]
    )
    assert estimate_start(world, W, make.START) == _declared(Instant(100 * SECOND))


def test_the_pool_of_an_explained_request_is_named() -> None:
    world = make.settled(EIGHT, make.policy(), _ask("a", 8), later=[_ask("w")])
    assert _view(world).pool == PoolId("p")


def test_an_estimate_looks_at_so_many_starts_and_ends_and_says_how_far_that_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """More would be worth little."""
    monkeypatch.setattr(forecast, "MAX_EVENTS", 10)
    running = [_ask(f"a{number:03d}", runtime_s=number + 1) for number in range(15)]
    pool = make.pool("p", {"gpu": len(running)})
    near = make.settled(pool, make.policy(), *running, later=[_ask("w", 10)])
    assert isinstance(estimate_start(near, W, make.START), Estimate)
    far = make.settled(pool, make.policy(), *running, later=[_ask("w", 11)])
    assert estimate_start(far, W, make.START) == Unknown(why=Why.TOO_FAR, later_than=Instant(10 * SECOND))


def test_a_carve_out_bounds_only_the_keys_that_the_pool_meters() -> None:
    """S5, S14: unlisted CPUs are in nobody's way."""
    owner = make.policy("team:owner", {"gpu": 4}, dedicated=True)
    world = make.settled(EIGHT, owner, make.policy(), make.request("w", "team:t", {"gpu": 4, "mcpu": 99_000}))
    assert world.status_of(W) is Status.ALLOCATED


# ---- carve-outs (S14) ------------------------------------------------------------------------------------------------


def _leaves(world: World, name: str) -> None:
    """An operator has it let go; it is still there."""
    world.evict(RequestId(name), Eviction(cause=None, because=Because.CAPACITY, deadline_at=Instant(30 * SECOND)))


def test_what_is_idle_now_and_dedicated_is_nobody_elses_though_others_are_leaving() -> None:
    """4 are free, all of them the owner's; that 4 more will be does not help `w` now."""
    owner = make.policy("team:owner", {"gpu": 4}, dedicated=True)
    world = make.settled(EIGHT, owner, make.policy("team:b"), make.policy(), _ask("b", 4, "team:b"))
    _leaves(world, "b")
    world.apply(ev.Submitted(request=_ask("w", 2)), make.START)
    assert decide(world, make.START).grants == ()
    (reason,) = _view(world).reasons
    assert (reason.code, reason.free) == (Code.DEDICATED_TO_OTHERS, 0)


def test_what_will_be_idle_and_dedicated_is_nobody_elses() -> None:
    """`own` leaves, so that its 4 will be the owner's idle ones. Of the 4 others one is in firm use, 3 are for `c`."""
    owner = make.policy("team:owner", {"gpu": 4}, dedicated=True)
    others = [
        make.policy("team:x", {"gpu": 1}),
        make.policy("team:b"),
        make.policy("team:c", priority=9),
        make.policy(),
    ]
    firm = make.request("x", "team:x", {"gpu": 1}, preemptible=False)
    world = make.settled(EIGHT, owner, *others, _ask("own", 4, "team:owner"), firm, _ask("b", 1, "team:b"))
    _leaves(world, "own")
    for request in (_ask("c", 3, "team:c"), _ask("w", 1)):
        world.apply(ev.Submitted(request=request), make.START)
        decide(world, make.START)
    assert list(world.claims) == ["c"]
    assert world.free(EIGHT.id) == {"gpu": 2000}
    assert RequestId("w") in world.queue


def test_a_carve_out_of_one_key_holds_for_who_asks_for_unmetered_keys_too() -> None:
    """S5, S14: the CPUs are in nobody's way, and the TPUs are the owner's."""
    owner = make.policy("team:owner", {"tpu": 4}, dedicated=True)
    asked = make.request("w", "team:t", {"mcpu": 4, "tpu": 2})
    world = make.settled(make.pool("p", {"tpu": 5}), owner, make.policy(), later=[asked])
    assert RequestId("w") in world.queue


# ---- the key that is named -------------------------------------------------------------------------------------------


def test_a_refusal_names_the_key_of_which_no_node_has_enough() -> None:
    """S16: four GPUs are just what a node has; six CPUs are more."""
    nodes = make.pool(nodes={name: {"gpu": 4, "mcpu": 4} for name in ("n1", "n2")})
    (reason,) = check(
        make.world(nodes, make.policy()), make.request("w", "team:t", {"gpu": 4, "mcpu": 6}), make.START
    ).reasons
    assert (reason.code, reason.key, reason.asked, reason.possible) == (Code.NO_NODE_FITS, "mcpu", 6000, 4000)


def test_what_lies_scattered_is_a_key_of_nodes() -> None:
    """S8: licences are the pool's as a whole."""
    pool = make.pool("p", {"lic": 2}, nodes={name: {"mcpu": 4} for name in ("n1", "n2")})
    running = [make.request(name, "team:t", {"mcpu": 3}) for name in "ab"]
    world = make.settled(pool, make.policy(), *running, later=[make.request("w", "team:t", {"lic": 1, "mcpu": 2})])
    assert [(reason.code, reason.key) for reason in _view(world).reasons] == [(Code.FRAGMENTED, "mcpu")]


def test_a_reservation_that_is_used_up_has_nothing_free() -> None:
    busy = make.request("a", "team:t", {"gpu": 4}, preemptible=False)
    firm = make.request("w", "team:t", {"gpu": 2}, preemptible=False)
    world = make.settled(EIGHT, make.policy("team:t", {"gpu": 4}), busy, later=[firm])
    (reason,) = _view(world).reasons
    assert (reason.code, reason.used, reason.free) == (Code.RESERVATION_IN_USE, 4000, 0)

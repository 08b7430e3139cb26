"""Every reason code has one tiny world that provokes it, and says there the numbers that decided (S16, S37)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from fairpool.core import events as ev
from fairpool.core.explain import Explanation, explain
from fairpool.core.ids import SECOND, Instant, PolicyId, PoolId, ProfileId, RequestId
from fairpool.core.planner import decide
from fairpool.core.policies import Possible, Profile
from fairpool.core.pools import Placement, Pool, PoolState
from fairpool.core.reasons import NEVER, RIGHT_LOST, Code, Reason
from fairpool.core.requests import Request, Status
from fairpool.core.world import World
from fairpool.testing import builders as make

P = PoolId("p")
OURS = PolicyId("p/team:t")
W = RequestId("w")


@dataclass(frozen=True)
class Case:
    """A world in which the request `w` is refused or waits at `now`, and the first reason with its code."""

    world: Callable[[], World]
    reason: Reason
    now: Instant = make.START


def _never(pool: Pool, **asked: object) -> Callable[[], World]:
    """A pool in which one policy reserves 2 of its GPUs and stops at 4, and a request that is not preemptible where
    `firm` is given."""
    firm = bool(asked.pop("firm", False))

    def build() -> World:
        policy = make.policy("team:t", {"gpu": 2}, {"gpu": 4}, profiles=("half",))
        return make.world(pool, policy, make.request("w", "team:t", asked, preemptible=not firm))

    return build


def _profile_not_offered() -> World:
    other = make.request("w", "team:t", {"gpu": 1}, profile="full")
    world = make.world(make.pool("p", {"gpu": 8}), make.policy("team:t", profiles=("half",)))
    full = Profile(id=ProfileId("full"), name="full", demand=(("gpu", 1000),), pools=("p",))
    world.apply(ev.ProfileSet(profile=full), make.START)
    world.apply(ev.Submitted(request=other), make.START)
    return world


def _full() -> World:
    return make.settled(
        make.pool("p", {"gpu": 8}), make.policy(), make.request("a", "team:t", {"gpu": 6}), later=[_asks(4)]
    )


def _asks(gpus: float, *, preemptible: bool = True) -> Request:
    return make.request("w", "team:t", {"gpu": gpus}, preemptible=preemptible)


def _limit_in_use() -> World:
    policy = make.policy("team:t", None, {"gpu": 4})
    return make.settled(make.pool("p", {"gpu": 8}), policy, make.request("a", "team:t", {"gpu": 3}), later=[_asks(2)])


def _reservation_in_use() -> World:
    firm = make.request("a", "team:t", {"gpu": 3}, preemptible=False)
    return make.settled(
        make.pool("p", {"gpu": 8}), make.policy("team:t", {"gpu": 4}), firm, later=[_asks(2, preemptible=False)]
    )


def _night() -> World:
    possible = Possible(limit=(("gpu", 4000),), opens_at=Instant(3600 * SECOND))
    return make.world(make.pool("p", {"gpu": 8}), make.policy("team:t", None, {"gpu": 2}, possible=possible), _asks(3))


def _fragmented() -> World:
    pool = make.pool(nodes={"n1": {"gpu": 2}, "n2": {"gpu": 2}}, placement=Placement.SPREAD)
    return make.settled(pool, make.policy(), make.request("a"), make.request("b"), later=[_asks(2)])


def _held_for_older() -> World:
    pool = make.pool("p", {"gpu": 8}, max_bypass_s=0)
    older = make.request("older", "team:t", {"gpu": 8})
    return make.settled(pool, make.policy(), make.request("a", "team:t", {"gpu": 6}), later=[older, _asks(1)])


def _dedicated() -> World:
    owner = make.policy("team:owner", {"gpu": 4}, dedicated=True)
    return make.settled(make.pool("p", {"gpu": 8}), make.policy(), owner, later=[_asks(6)])


def _eviction_under_way() -> World:
    lender, borrower = make.policy("team:t", {"gpu": 4}), make.policy("team:b")
    return make.settled(
        make.pool("p", {"gpu": 8}), lender, borrower, make.request("a", "team:b", {"gpu": 8}), later=[_asks(4)]
    )


def _fell(pool: Pool, in_use: int) -> Callable[[], World]:
    """A pool of 8 GPUs of which some are in use becomes `pool`; then `w` asks for one."""

    def build() -> World:
        world = make.settled(make.pool("p", {"gpu": 8}), make.policy(), make.request("a", "team:t", {"gpu": in_use}))
        world.apply(ev.PoolSet(pool=pool), make.START)
        world.apply(ev.Submitted(request=_asks(1)), make.START)
        decide(world, make.START)
        return world

    return build


def _patience_ends() -> World:
    waiting = make.request("w", "team:t", {"gpu": 4}, wait_timeout_s=5)
    return make.settled(
        make.pool("p", {"gpu": 8}), make.policy(), make.request("a", "team:t", {"gpu": 8}), later=[waiting]
    )


HALF = Profile(id=ProfileId("half"), name="half", demand=(("gpu", 500),), pools=("p",))


def _lapsed(event: ev.RuleEvent) -> Callable[[], World]:
    """`w` waits for a profile in a full pool, and then the rules change."""

    def build() -> World:
        asks = make.request("w", "team:t", {"gpu": 1}, profile="half")
        running = make.request("a", "team:t", {"gpu": 8})
        world = make.settled(make.pool("p", {"gpu": 8}), make.policy(), HALF, running, later=[asks])
        world.apply(event, make.START)
        return world

    return build


def _gone(code: Code, name: str) -> Reason:
    return Reason(code=code, pool=P, policy=OURS, name=name)


def _reason(code: Code, key: str = "", **numbers: int) -> Reason:
    """A reason of the team's own policy; amounts in units."""
    thousandths = {name: value * 1000 for name, value in numbers.items()}
    return Reason(code=code, pool=P, policy=OURS, key=key, **thousandths)  # type: ignore[arg-type]


EIGHT = make.pool("p", {"gpu": 8})
SPLIT = make.pool(nodes={"n1": {"gpu": 2}, "n2": {"gpu": 2}})

CASES = {
    Code.KEY_NOT_IN_POOL: Case(_never(EIGHT, tpu=1), _reason(Code.KEY_NOT_IN_POOL, "tpu", asked=1, possible=0)),
    Code.EXCEEDS_POOL_CAPACITY: Case(
        _never(EIGHT, gpu=9), _reason(Code.EXCEEDS_POOL_CAPACITY, "gpu", asked=9, possible=8)
    ),
    Code.EXCEEDS_POLICY_LIMIT: Case(
        _never(EIGHT, gpu=5), _reason(Code.EXCEEDS_POLICY_LIMIT, "gpu", asked=5, possible=4, limit=4)
    ),
    Code.EXCEEDS_RESERVATION: Case(
        _never(EIGHT, gpu=3, firm=True), _reason(Code.EXCEEDS_RESERVATION, "gpu", asked=3, possible=2, reserved=2)
    ),
    Code.NO_NODE_FITS: Case(_never(SPLIT, gpu=3), _reason(Code.NO_NODE_FITS, "gpu", asked=3, possible=2)),
    Code.PROFILE_NOT_OFFERED: Case(_profile_not_offered, _reason(Code.PROFILE_NOT_OFFERED)),
    Code.NO_POLICY: Case(lambda: make.world(EIGHT, make.policy("team:other"), _asks(1)), Reason(code=Code.NO_POLICY)),
    Code.POOL_FULL: Case(_full, _reason(Code.POOL_FULL, "gpu", asked=4, free=2, used=6, possible=8)),
    Code.LIMIT_IN_USE: Case(_limit_in_use, _reason(Code.LIMIT_IN_USE, "gpu", asked=2, used=3, limit=4, free=1)),
    Code.RESERVATION_IN_USE: Case(
        _reservation_in_use, _reason(Code.RESERVATION_IN_USE, "gpu", asked=2, used=3, reserved=4, free=1)
    ),
    Code.WAITS_FOR_WINDOW: Case(
        _night,
        replace(_reason(Code.WAITS_FOR_WINDOW, "gpu", asked=3, limit=2, possible=4), opens_at=Instant(3600 * SECOND)),
    ),
    Code.FRAGMENTED: Case(_fragmented, _reason(Code.FRAGMENTED, "gpu", asked=2, free=2)),
    Code.HELD_FOR_OLDER: Case(
        _held_for_older,
        Reason(code=Code.HELD_FOR_OLDER, pool=P, policy=OURS, blocker=RequestId("older")),
    ),
    Code.DEDICATED_TO_OTHERS: Case(_dedicated, _reason(Code.DEDICATED_TO_OTHERS, "gpu", asked=6, free=4)),
    Code.WAITING_FOR_EVICTION: Case(
        _eviction_under_way, Reason(code=Code.WAITING_FOR_EVICTION, pool=P, policy=OURS, blocker=W)
    ),
    Code.POOL_OVER_CAPACITY: Case(
        _fell(make.pool("p", {"gpu": 4}), in_use=6),
        _reason(Code.POOL_OVER_CAPACITY, "gpu", asked=1, free=0, used=6, possible=4),
    ),
    Code.POOL_DRAINING: Case(
        _fell(make.pool("p", {"gpu": 8}, state=PoolState.DRAINING), in_use=2), _reason(Code.POOL_DRAINING)
    ),
    Code.WAIT_TIMEOUT: Case(_patience_ends, Reason(code=Code.WAIT_TIMEOUT), now=Instant(5 * SECOND)),
    Code.POLICY_GONE: Case(_lapsed(ev.PolicyDropped(policy=OURS)), _gone(Code.POLICY_GONE, "team:t")),
    Code.POLICY_OF_OTHERS: Case(
        _lapsed(ev.PolicySet(policy=replace(make.policy("team:u"), id=OURS))), _gone(Code.POLICY_OF_OTHERS, "team:t")
    ),
    Code.PROFILE_GONE: Case(_lapsed(ev.ProfileDropped(name="half")), _gone(Code.PROFILE_GONE, "half")),
    Code.PROFILE_WITHDRAWN: Case(
        _lapsed(ev.PolicySet(policy=make.policy(profiles=()))), _gone(Code.PROFILE_WITHDRAWN, "half")
    ),
    Code.POOL_OUT_OF_REACH: Case(
        _lapsed(ev.PoolSet(pool=make.pool("p", {"gpu": 8}, components=frozenset({"k8s"})))),
        _gone(Code.POOL_OUT_OF_REACH, "p"),
    ),
    Code.POOL_GONE: Case(_lapsed(ev.PoolDropped(pool=P)), _gone(Code.POOL_GONE, "p")),
}


def _explained(code: Code) -> Explanation:
    assert code in CASES, f"no world here provokes {code}: add one"
    case = CASES[code]
    return explain(case.world(), W, case.now)


@pytest.mark.parametrize("code", list(Code))
def test_the_code_is_given_with_the_numbers_that_decided(code: Code) -> None:
    """S16, S37: key, asked, possible, free, used, reserved, limit, and who it is held for."""
    found = [reason for reason in _explained(code).reasons if reason.code is code]
    assert found == [CASES[code].reason]


@pytest.mark.parametrize("code", list(Code))
def test_only_what_can_never_run_or_has_waited_too_long_is_rejected(code: Code) -> None:
    """S10, S17, S36: who loses its right is cancelled, the rest waits."""
    rejected = code in NEVER or code in (Code.WAIT_TIMEOUT, Code.POOL_GONE)
    ended = Status.REJECTED if rejected else Status.CANCELLED if code in RIGHT_LOST else Status.QUEUED
    assert _explained(code).status is ended


@pytest.mark.parametrize("code", list(Code))
def test_asking_why_changes_nothing(code: Code) -> None:
    """S37: the explanation asks the deciding functions, inside a what-if."""
    case = CASES[code]
    world = case.world()
    before = world.snapshot()
    explain(world, W, case.now)
    assert world.snapshot() == before


def test_with_one_gpu_more_or_less_the_same_worlds_have_no_such_reason() -> None:
    """The other side of each bound: what fits exactly is not refused."""
    fitting = {
        "capacity and node": make.world(SPLIT, make.policy(), _asks(2)),
        "limit": make.world(EIGHT, make.policy("team:t", {"gpu": 2}, {"gpu": 4}), _asks(4)),
        "reservation": make.world(EIGHT, make.policy("team:t", {"gpu": 2}), _asks(2, preemptible=False)),
    }
    assert {name: explain(world, W, make.START).status for name, world in fitting.items()} == dict.fromkeys(
        fitting, Status.ALLOCATED
    )


def test_what_only_another_window_reserves_is_not_there_now_however_little_of_it() -> None:
    """S22: of the licences nothing is reserved at this moment, and the rest of the demand is."""
    opens_at = Instant(3600 * SECOND)
    night = Possible(reserved=(("gpu", 1000), ("lic", 1)), opens_at=opens_at)
    world = make.world(make.pool("p", {"gpu": 8, "lic": 8}), make.policy("team:t", {"gpu": 1}, possible=night))
    firm = make.request("w", "team:t", {"gpu": 1, "lic": 0.001}, preemptible=False)
    world.apply(ev.Submitted(request=firm), make.START)
    assert decide(world, make.START).grants == ()
    [reason] = explain(world, W, make.START).reasons
    assert (reason.key, reason.asked, reason.reserved, reason.opens_at) == ("lic", 1, 0, opens_at)

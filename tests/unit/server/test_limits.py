"""A caller that asks too much is refused with numbers; others notice nothing; the installation's own token is free."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fairpool.app.authz import OWNER, Principal, Role
from fairpool.core.policies import Subject
from fairpool.server import limits
from fairpool.server.limits import BURST_S, Doorkeeper, Limits, Rates
from fairpool.server.problems import Refused


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HELD_BACK_S", 0)
    monkeypatch.setattr(limits, "REFUSALS_PER_S", 1e9)


def somebody(token: str = "t1") -> Principal:
    return Principal(subject=Subject.parse("user:alice"), role=Role.MEMBER, token=token)


def scope(client: str = "10.0.0.1") -> dict[str, Any]:
    return {"type": "http", "client": (client, 1)}


def allowed(keeper: Doorkeeper, calls: int, principal: Principal | None, client: str = "10.0.0.1") -> int:
    """How many of so many calls at once are let in."""

    async def story() -> int:
        found = await asyncio.gather(
            *(keeper.let_in(scope(client), principal) for _ in range(calls)), return_exceptions=True
        )
        assert all(isinstance(answer, Refused) for answer in found if answer is not None)
        return found.count(None)

    return asyncio.run(story())


def test_a_burst_is_let_in_and_after_it_calls_come_back_at_the_rate(clock: Clock) -> None:
    rates = Rates(10, clock)
    assert sum(not rates.wait_s("a") for _ in range(100)) == 10 * BURST_S
    assert rates.wait_s("a") == pytest.approx(0.1)
    clock.now += 0.5
    assert sum(not rates.wait_s("a") for _ in range(100)) == 5
    clock.now += 60
    assert sum(not rates.wait_s("a") for _ in range(100)) == 10 * BURST_S


def test_a_slow_rate_lets_one_call_in_at_a_time(clock: Clock) -> None:
    rates = Rates(0.1, clock)
    assert [bool(rates.wait_s("a")) for _ in range(2)] == [False, True]
    clock.now += 10
    assert not rates.wait_s("a")


def test_what_one_caller_spends_is_not_taken_from_another(clock: Clock) -> None:
    keeper = Doorkeeper(Limits(rate_per_s=10), clock)
    assert allowed(keeper, 100, somebody("t1")) == 20
    assert allowed(keeper, 15, somebody("t2")) == 15


def test_callers_without_a_token_count_for_their_address(clock: Clock) -> None:
    keeper = Doorkeeper(Limits(rate_per_s=10), clock)
    assert allowed(keeper, 100, None, "10.0.0.1") == 20
    assert allowed(keeper, 5, None, "10.0.0.2") == 5
    assert allowed(keeper, 100, None, "2001:db8::1") == 20
    assert allowed(keeper, 5, None, "2001:db8::ffff") == 0
    assert allowed(keeper, 5, None, "2001:db8:0:1::1") == 5


def test_the_installations_own_token_and_a_rate_of_zero_have_no_limit(clock: Clock) -> None:
    assert allowed(Doorkeeper(Limits(rate_per_s=1), clock), 500, OWNER) == 500
    assert allowed(Doorkeeper(Limits(), clock), 500, somebody()) == 500


def test_a_refusal_says_the_rate_and_when_to_come_back(clock: Clock) -> None:
    keeper = Doorkeeper(Limits(rate_per_s=0.2), clock)

    async def story() -> Refused:
        await keeper.let_in(scope(), somebody())
        with pytest.raises(Refused) as caught:
            await keeper.let_in(scope(), somebody())
        return caught.value

    refused = asyncio.run(story())
    assert (refused.problem.status, refused.problem.type) == (429, "too-many-calls")
    assert refused.headers == {"Retry-After": "6", "Connection": "close"}
    assert refused.problem.numbers == {"rate_per_s": 0.2, "retry_after_s": 6}


def test_refusals_are_held_back_but_for_those_of_which_there_are_too_many(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "HELD_BACK_S", 0.05)
    monkeypatch.setattr(limits, "MAX_HELD_BACK", 20)
    keeper = Doorkeeper(Limits(rate_per_s=1), clock)

    async def story() -> int:
        calls = [asyncio.create_task(keeper.let_in(scope(), somebody())) for _ in range(2 + 20 + 10)]
        for _ in range(10):  # turns of the loop
            await asyncio.sleep(0)
        at_once = sum(call.done() for call in calls)
        await asyncio.gather(*calls, return_exceptions=True)
        return at_once

    assert asyncio.run(story()) == 2 + 10
    assert keeper._held_back == {}


def test_the_more_refusals_of_a_caller_wait_the_longer_each_does_and_others_wait_no_longer(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "HELD_BACK_S", 0.5)
    monkeypatch.setattr(limits, "REFUSALS_PER_S", 50)
    slept: list[float] = []
    go_on = asyncio.Event()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await go_on.wait()

    keeper = Doorkeeper(Limits(rate_per_s=1), clock)

    async def story() -> None:
        calls = [asyncio.create_task(keeper.let_in(scope(), somebody())) for _ in range(2 + 100)]
        calls += [asyncio.create_task(keeper.let_in(scope(), somebody("other"))) for _ in range(2 + 1)]
        for _ in range(10):  # turns of the loop
            await turn(0)
        go_on.set()
        await asyncio.gather(*calls, return_exceptions=True)

    turn = asyncio.sleep
    monkeypatch.setattr(asyncio, "sleep", sleep)
    asyncio.run(story())
    assert slept[:100] == pytest.approx([0.5 + number / 50 for number in range(100)])
    assert slept[100:] == [0.5]


def test_only_so_many_calls_of_one_token_wait_at_a_time() -> None:
    keeper = Doorkeeper(Limits(max_waits=2))
    first, _second = keeper.begin_wait(somebody()), keeper.begin_wait(somebody())
    with pytest.raises(Refused) as caught:
        keeper.begin_wait(somebody())
    assert (caught.value.problem.status, caught.value.problem.numbers) == (429, {"waiting": 2, "limit": 2})
    keeper.begin_wait(somebody("other"))
    keeper.begin_wait(OWNER)
    first()
    first()  # saying it twice gives nothing back twice
    keeper.begin_wait(somebody())
    with pytest.raises(Refused):
        keeper.begin_wait(somebody())


def test_callers_that_have_spent_nothing_lately_are_forgotten(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_REMEMBERED", 100)
    rates = Rates(1000, clock)
    for number in range(1000):
        assert not rates.wait_s(str(number))
        clock.now += 0.01
    assert len(rates._settled_at) <= 100

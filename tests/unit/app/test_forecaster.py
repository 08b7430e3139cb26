"""Looking ahead: one look for all who ask, in slices that a decision never waits for, and never older than it says."""

from __future__ import annotations

from concurrent.futures import Future
from functools import partial

import pytest

from fairpool.app import forecaster
from fairpool.app.errors import NotLeading
from fairpool.app.forecaster import Foreseen, Wanted
from fairpool.app.scheduler import Work
from fairpool.app.scheduler_loop import SchedulerLoop
from fairpool.app.store_errors import StaleLeader, StoreUnavailable
from fairpool.app.use_cases import pools, requests
from fairpool.core import forecast, front
from fairpool.core.ids import SECOND, Instant, RequestId
from fairpool.core.outlook import Estimate, Unknown, Why
from fairpool.core.requests import Request
from fairpool.testing import ManualClock
from fairpool.testing import builders as make
from tests.unit.app.office import START, Office, ask, opened, submitting

DAY_S = 86_400


class Ticking(ManualClock):
    """Moves on by itself whenever somebody looks at it."""

    tick_us = 0

    def now(self) -> Instant:
        self._now = Instant(self._now + self.tick_us)
        return self._now


@pytest.fixture
def clock() -> Ticking:
    return Ticking(START)


@pytest.fixture
def office(clock: Ticking) -> Office:
    """Two teams share eight GPUs; one runs for ten minutes, and twenty wait."""
    office = opened(clock)
    office.submit(gpus=8, max_runtime_s=600, lease_s=DAY_S)
    team = ("team:red", "team:blue")
    many = [ask(team[number % 2], 4, max_runtime_s=600, lease_s=DAY_S) for number in range(20)]
    office.round(*submitting(*many))
    return office


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[Instant]:
    """When somebody began to look ahead."""
    begun: list[Instant] = []
    real = forecast.look_ahead

    def counted(*given: object) -> object:
        begun.append(given[1])  # type: ignore[arg-type]
        return real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(forecaster, "look_ahead", counted)
    return begun


def _waiting(office: Office) -> list[RequestId]:
    return sorted(office.memory.world.queue)


def _ask(office: Office, *wanted: Wanted) -> list[Future[Foreseen | None]]:
    """Many ask at once; nobody has looked ahead yet."""
    work: list[Work[Foreseen | None]] = [Work(Future(), wanted=each) for each in wanted]
    office.scheduler.cycle(work)
    return [item.future for item in work]


def _told(future: Future[Foreseen | None]) -> Foreseen:
    found = future.result(timeout=0)
    assert found is not None
    return found


def _checked(gpus: int = 4, name: str = "check") -> Request:
    return make.request(name, "team:red", {"gpu": gpus})


def _look_to_the_end(office: Office) -> int:
    """How many slices it takes."""
    slices = 0
    while office.scheduler.is_looking_ahead:
        office.scheduler.look_ahead()
        slices += 1
    return slices


# ---- one for all -----------------------------------------------------------------------------------------------------


def test_however_many_ask_at_once_it_is_looked_ahead_once(office: Office, looks: list[Instant]) -> None:
    asked = _ask(office, *_waiting(office) * 50)
    assert not any(future.done() for future in asked)
    _look_to_the_end(office)
    assert looks == [START]
    told = {_told(future).estimate for future in asked}
    assert len(told) == 10, "two at a time, one after the other"
    assert all(isinstance(estimate, Estimate) for estimate in told)


def test_whoever_asks_while_somebody_looks_ahead_gets_the_same_answer(
    office: Office, clock: Ticking, looks: list[Instant]
) -> None:
    clock.tick_us = 500
    first, last = _waiting(office)[0], _waiting(office)[-1]
    (early,) = _ask(office, first)
    office.scheduler.look_ahead()
    (late,) = _ask(office, last)
    assert not early.done()
    _look_to_the_end(office)
    assert len(looks) == 1
    assert _told(early).as_of == _told(late).as_of == looks[0]


def test_what_was_found_is_remembered_for_a_while_and_never_much_older_than_that(
    office: Office, clock: Ticking, looks: list[Instant], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a large world something changes all the time; an answer says of which moment it is."""
    monkeypatch.setattr(forecaster, "SMALL", 0)
    clock.tick_us = 500
    request = _waiting(office)[0]
    _ask(office, request)
    _look_to_the_end(office)
    clock.tick_us = 0
    took_us = clock.now() - looks[0]
    office.submit(gpus=4, lease_s=DAY_S)
    (again,) = _ask(office, request)
    assert _told(again).as_of == looks[0]
    clock.move_to(Instant(clock.now() + forecaster.KEPT_TIMES * took_us))
    (later,) = _ask(office, request)
    _look_to_the_end(office)
    assert looks[1:] == [_told(later).as_of] == [clock.now()]
    assert looks[1] - looks[0] <= (forecaster.KEPT_TIMES + 1) * took_us


def test_whoever_came_since_is_looked_ahead_for_anew(
    office: Office, clock: Ticking, looks: list[Instant], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forecaster, "SMALL", 0)
    clock.tick_us = 500
    _ask(office, _waiting(office)[0])
    _look_to_the_end(office)
    (told,) = _ask(office, office.submit(gpus=4, lease_s=DAY_S).id)
    _look_to_the_end(office)
    assert len(looks) == 2
    assert isinstance(_told(told).estimate, Estimate)


def test_when_the_rules_change_it_is_looked_ahead_anew(
    office: Office, clock: Ticking, looks: list[Instant], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forecaster, "SMALL", 0)
    clock.tick_us = 500
    _after(office, _waiting(office)[-1])
    office.do(pools.update, "p", pools.PoolChange(max_bypass_s=60))
    (told,) = _after(office, _waiting(office)[-1])
    assert len(looks) == 2
    assert _told(told).as_of == looks[1]


def test_a_small_world_is_looked_at_anew_as_soon_as_anything_has_happened(
    office: Office, clock: Ticking, looks: list[Instant]
) -> None:
    clock.tick_us = 500
    request = _waiting(office)[0]
    for _ in range(3):
        _ask(office, request)
        _look_to_the_end(office)
    assert len(looks) == 1
    office.submit(lease_s=DAY_S)
    _ask(office, request)
    _look_to_the_end(office)
    assert len(looks) == 2


def test_what_should_have_started_by_now_is_looked_at_anew(
    office: Office, clock: Ticking, looks: list[Instant], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forecaster, "KEPT_TIMES", 10**9)
    monkeypatch.setattr(forecaster, "KEPT_US", DAY_S * SECOND)
    clock.tick_us = 500
    request = _waiting(office)[0]
    (first,) = _ask(office, request)
    _look_to_the_end(office)
    told = _told(first).estimate
    assert isinstance(told, Estimate)
    clock.move_to(told.about)
    _ask(office, request)
    _look_to_the_end(office)
    assert len(looks) == 2


# ---- in slices -------------------------------------------------------------------------------------------------------


def test_decisions_are_made_between_two_slices_and_change_nothing_of_the_answer(office: Office, clock: Ticking) -> None:
    """It speaks of the moment at which it began, also of what was known then of run times."""
    undisturbed = office.foresee(_waiting(office)[-1])
    clock.tick_us = 500
    (asked,) = _ask(office, _waiting(office)[-1])
    office.scheduler.look_ahead()
    running = next(iter(office.memory.world.allocations))
    office.do(requests.release, running)
    assert running not in office.memory.world.allocations
    assert not asked.done()
    assert _look_to_the_end(office) >= 3
    told = _told(asked)
    assert undisturbed is not None
    apart_us = told.as_of - undisturbed.as_of
    assert isinstance(told.estimate, Estimate)
    assert isinstance(undisturbed.estimate, Estimate)
    assert told.estimate.about == undisturbed.estimate.about
    assert 0 <= apart_us < SECOND


def test_many_are_answered_in_slices_too(office: Office, clock: Ticking) -> None:
    clock.tick_us = 2 * forecaster.SLICE_US
    asked = _ask(office, *_waiting(office) * 3)
    while not any(future.done() for future in asked):
        office.scheduler.look_ahead()
    assert sum(future.done() for future in asked) == 1
    assert _look_to_the_end(office) == len(asked) - 1
    assert all(future.done() for future in asked)


def test_what_is_looked_up_gets_so_much_of_a_round_and_the_rest_its_turn_in_the_next(
    office: Office, clock: Ticking
) -> None:
    clock.tick_us = 1_000
    work: list[Work[int]] = [Work(Future(), ask=lambda memory, now: len(memory.live)) for _ in range(10)]
    submit = office.begin(submitting(ask())[0])
    left = office.scheduler.cycle([*work, submit], asking_us=3_500)
    assert submit.future.done()
    assert left == work[3:]
    assert [item.future.done() for item in work] == [True] * 3 + [False] * 7


def test_the_loop_answers_everybody_in_the_end_whatever_the_slices(office: Office, clock: Ticking) -> None:
    clock.tick_us = 3_000
    loop = SchedulerLoop(office.scheduler, clock)
    waiting = _waiting(office)
    asked = [loop.foresee(request) for request in waiting * 5]
    looked_up = [loop.ask(lambda memory, now: len(memory.live)) for _ in range(30)]
    loop.start()
    assert all(future.result(timeout=30) for future in asked)
    assert all(future.result(timeout=30) for future in looked_up)
    loop.stop()


def test_who_asks_beside_a_round_that_fails_is_answered_from_what_is_committed(office: Office) -> None:
    live = len(office.memory.live)
    office.store.refusals = [StoreUnavailable("down")]
    submit = office.begin(submitting(ask())[0])
    look: Work[int] = Work(Future(), ask=lambda memory, now: len(memory.live))
    office.scheduler.cycle([submit, look])
    assert isinstance(submit.future.exception(timeout=0), StoreUnavailable)
    assert look.future.result(timeout=0) == live


def test_who_asks_beside_a_round_that_shows_that_another_leads_hears_that(office: Office) -> None:
    office.store.store.leases.release(1)
    taken = office.store.store.leases.acquire("two", office.clock.now(), 60)
    office.store.refusals = [StaleLeader(token=1, current=taken.token)]
    submit = office.begin(submitting(ask())[0])
    look: Work[int] = Work(Future(), ask=lambda memory, now: len(memory.live))
    office.scheduler.cycle([submit, look])
    assert isinstance(submit.future.exception(timeout=0), StaleLeader | NotLeading)
    assert isinstance(look.future.exception(timeout=0), NotLeading)


# ---- who is asked about ----------------------------------------------------------------------------------------------


def test_the_same_check_is_looked_ahead_for_once_and_as_if_it_were_submitted(
    office: Office, looks: list[Instant]
) -> None:
    office.clock.advance(1)
    checks = _ask(office, *[_checked() for _ in range(30)])
    _look_to_the_end(office)
    assert len(looks) == 1
    (told,) = {_told(future).estimate for future in checks}
    (submitted,) = _after(office, office.submit(gpus=4, lease_s=DAY_S).id)
    assert _told(submitted).estimate == told


def test_of_many_different_checks_the_last_are_told_to_ask_again(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forecaster, "MOST_LOOKS", 3)
    checks = _ask(office, *(_checked(gpus) for gpus in range(1, 6)))
    assert [future.done() for future in checks] == [False] * 3 + [True] * 2
    assert _told(checks[-1]).estimate == Unknown(why=Why.BUSY)
    _look_to_the_end(office)
    assert all(isinstance(_told(future).estimate, Estimate) for future in checks[:3])


def test_of_a_long_line_those_behind_are_told_that_it_is_later(
    office: Office, looks: list[Instant], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forecaster, "front_of", partial(front.front_of, most=2))
    monkeypatch.setattr(front, "FEWEST_OF_A_CLASS", 3)
    first, last = (_told(future) for future in _after(office, _waiting(office)[0], _waiting(office)[-1]))
    assert isinstance(first.estimate, Estimate)
    assert isinstance(last.estimate, Unknown)
    assert last.estimate.later_than is not None
    assert last.estimate.later_than >= first.estimate.about
    assert len(looks) == 1
    office.clock.advance(1)
    (check,) = _after(office, make.request("check", "team:red", {"gpu": 4}, max_runtime_s=600))
    assert isinstance(_told(check).estimate, Unknown)


def _after(office: Office, *wanted: Wanted) -> list[Future[Foreseen | None]]:
    asked = _ask(office, *wanted)
    _look_to_the_end(office)
    return asked


def test_of_one_that_does_not_wait_nothing_is_told(office: Office, looks: list[Instant]) -> None:
    running = next(iter(office.memory.world.allocations))
    assert office.foresee(running) is None
    assert office.foresee(RequestId("nobody")) is None
    assert looks == []


def test_one_that_starts_meanwhile_is_not_told_when_it_will(office: Office, clock: Ticking) -> None:
    clock.tick_us = 500
    first = _waiting(office)[0]
    (asked,) = _ask(office, first)
    office.scheduler.look_ahead()
    office.do(requests.release, next(iter(office.memory.world.allocations)))
    assert office.status(first) == "allocated"
    _look_to_the_end(office)
    assert asked.result(timeout=0) is None


def test_who_stops_to_lead_leaves_nobody_without_an_answer(office: Office, clock: Ticking) -> None:
    clock.tick_us = 500
    asked = _ask(office, _waiting(office)[0], _checked())
    office.scheduler.look_ahead()
    asked += _ask(office, _waiting(office)[1])
    office.scheduler.resign()
    assert [type(future.exception(timeout=0)) for future in asked] == [NotLeading] * 3
    assert not office.scheduler.is_looking_ahead

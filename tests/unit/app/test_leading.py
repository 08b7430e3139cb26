"""S34: one server decides, the others follow and are ready; whoever was overtaken can write nothing."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest

from fairpool.app.errors import NotLeading
from fairpool.app.leading import FOLLOW_EVERY_S, LEADER_TTL_S, Heartbeat, Leading
from fairpool.app.scheduler_loop import SchedulerLoop
from fairpool.app.store_errors import StaleLeader, StoreFull, StoreUnavailable
from fairpool.app.transaction import Transaction
from fairpool.app.use_cases import requests
from fairpool.core.ids import SECOND, Instant
from fairpool.core.requests import Status
from fairpool.store.memory import MemoryStore
from fairpool.testing import ManualClock
from tests.unit.app.office import START, Office, ask, opened, submitting


@pytest.fixture
def first() -> Office:
    """The office that leads."""
    return opened()


@pytest.fixture
def second(first: Office) -> Office:
    """Another over the same store, that follows."""
    office = Office(first.store.store, first.clock, holder="two")
    office.ids = first.ids
    office.scheduler._ids = first.ids
    office.scheduler.cycle([])
    return office


def test_the_log_says_in_which_workspace_it_leads(first: Office, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    leading = Leading(first.store, holder="one", workspace="research")
    assert leading.keep(first.clock.now())
    assert f"leads in the workspace research, by token {leading.token}" in caplog.text


def submit(given: requests.Ask) -> Callable[[Transaction], Callable[[], Any]]:
    return submitting(given)[0]


def test_one_that_follows_decides_nothing_and_knows_who_does(first: Office, second: Office) -> None:
    assert isinstance(second.round(submit(ask()))[0].exception(), NotLeading)
    leader = second.scheduler.leading.leader
    assert leader is not None
    assert leader.address == "http://one"
    assert not second.scheduler.is_leading


def test_one_that_follows_looks_several_times_a_second(second: Office) -> None:
    assert second.scheduler.wake_at == Instant(second.clock.now() + round(FOLLOW_EVERY_S * SECOND))


def test_one_that_follows_takes_no_write_lock_to_look(
    first: Office, second: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(second.store), "acquire", lambda *given: pytest.fail("the lease is not free"))
    second.scheduler.cycle([])


def test_a_lease_that_lapsed_is_taken_at_the_next_look(first: Office, second: Office) -> None:
    held = first.submit()
    second.pass_time(LEADER_TTL_S - 0.001)
    assert not second.scheduler.is_leading
    second.pass_time(FOLLOW_EVERY_S)
    assert second.scheduler.is_leading
    assert second.status(held.id) == "allocated"


def test_a_lease_that_was_given_back_is_taken_at_the_next_look(first: Office, second: Office) -> None:
    first.scheduler.resign()
    second.pass_time(FOLLOW_EVERY_S)
    assert second.scheduler.is_leading
    assert isinstance(first.round(submit(ask()))[0].exception(), NotLeading)


def test_a_leader_keeps_its_lease_for_as_long_as_it_lives(first: Office, second: Office) -> None:
    for _ in range(100):
        first.pass_time(LEADER_TTL_S / 10)
        second.scheduler.cycle([])
    assert first.scheduler.is_leading
    assert not second.scheduler.is_leading


def test_whoever_waits_at_one_that_follows_hears_of_what_the_leader_commits(first: Office, second: Office) -> None:
    before = len(second.told.leaders)
    second.scheduler.cycle([])
    assert len(second.told.leaders) == before
    first.submit()
    second.scheduler.cycle([])
    assert second.told.leaders[before:] == ["http://one"]


def test_whoever_waits_at_one_that_follows_hears_when_nobody_leads_and_who_leads_next(
    first: Office, second: Office
) -> None:
    third = Office(first.store.store, first.clock, holder="three")
    third.scheduler.cycle([])
    first.scheduler.resign()
    second.scheduler.cycle([])
    third.scheduler.cycle([])
    assert third.told.leaders[-1] == "http://two"


def test_a_commit_of_one_that_was_overtaken_in_its_round_is_refused_and_changes_nothing(
    first: Office, second: Office, caplog: pytest.LogCaptureFixture
) -> None:
    """As after SIGSTOP and SIGCONT: the round began while it led, and its commit comes when another does."""

    def paused(tx: Transaction) -> Callable[[], Any]:
        answer = requests.submit(tx, ask(name="late"))
        first.clock.advance(LEADER_TTL_S)
        second.scheduler.cycle([])
        assert second.scheduler.is_leading
        return answer

    before = second.store.reader.history.last_seq()
    refused = first.round(paused)[0].exception()
    assert isinstance(refused, StaleLeader)
    assert refused.token < refused.current
    assert first.store.reader.history.last_seq() == before
    assert first.store.load().live == {}
    assert "a commit was refused" in caplog.text
    assert not first.scheduler.is_leading


def test_one_that_was_overtaken_follows_and_leads_again_when_it_is_its_turn(first: Office, second: Office) -> None:
    first.clock.advance(LEADER_TTL_S)
    second.scheduler.cycle([])
    held = second.submit()
    first.scheduler.cycle([])
    assert not first.scheduler.is_leading
    second.scheduler.resign()
    first.pass_time(FOLLOW_EVERY_S)
    assert first.status(held.id) == "allocated"


def test_a_leader_that_hears_of_its_end_when_renewing_answers_so_and_does_not_spin(first: Office) -> None:
    first.clock.advance(60)
    first.store.store.leases.acquire("two", first.clock.now(), 60)
    assert isinstance(first.round(submit(ask()))[0].exception(), NotLeading)
    first.scheduler.cycle([])
    assert first.scheduler.wake_at is not None
    assert first.scheduler.wake_at > first.clock.now()


def test_a_leader_that_reaches_no_store_answers_from_memory_only_while_its_lease_lasts(first: Office) -> None:
    """Once the lease is over another may lead: what this one remembers may be out of date."""
    held = first.submit()
    first.store.renewals = [StoreUnavailable("away")] * 10
    first.clock.advance(LEADER_TTL_S - 0.1)
    assert first.status(held.id) == "allocated"
    first.clock.advance(LEADER_TTL_S)
    with pytest.raises(StoreUnavailable, match="away"):
        first.status(held.id)


def test_a_leader_whose_disk_is_full_goes_on_answering(first: Office) -> None:
    held = first.submit()
    first.store.renewals = [StoreFull("no room")] * 10
    first.clock.advance(2 * LEADER_TTL_S)
    assert first.status(held.id) == "allocated"


def test_after_a_minute_without_the_store_every_owner_has_a_full_lease(first: Office) -> None:
    """S35: nobody could renew meanwhile, and nobody loses what they hold for it."""
    held = first.submit(lease_s=20)
    first.store.renewals = [StoreUnavailable("away")] * 1_000
    first.pass_time(60)
    first.store.renewals = []
    first.pass_time(19)
    assert first.status(held.id) == "allocated"
    first.pass_time(20)
    assert first.status(held.id) == "expired"


def test_whoever_takes_over_gives_every_owner_a_full_lease_from_then_on(first: Office, second: Office) -> None:
    held = first.submit(lease_s=10)
    first.clock.advance(9)
    second.scheduler.cycle([])
    second.pass_time(9)
    assert second.status(held.id) == "allocated"


def test_a_heartbeat_keeps_the_lease_while_a_round_takes_long() -> None:
    clock, store = ManualClock(START), MemoryStore()
    leading = Leading(store.leases, holder="one")
    assert leading.keep(clock.now())
    clock.advance(LEADER_TTL_S / 3)
    leading.beat(clock.now())
    assert _until(store) == START + LEADER_TTL_S * SECOND, "the scheduler's thread is to renew it first"
    clock.advance(LEADER_TTL_S / 6)
    leading.beat(clock.now())
    assert _until(store) == clock.now() + LEADER_TTL_S * SECOND


def test_a_heartbeat_renews_nothing_that_was_given_back() -> None:
    clock, store = ManualClock(START), MemoryStore()
    leading = Leading(store.leases, holder="one")
    assert leading.keep(clock.now())
    leading.resign()
    clock.advance(LEADER_TTL_S / 2)
    leading.beat(clock.now())
    assert _until(store) == 0


def test_a_heartbeat_that_the_store_refuses_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairpool.app.leading.LEADER_TTL_S", 0.06)
    beats = threading.Semaphore(0)

    class Broken(Leading):
        def beat(self, now: Instant) -> None:
            beats.release()
            raise RuntimeError("a bug")

    heartbeat = Heartbeat(Broken(MemoryStore().leases, holder="one"), ManualClock(START))
    heartbeat.start()
    assert all(beats.acquire(timeout=30) for _ in range(3))
    heartbeat.stop()


def test_whoever_begins_to_lead_runs_the_opening_commands_first(first: Office, second: Office) -> None:
    begun: list[str] = []

    def begin(name: str) -> Callable[[Transaction], Callable[[], None]]:
        def command(tx: Transaction) -> Callable[[], None]:
            begun.append(name)
            return lambda: None

        return command

    loops = [
        SchedulerLoop(office.scheduler, office.clock, opening=[begin(name)])
        for name, office in (("one", first), ("two", second))
    ]
    for loop in loops:
        loop.start()
    assert begun == ["one"]
    loops[0].stop()
    first.clock.advance(1)  # time for the other to look
    assert loops[1].ask(lambda memory, now: None).exception(timeout=30) is None
    loops[1].stop()
    assert begun == ["one", "two"]


def test_a_submission_after_the_change_of_hands_is_decided_by_the_next(first: Office, second: Office) -> None:
    first.scheduler.resign()
    second.scheduler.cycle([])
    assert second.submit().status is Status.ALLOCATED


def _until(store: MemoryStore) -> int:
    current = store.leases.current()
    assert current is not None
    return current.until

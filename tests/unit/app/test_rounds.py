"""S34: what arrives together is decided and committed together, nobody hears of it before, and failures undo all."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from fairpool.app import scheduler_loop as running
from fairpool.app.errors import NotFound, NotLeading, Overloaded
from fairpool.app.records import Kind
from fairpool.app.scheduler import Work
from fairpool.app.scheduler_loop import SchedulerLoop
from fairpool.app.store_errors import InvariantBroken, StaleLeader, StoreFull, StoreUnavailable
from fairpool.app.transaction import Transaction
from fairpool.app.use_cases import pools, requests, runs
from fairpool.app.use_cases.pools import PoolChange
from fairpool.core.audit import audit
from fairpool.core.requests import Status
from tests.unit.app.office import Office, ask, opened, same_as_stored, submitting


@pytest.fixture
def office() -> Office:
    return opened()


def submit(given: requests.Ask) -> Callable[[Transaction], Callable[[], Any]]:
    return submitting(given)[0]


def test_what_arrives_together_shares_one_commit(office: Office) -> None:
    before = len(office.store.batches)
    answers = office.round(*submitting(*(ask() for _ in range(50))))
    assert len(office.store.batches) == before + 1
    assert len(office.store.batches[-1].inserted) == 50
    assert [answer.result().status for answer in answers].count(Status.ALLOCATED) == 8


def test_a_command_that_is_refused_fails_alone(office: Office) -> None:
    good, bad, also = office.round(submit(ask()), submit(ask(pool="nowhere")), submit(ask()))
    assert isinstance(bad.exception(), NotFound)
    assert [good.result().status, also.result().status] == [Status.ALLOCATED, Status.ALLOCATED]
    assert same_as_stored(office)


def test_a_command_that_breaks_half_way_changes_nothing_and_fails_alone(office: Office) -> None:
    def broken(tx: Transaction) -> Callable[[], None]:
        requests.submit(tx, ask(gpus=5))
        raise ZeroDivisionError("a bug")

    answers = office.round(*submitting(ask(), ask()), broken, *submitting(ask()))
    assert isinstance(answers.pop(2).exception(), ZeroDivisionError)
    assert [answer.result().status for answer in answers] == [Status.ALLOCATED] * 3
    assert len(office.memory.live) == 3
    assert same_as_stored(office)


def test_what_the_store_refuses_of_one_command_spoils_nothing_for_the_others(office: Office) -> None:
    def impossible(tx: Transaction) -> Callable[[], None]:
        tx.put(tx.memory.pool("p"))
        tx.drop(Kind.POOL, tx.memory.pool("p").id)
        return lambda: None

    first, bad, last = office.round(submit(ask()), impossible, submit(ask()))
    assert bad.exception() is not None
    assert [first.result().status, last.result().status] == [Status.ALLOCATED, Status.ALLOCATED]
    assert same_as_stored(office)


def test_a_refusal_is_told_only_once_what_it_rests_on_is_committed(office: Office) -> None:
    """A name is taken by another command of the same round: if that is not committed, it is not taken."""
    pool = office.memory.pool("p").spec
    office.store.refusals = [StoreFull("no room")]

    def create(tx: Transaction) -> Callable[[], Any]:
        return pools.create(tx, scheduling_pool(pool.name + "2"))

    def scheduling_pool(name: str) -> Any:
        from dataclasses import replace

        return replace(pool, name=name)

    answers = office.round(create, create)
    assert [type(answer.exception()) for answer in answers] == [StoreFull, StoreFull]


def test_a_full_disk_is_told_to_all_and_nothing_is_half_done(office: Office) -> None:
    held = office.submit()
    before = office.memory.world.snapshot()
    office.store.refusals = [StoreFull("no room")]
    answers = office.round(submit(ask()), lambda tx: requests.release(tx, held.id))
    assert [type(answer.exception()) for answer in answers] == [StoreFull, StoreFull]
    assert office.status(held.id) == "allocated"
    assert office.memory.world.snapshot() == before
    assert office.do(requests.release, held.id).status is Status.RELEASED


def test_what_is_asked_is_answered_while_the_disk_is_full(office: Office) -> None:
    held = office.submit()
    office.clock.advance(6)
    office.store.renewals = [StoreFull("no room")] * 3
    office.store.refusals = [StoreFull("no room")] * 3
    refused = office.round(submit(ask()))[0]
    assert isinstance(refused.exception(), StoreFull)
    assert office.status(held.id) == "allocated"


@pytest.mark.parametrize("error", [StoreFull("no room"), StoreUnavailable("busy")])
def test_a_store_that_fails_is_tried_again_after_a_pause_not_in_circles(
    office: Office, error: StoreUnavailable
) -> None:
    office.submit(lease_s=10)
    office.clock.advance(11)  # a lease has lapsed, so that there is something to commit
    office.store.refusals, office.store.renewals = [error] * 5, [error] * 5
    for _ in range(5):
        office.scheduler.cycle([])
        wake_at = office.scheduler.wake_at
        assert wake_at is not None
        assert wake_at > office.clock.now()
        office.clock.move_to(wake_at)
    office.pass_time(60)
    assert same_as_stored(office)


def test_trouble_is_logged_once_until_it_is_over(office: Office, caplog: pytest.LogCaptureFixture) -> None:
    office.store.refusals = [StoreFull("no room"), StoreFull("no room"), None, StoreFull("no room")]
    for _ in range(4):
        office.round(submit(ask()))
    assert [record.message for record in caplog.records] == ["nothing can be decided for now: no room"] * 2


def test_a_bug_is_logged_with_where_it_happened_and_the_next_round_works(
    office: Office, caplog: pytest.LogCaptureFixture
) -> None:
    office.store.refusals = [InvariantBroken("device granted twice", constraint="device")]
    assert isinstance(office.round(submit(ask()))[0].exception(), InvariantBroken)
    assert [record.exc_info is not None for record in caplog.records] == [True]
    assert office.submit().status is Status.ALLOCATED


def test_nobody_is_told_before_the_commit_and_everybody_after(office: Office) -> None:
    seen: list[tuple[int, list[str]]] = []
    work = office.begin(submit(ask()))

    class Watching:
        def publish(self, entries: Any) -> None:
            stored = office.store.reader.history.last_seq()
            seen.append((stored, [entry.change.what for entry in entries]))
            assert not work.future.done()
            assert [entry.seq for entry in entries] == [stored - 1, stored]

        def elsewhere(self, leader: str) -> None:
            raise AssertionError("this server leads")

    office.scheduler._notifier = Watching()
    office.scheduler.cycle([work])
    assert [what for _, what in seen] == [["queued", "allocated"]]
    assert work.future.result().status is Status.ALLOCATED


def test_what_is_committed_stays_committed_when_telling_fails(office: Office, caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def publish(self, entries: object) -> None:
            raise RuntimeError("the event loop is closed")

        def elsewhere(self, leader: str) -> None:
            raise RuntimeError("the event loop is closed")

    office.scheduler._notifier = Broken()
    assert office.submit().status is Status.ALLOCATED
    assert "could not be told" in caplog.text
    assert same_as_stored(office)


def test_a_scheduler_that_was_overtaken_commits_nothing_and_stands_by(office: Office) -> None:
    office.store.store.leases.acquire("one", office.clock.now(), 60)  # a later life of the same holder fences it off
    answer = office.round(submit(ask()))[0]
    assert isinstance(answer.exception(), StaleLeader)
    assert not office.scheduler.is_leading
    assert office.store.load().live == {}


def test_a_caller_that_went_away_changes_nothing_for_the_others(office: Office) -> None:
    gone, stays = office.begin(submit(ask())), office.begin(submit(ask()))
    gone.future.cancel()
    office.scheduler.cycle([gone, stays])
    assert stays.future.result().status is Status.ALLOCATED
    assert len(office.memory.live) == 2


def test_a_restart_finds_everything_as_it_was(office: Office) -> None:
    held = [office.submit("team:red", 3), office.submit("team:blue", 6), office.submit("team:blue", 1)]
    after = office.restarted()
    assert [after.status(record.id) for record in held] == [office.status(record.id) for record in held]
    assert after.memory.world.snapshot() == office.memory.world.snapshot()


def command(use_case: Callable[..., Callable[[], Any]], *args: Any) -> Callable[[Transaction], Callable[[], Any]]:
    """A use case with all but its transaction."""
    return lambda tx: use_case(tx, *args)


def acts(rng: random.Random, office: Office) -> Iterator[Callable[[Transaction], Callable[[], Any]]]:
    """A few things that people do, at random."""
    live = sorted(office.memory.live)
    for _ in range(rng.randint(0, 4)):
        match rng.randint(0, 9):
            case 0 | 1 | 2 | 3:
                team, size = rng.choice(["team:red", "team:blue"]), rng.choice([0.5, 1, 2, 5])
                yield submit(ask(team, size, preemptible=rng.random() < 0.8, wait_timeout_s=rng.choice([None, 40])))
            case 4 | 5 if live:
                yield command(requests.release, rng.choice(live))
            case 6 if live:
                yield command(requests.cancel, rng.choice(live))
            case 7 if live:
                yield command(requests.renew, rng.sample(live, len(live) // 2))
            case 8:
                change = PoolChange(capacity=(("gpu", rng.choice([4, 8, 12]) * 1000),))
                yield command(pools.update, "p", change)
            case _:
                yield command(runs.create_run, runs.NewRun(name="r"))


@pytest.mark.parametrize("seed", range(12))
def test_memory_is_always_what_the_store_would_give_back(seed: int) -> None:
    """Whatever people do and however often the store refuses: after each round memory and store say the same."""
    office, rng = opened(), random.Random(seed)
    for _ in range(60):
        office.store.refusals = [StoreUnavailable("busy")] if rng.random() < 0.15 else []
        futures: list[Future[Any]] = office.round(*acts(rng, office))
        assert all(future.done() for future in futures)
        office.clock.advance(rng.choice([0, 0, 1, 20]))
        office.store.refusals = []
        office.scheduler.cycle([])
        assert same_as_stored(office)
        assert audit(office.memory.world, office.clock.now()) == ()
    entries = office.told.entries
    assert [entry.seq for entry in entries] == sorted({entry.seq for entry in entries})


def test_the_loop_decides_by_itself_and_says_when_too_much_waits(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "MAX_WAITING", 3)
    loop = SchedulerLoop(office.scheduler, office.clock)
    waiting = [loop.do("alice", submit(ask())) for _ in range(5)]
    assert [type(future.exception()) for future in waiting if future.done()] == [Overloaded] * 2
    loop.start()
    assert [future.result(timeout=30).status for future in waiting[:3]] == [Status.ALLOCATED] * 3
    assert loop.ask(lambda memory, now: len(memory.live)).result(timeout=30) == 3
    loop.stop()
    assert not loop.is_leading
    assert isinstance(loop.do("alice", submit(ask())).exception(), NotLeading)


def test_a_work_item_that_only_asks_changes_nothing_even_where_it_fails(office: Office) -> None:
    office.submit()

    def fails(memory: object, now: object) -> None:
        raise KeyError("a bug in a view")

    work: Work[None] = Work(Future(), ask=fails)
    batches = len(office.store.batches)
    office.scheduler.cycle([work])
    assert isinstance(work.future.exception(), KeyError)
    assert len(office.store.batches) == batches


def test_a_round_waits_for_as_many_calls_as_the_last_one_had_and_a_stop_waits_for_nobody(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "GATHER_S", 3600)
    loop = SchedulerLoop(office.scheduler, office.clock)
    together = [loop.do("alice", submit(ask())) for _ in range(2)]
    loop.start()
    assert [future.result(timeout=30).status for future in together] == [Status.ALLOCATED] * 2
    commits = len(office.store.batches)
    again = [loop.do("alice", submit(ask())) for _ in range(2)]
    assert [future.result(timeout=30).status for future in again] == [Status.ALLOCATED] * 2
    assert len(office.store.batches) == commits + 1
    last = loop.do("alice", submit(ask()))
    loop.stop()
    assert last.result(timeout=30).status is Status.ALLOCATED


def test_those_who_came_meanwhile_and_those_who_were_answered_make_up_the_next_round(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "GATHER_S", 3600)
    loop = SchedulerLoop(office.scheduler, office.clock)
    loop.start()
    under_way, go_on = threading.Event(), threading.Event()

    def slow(transaction: Transaction) -> Callable[[], None]:
        under_way.set()
        assert go_on.wait(30)
        return lambda: None

    answered = loop.do("alice", slow)
    assert under_way.wait(30)
    came_meanwhile = loop.do("bob", submit(ask()))
    commits = len(office.store.batches)
    go_on.set()
    answered.result(timeout=30)
    again = loop.do("alice", submit(ask()))
    assert [future.result(timeout=30).status for future in (came_meanwhile, again)] == [Status.ALLOCATED] * 2
    assert len(office.store.batches) == commits + 1
    loop.stop()

"""Several servers on one PostgreSQL: who may write, in which order, and who is not waited for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest
from sqlalchemy import Connection

from fairpool.app.records import DEFAULT_WORKSPACE, Batch, HistoryQuery
from fairpool.app.store_errors import StaleLeader, StoreUnavailable
from fairpool.core.ids import SECOND, Instant
from fairpool.store import postgres
from fairpool.store.databases import Settle, Turn, settled
from fairpool.store.postgres_rows import driver
from tests.conformance.store_samples import NOW, Trial, change, request, trial_of
from tests.waiting import wait_until

LATER = Instant(NOW + 61 * SECOND)


@contextmanager
def apart() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(max_workers=4) as threads:
        yield threads


@pytest.fixture
def first(postgres_url: str) -> Iterator[Trial]:
    """A store in the hands of its leader, whose lease lapses after a minute."""
    on = trial_of(postgres_url)
    yield on
    on.store.close()


@pytest.fixture
def second(postgres_url: str, first: Trial) -> Iterator[Trial]:
    """A store on the same database, in the hands of nobody: the first has the lease."""
    on = trial_of(postgres_url)
    yield on
    on.store.close()


def wait_for_a_lock(url: str) -> None:
    """Until somebody on that database waits for somebody else."""
    with psycopg.connect(url, autocommit=True) as looking:
        query = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        wait_until(lambda: looking.execute(query).fetchone() != (0,), what="somebody to wait for a lock")


def test_whoever_takes_over_waits_for_the_commit_under_way_and_fences_off_the_next(
    first: Trial, second: Trial, postgres_url: str
) -> None:
    with apart() as threads:
        with first.store._writing() as connection:  # type: ignore[attr-defined]  # paused in the middle of a commit
            first.store._database.take_turn(connection, "scheduler", settled)  # type: ignore[attr-defined]
            taking = threads.submit(second.store.leases.acquire, "second", LATER, 60)
            wait_for_a_lock(postgres_url)
            assert not taking.done()
        taken = taking.result()
    assert taken.holder == "second"
    with pytest.raises(StaleLeader) as refused:
        first.commit(inserted=(request("late"),))
    assert (refused.value.token, refused.value.current) == (first.token, taken.token)
    second.commit(token=taken.token, inserted=(request("r1"),))
    assert set(second.store.load().live) == {"r1"}


def test_a_commit_that_waited_for_the_one_who_took_over_is_refused(
    first: Trial, second: Trial, postgres_url: str
) -> None:
    """It looked before the new leader had committed, and must see what is there after it had."""
    with apart() as threads, psycopg.connect(postgres_url) as taking_over:
        taking_over.execute("UPDATE leaders SET holder = 'second', token = token + 1")
        late: Future[int] = threads.submit(first.commit, inserted=(request("late"),))
        wait_for_a_lock(postgres_url)
        taking_over.commit()
        with pytest.raises(StaleLeader):
            late.result()
    assert set(second.store.load().live) == set()


def test_of_two_that_find_no_leader_at_once_one_leads(new_postgres_url: str) -> None:
    stores = [trial_of(new_postgres_url).store for _ in range(2)]
    with psycopg.connect(new_postgres_url) as connection:
        connection.execute("DELETE FROM leaders")
    with apart() as threads:
        ready = threading.Barrier(2)

        def acquire(number: int) -> str:
            ready.wait()
            return stores[number].leases.acquire(f"server-{number}", NOW, 60).holder

        holders = list(threads.map(acquire, range(2)))
    assert holders[0] == holders[1]
    for store in stores:
        store.close()


def test_workspaces_have_leaders_of_their_own_and_number_their_history_together(postgres_url: str) -> None:
    """Numbers follow each other without gaps, and what is seen later has the higher ones: event streams go by that."""
    workspaces = [trial_of(postgres_url, workspace=name) for name in ("default", "research", "ops")]
    assert len({on.store.leases._leader for on in workspaces}) == 3  # type: ignore[attr-defined]

    def live(on: Trial) -> list[int]:
        name = on.store._workspace  # type: ignore[attr-defined]
        return [on.commit(inserted=(request(f"{name}-{at}"),), changes=(change(f"{name}-{at}"),)) for at in range(30)]

    with apart() as threads:
        told = list(threads.map(live, workspaces))
    assert sorted(seq for seqs in told for seq in seqs) == list(range(1, 91))
    for on, seqs in zip(workspaces, told, strict=True):
        entries = on.store.reader.history.page(HistoryQuery(), limit=100).items
        assert [entry.seq for entry in entries] == seqs == sorted(seqs)
        assert len(on.store.load().live) == 30
        on.store.close()


def test_a_writer_that_stops_in_the_middle_does_not_keep_others_out_for_long(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a paused process does, or a machine that lost its power: its commit is undone, and another goes on."""
    other = trial_of(postgres_url, workspace="other")  # before: on a busy machine it may well stop for a second too
    monkeypatch.setattr(postgres, "_TIMEOUTS", {**postgres._TIMEOUTS, "idle_in_transaction_session_timeout": "1s"})
    paused = trial_of(postgres_url)
    written: Callable[..., None] = paused.store._rows._write  # type: ignore[attr-defined]
    settling: list[Callable[[], None]] = []

    def stops_when_all_is_written(connection: Connection, batch: Batch, turn: Turn) -> None:
        written(connection, batch, turn)
        settling[0]()
        other.commit(inserted=(request("r1"),))

    together = paused.store._database.together  # type: ignore[attr-defined]

    @contextmanager
    def remembers(connection: Connection) -> Iterator[Settle]:
        with together(connection) as settle:
            settling.append(settle)
            yield settle

    monkeypatch.setattr(paused.store._rows, "_write", stops_when_all_is_written)  # type: ignore[attr-defined]
    monkeypatch.setattr(paused.store._database, "together", remembers)  # type: ignore[attr-defined]
    with pytest.raises(StoreUnavailable, match="cannot be reached or does not answer"):
        paused.commit(inserted=(request("late"),))
    assert set(other.store.load().live) == {"r1"}
    assert other.store.beside(DEFAULT_WORKSPACE).load().live == {}  # type: ignore[attr-defined]
    monkeypatch.undo()
    paused.commit(inserted=(request("r2"),))  # the next has a connection of its own
    for on in (paused, other):
        on.store.close()


@pytest.mark.parametrize("in_a_pipeline", [True, False])
def test_whoever_takes_over_ends_the_session_of_a_writer_that_stopped_in_the_middle(
    first: Trial, second: Trial, monkeypatch: pytest.MonkeyPatch, *, in_a_pipeline: bool
) -> None:
    """Also where the server cannot tell that nothing more will come: between two statements that are sent together."""
    monkeypatch.setattr(postgres, "STALLED_S", 0.2)
    monkeypatch.setattr(postgres, "TAKEOVER_LOCK_S", 0.2)
    taken: list[int] = []

    def stops(connection: Connection, batch: Batch, turn: Turn) -> None:
        if in_a_pipeline:
            driver(connection).execute("SELECT 1")

        def take() -> bool:
            try:
                taken.append(second.store.leases.acquire("second", LATER, 60).token)
            except StoreUnavailable:
                return False
            return True

        wait_until(take, what="the lease to be free")

    monkeypatch.setattr(first.store._rows, "_write", stops)  # type: ignore[attr-defined]
    first.token = first.store.leases.acquire("first", NOW, 60).token
    with pytest.raises(StoreUnavailable):
        first.commit(inserted=(request("late"),))
    assert taken == [first.token + 1]
    assert second.store.load().live == {}


def test_readers_wait_for_nobody(first: Trial, postgres_url: str) -> None:
    first.commit(inserted=(request("r1"),))
    with first.store._writing() as connection:  # type: ignore[attr-defined]
        first.store._database.take_turn(connection, "scheduler", settled)  # type: ignore[attr-defined]
        connection.exec_driver_sql("UPDATE requests SET priority = 7")
        assert first.store.reader.requests.get(["r1"])["r1"].request.priority == 0  # type: ignore[index]
        assert first.store.load().live["r1"].request.priority == 0  # type: ignore[index]


def test_what_keeps_a_table_locked_is_said_after_a_while(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "_TIMEOUTS", {**postgres._TIMEOUTS, "lock_timeout": "100ms"})
    on = trial_of(postgres_url)
    with psycopg.connect(postgres_url) as operator:
        operator.execute("LOCK TABLE requests")
        with pytest.raises(StoreUnavailable, match=r"busy.*try again"):
            on.commit(inserted=(request("r1"),))
        with pytest.raises(StoreUnavailable, match=r"busy.*try again"):
            on.store.load()
    on.commit(inserted=(request("r1"),))
    on.store.close()

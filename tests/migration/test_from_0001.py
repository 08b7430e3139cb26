"""A database that version 0001 made, full of live work, becomes one of this version: nothing lost, work goes on, and
servers of that version that still run go on reading and writing meanwhile (expand first; contract a release later)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from fairpool.app.records import HistoryQuery, RequestQuery, RunQuery
from fairpool.core.audit import audit
from fairpool.core.ids import SECOND, Instant, RequestId
from fairpool.core.planner import decide
from fairpool.core.requests import Status
from fairpool.core.world import World
from fairpool.store import maintenance, migrating, opening
from fairpool.store.sql import SqlStore
from fairpool.store.urls import database_of
from tests.conformance.store_samples import NOW
from tests.migration.databases import answers_to_0001, at_revision, rows_of_0001, write_rows_of_0001

LATER = Instant(NOW + 31 * SECOND)


@pytest.fixture(params=["sqlite", "postgres"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database without any tables."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'fairpool.db'}"
    url: str = request.getfixturevalue("new_postgres_url")
    return url


@pytest.fixture
def old(empty: str) -> str:
    """The URL of a database that version 0001 made."""
    at_revision(empty, "0001")
    write_rows_of_0001(empty)
    return empty


@pytest.fixture
def upgraded(old: str) -> Iterator[SqlStore]:
    """The same database, opened by this version."""
    store = opening.open_store(old)
    yield store
    store.close()


def test_all_of_it_is_there_after_the_upgrade(old: str) -> None:
    opening.migrate(old)
    readers = database_of(old).readers()
    with readers.begin() as connection:
        for table, rows in rows_of_0001().items():
            columns = ", ".join(f'"{name}"' for name in rows[0])
            found = [dict(row) for row in connection.execute(text(f"SELECT {columns} FROM {table}")).mappings()]
            assert sorted(map(comparable, found)) == sorted(map(comparable, rows)), table
    readers.dispose()
    report = maintenance.check(old)
    assert (report.revision, report.problems) == (migrating.HEAD, ())


def comparable(row: dict[str, object]) -> str:
    """As text; SQLite knows no booleans."""
    return repr([(name, int(value) if isinstance(value, bool) else value) for name, value in row.items()])


def test_a_scheduler_goes_on_where_the_old_one_stopped(upgraded: SqlStore) -> None:
    stored = upgraded.load()
    statuses = {name: record.status for name, record in stored.live.items()}
    assert statuses == {
        "waits": Status.QUEUED,
        "blue-waits": Status.QUEUED,
        "holds": Status.ALLOCATED,
        "half": Status.ALLOCATED,
        "goes": Status.PREEMPTING,
        "gang": Status.ALLOCATED,
    }
    world = World.restore(stored.snapshot)
    plan = decide(world, LATER)  # the one that was being evicted has had its time
    assert [finish.request for finish in plan.finishes] == [RequestId("goes")]
    assert RequestId("waits") in {grant.request for grant in plan.grants}
    assert audit(world, LATER) == ()


def test_the_old_leader_is_fenced_off_by_the_next(upgraded: SqlStore) -> None:
    taken = upgraded.leases.acquire("new", Instant(NOW + 61 * SECOND), 60)
    assert (taken.holder, taken.token) == ("new", rows_of_0001()["leaders"][0]["token"] + 1)


def test_lists_and_history_show_what_was_there(upgraded: SqlStore) -> None:
    read = upgraded.reader
    assert len(read.requests.page(RequestQuery(), limit=100).items) == len(rows_of_0001()["requests"])
    assert len(read.history.page(HistoryQuery(), limit=100).items) == len(rows_of_0001()["history"])
    assert [run.id for run in read.runs.page(RunQuery()).items] == ["run-2", "run-1"]
    assert [step.id for step in read.runs.steps("run-1")] == ["step-1", "step-2"]


def test_lists_by_a_label_show_what_was_there(upgraded: SqlStore) -> None:
    assert by_labels(upgraded) == (["blue-waits", "waits"], ["waits"], ["run-1"])


def by_labels(store: SqlStore) -> tuple[list[str], list[str], list[str]]:
    """What carries some labels: requests, requests, runs."""
    requests, runs = store.reader.requests, store.reader.runs
    return (
        sorted(one.id for one in requests.page(RequestQuery(labels={"x": "1"})).items),
        [one.id for one in requests.page(RequestQuery(labels={"x": "1", "team": "red"})).items],
        [one.id for one in runs.page(RunQuery(labels={"team": "red"})).items],
    )


def test_servers_of_the_old_version_read_the_same_as_before(old: str) -> None:
    before = answers_to_0001(old)
    assert len(before) > 50
    assert sum(bool(rows) for _, rows in before) > len(before) / 2
    opening.migrate(old)
    assert answers_to_0001(old) == before


def test_servers_of_the_old_version_can_still_write(empty: str) -> None:
    """Their rows have no values for what is new."""
    opening.migrate(empty)
    write_rows_of_0001(empty)
    assert maintenance.check(empty).is_sound
    store = opening.open_store(empty)
    assert len(store.load().live) == 6
    assert by_labels(store) == (["blue-waits", "waits"], ["waits"], ["run-1"])
    store.close()

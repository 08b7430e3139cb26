"""How PostgreSQL finds what the store asks for: each page by an index, in order, without reading what is not wanted.

A planner goes by what it counted in the tables, so there must be much in them. What is looked at are the very
statements that the store sends, run once more under EXPLAIN ANALYZE: which ways they took, and how many rows they
looked at. A question that walks a table looks at all of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection, event

from benchmarks import million
from fairpool.app.ports import Reader
from fairpool.app.records import HistoryQuery, Kind, Owner, RequestQuery, RunQuery, RunStatus
from fairpool.core.ids import SECOND, Instant
from fairpool.core.requests import Status
from fairpool.store import labelled
from fairpool.store.connections import Reading
from fairpool.store.reading_reports import SqlRunReader
from fairpool.store.reading_requests import SqlRequestReader
from fairpool.store.sql import SqlStore
from fairpool.store.urls import database_of
from tests.postgres import Cluster

BASE, TIMES, WAITING = 2_000, 20, 2_000
OF_AN_AGE = labelled.FEW + 1_000
"""Requests that carry a label of the oldest or of the newest."""

_LABELS = (
    "INSERT INTO labels (workspace, kind, key, value, object_id, seq) "
    "SELECT workspace, 'request', %s, %s, id, seq FROM requests WHERE seq > %s AND seq <= %s"
)
LONG = frozenset({"requests", "history", "runs"})
FEW = WAITING + 500
"""Rows looked at for a page of a hundred: at most all that are live, of twenty times as many."""

MIDDLE = Instant(million.START + BASE * TIMES // 2 * million.EVERY_S * SECOND)
LIVE = frozenset({Status.QUEUED, Status.ALLOCATED, Status.PREEMPTING})
ME = Owner(made_by="user:u3", subjects=("user:u3", "team:t3"))
NEWCOMER = Owner(made_by="user:new", subjects=("user:new", "team:new"))

REQUESTS: Mapping[str, RequestQuery] = {
    "all": RequestQuery(),
    "live": RequestQuery(statuses=LIVE),
    "queued": RequestQuery(statuses=frozenset({Status.QUEUED})),
    "active, of which there are none": RequestQuery(statuses=frozenset({Status.ALLOCATED, Status.PREEMPTING})),
    "ended in one way": RequestQuery(statuses=frozenset({Status.REJECTED})),
    "ended in several ways": RequestQuery(statuses=frozenset({Status.REJECTED, Status.CANCELLED})),
    "ended in a way in which none has": RequestQuery(statuses=frozenset({Status.EXPIRED})),
    "of a pool": RequestQuery(pool="pool-3"),
    "live, of a pool": RequestQuery(pool="pool-3", statuses=LIVE),
    "of a policy": RequestQuery(policy="policy-3-13"),
    "of a team": RequestQuery(subject="team:t3"),
    "of nobody": RequestQuery(subject="team:new"),
    "live, of a team": RequestQuery(subject="team:t3", statuses=LIVE),
    "of a profile": RequestQuery(profile="half"),
    "live, of a profile": RequestQuery(profile="half", statuses=LIVE),
    "of a name": RequestQuery(name="train-7"),
    "of a run": RequestQuery(run="n000020000"),
    "of a step": RequestQuery(step="s"),
    "that repeat another": RequestQuery(retry_of="r000000001"),
    "with a label": RequestQuery(labels={"project": "x11"}),
    "with a label that none has": RequestQuery(labels={"project": "new"}),
    "with a label that most have": RequestQuery(labels={"env": "prod"}),
    "of a pool, with a label of the oldest": RequestQuery(labels={"era": "early"}, pool="pool-3"),
    "of a pool, with a label of the newest": RequestQuery(labels={"age": "late"}, pool="pool-3"),
    "with two labels of different times": RequestQuery(labels={"era": "early", "age": "late"}),
    "with two labels": RequestQuery(labels={"env": "prod", "project": "x11"}),
    "with two labels of which nobody has one": RequestQuery(labels={"env": "prod", "project": "new"}),
    "live, with a label": RequestQuery(labels={"project": "x11"}, statuses=LIVE),
    "queued, with a label that most have": RequestQuery(labels={"env": "prod"}, statuses=frozenset({Status.QUEUED})),
    "ended in one way, with a label": RequestQuery(labels={"project": "x11"}, statuses=frozenset({Status.CANCELLED})),
    "ended in a way in which none has, with a label that most have": RequestQuery(
        labels={"env": "prod"}, statuses=frozenset({Status.EXPIRED})
    ),
    "of a team, with a label": RequestQuery(labels={"project": "x11"}, subject="team:t11"),
    "of a team, with a label that most have": RequestQuery(labels={"env": "prod"}, subject="team:t3"),
    "of nobody, with a label that most have": RequestQuery(labels={"env": "prod"}, subject="team:new"),
    "of a pool, with a label": RequestQuery(labels={"project": "x11"}, pool="pool-1"),
    "of a pool, with a label that most have": RequestQuery(labels={"env": "prod"}, pool="pool-1"),
    "of a profile, with a label that most have": RequestQuery(labels={"env": "prod"}, profile="half"),
    "mine, with a label": RequestQuery(labels={"project": "x11"}, owner=ME),
    "mine, with a label that most have": RequestQuery(labels={"env": "prod"}, owner=ME),
    "a newcomer's, with a label that most have": RequestQuery(labels={"env": "prod"}, owner=NEWCOMER),
    "live or mine, with a label that most have": RequestQuery(labels={"env": "prod"}, owner=ME, or_live=True),
    "mine": RequestQuery(owner=ME),
    "a newcomer's": RequestQuery(owner=NEWCOMER),
    "a newcomer's, or live": RequestQuery(owner=NEWCOMER, or_live=True),
    "live, for a member": RequestQuery(owner=ME, or_live=True, statuses=LIVE),
}
HISTORY: Mapping[str, HistoryQuery] = {
    "all": HistoryQuery(),
    "of a kind": HistoryQuery(kind=Kind.REQUEST),
    "of rules": HistoryQuery(rules=True),
    "of one kind of rules": HistoryQuery(rules=True, kind=Kind.POOL),
    "of a name": HistoryQuery(rules=True, name="p3"),
    "of an object": HistoryQuery(object="r000020000"),
    "of a run": HistoryQuery(run="n000020000"),
    "by somebody": HistoryQuery(actor="user:u3"),
    "by a newcomer": HistoryQuery(actor="user:new"),
}
RUNS: Mapping[str, RunQuery] = {
    "all": RunQuery(),
    "of a name": RunQuery(name="nightly-30"),
    "with a label that none has": RunQuery(labels={"project": "new"}),
    "mine": RunQuery(owner=Owner(made_by="user:u0", subjects=("user:u0", "team:t0"))),
    "a newcomer's": RunQuery(owner=NEWCOMER),
    "that are under way, of which there are none": RunQuery(statuses=frozenset({RunStatus.RUNNING, RunStatus.PENDING})),
}


@dataclass(frozen=True, slots=True)
class Way:
    """How a statement found its rows. looked_at: rows of any table. steps: what was done to which table."""

    looked_at: int
    steps: tuple[tuple[str, str], ...]


class Watched:
    """A store, and what it asks the database."""

    def __init__(self, url: str) -> None:
        database = database_of(url)
        self._engine = database.readers()
        self.store = SqlStore(database, database.writer(), self._engine)
        self.plain = Reading(self._engine, database)
        self.plain.merges = False
        self._asked: list[tuple[str, Any]] = []
        event.listen(self._engine, "before_cursor_execute", self._note)

    def _note(self, connection: Connection, cursor: object, statement: str, parameters: Any, *_: object) -> None:
        if statement.startswith("SELECT"):
            self._asked.append((statement, parameters))

    def ways(self, ask: Callable[[Reader], object], *, without_indexes: bool = False) -> list[Way]:
        """How what it asks for is found."""
        self._asked.clear()
        ask(self.store.reader)
        with self._engine.connect() as connection:
            driver = connection.connection.driver_connection
            assert isinstance(driver, psycopg.Connection)
            for setting in ("enable_indexscan", "enable_indexonlyscan", "enable_bitmapscan"):
                driver.execute("SELECT set_config(%s, %s, false)", [setting, "off" if without_indexes else "on"])
            return [_way(driver, statement, parameters) for statement, parameters in list(self._asked)]


def _way(connection: psycopg.Connection[Any], statement: str, parameters: Any) -> Way:
    explained = f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {statement}"
    row = connection.execute(explained.encode(), parameters).fetchone()
    assert row is not None
    found = row[0] if isinstance(row[0], list) else json.loads(row[0])
    steps = list(_steps(found[0]["Plan"]))
    looked_at = sum(
        round((step["Actual Rows"] + step.get("Rows Removed by Filter", 0)) * step["Actual Loops"])
        for step in steps
        if "Relation Name" in step
    )
    return Way(looked_at, tuple((step["Node Type"], step.get("Relation Name", "")) for step in steps))


def _steps(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for inner in plan.get("Plans", ()):
        yield from _steps(inner)


@pytest.fixture(scope="module")
def watched(postgres_cluster: Cluster) -> Iterator[Watched]:
    url = postgres_cluster.new_database()
    million.fill(url, base=BASE, times=TIMES, waiting=WAITING)
    with psycopg.connect(url, autocommit=True) as connection:
        for key, value, after in (("era", "early", 0), ("age", "late", BASE * TIMES - OF_AN_AGE)):
            connection.execute(_LABELS, [key, value, after, after + OF_AN_AGE])
        connection.execute("ANALYZE labels")
    found = Watched(url)
    yield found
    found.store.close()
    postgres_cluster.drop_database(url)


def check(ways: list[Way], *, most: int = FEW) -> None:
    assert ways
    for way in ways:
        assert not [table for step, table in way.steps if step == "Seq Scan" and table in LONG], way
        assert way.looked_at <= most, way


@pytest.mark.parametrize("oldest_first", [False, True])
@pytest.mark.parametrize("cursor", [None, BASE * TIMES // 2])
@pytest.mark.parametrize("which", REQUESTS)
def test_a_page_of_requests_is_found_by_an_index(
    watched: Watched, which: str, cursor: int | None, *, oldest_first: bool
) -> None:
    query = REQUESTS[which]
    ways = watched.ways(lambda reader: reader.requests.page(query, cursor=cursor, oldest_first=oldest_first))
    check(ways, most=labelled.FEW + 500 if query.labels else FEW)


@pytest.mark.parametrize("oldest_first", [False, True])
@pytest.mark.parametrize("cursor", [None, BASE * TIMES // 2])
@pytest.mark.parametrize("which", REQUESTS)
def test_alternatives_that_are_found_apart_make_the_same_page_as_together(
    watched: Watched, which: str, cursor: int | None, *, oldest_first: bool
) -> None:
    pages = [
        reader.page(REQUESTS[which], cursor=cursor, oldest_first=oldest_first, limit=30)
        for reader in (watched.store.reader.requests, SqlRequestReader(watched.plain, "default"))
    ]
    assert pages[0] == pages[1]


@pytest.mark.parametrize("which", RUNS)
def test_runs_that_are_found_apart_make_the_same_page_as_together(watched: Watched, which: str) -> None:
    pages = [
        reader.page(RUNS[which], limit=30)
        for reader in (watched.store.reader.runs, SqlRunReader(watched.plain, "default"))
    ]
    assert pages[0] == pages[1]


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("which", HISTORY)
def test_a_page_of_the_history_is_found_by_an_index(watched: Watched, which: str, *, newest_first: bool) -> None:
    query = HISTORY[which]
    check(watched.ways(lambda reader: reader.history.page(query, newest_first=newest_first)))


def test_the_newest_of_the_history_since_a_moment_are_found_by_an_index(watched: Watched) -> None:
    lately = HistoryQuery(since=Instant(MIDDLE * 2 - million.START))
    between = HistoryQuery(since=MIDDLE, until=Instant(MIDDLE + 10 * million.EVERY_S * SECOND))
    for query in (lately, between):
        check(watched.ways(lambda reader, query=query: reader.history.page(query, newest_first=True)))  # type: ignore[misc]


def test_what_was_live_a_while_ago_is_found_without_looking_at_what_had_ended_before(watched: Watched) -> None:
    lately = RequestQuery(live_at=Instant(MIDDLE * 2 - million.START))
    check(watched.ways(lambda reader: reader.requests.page(lately, limit=1_000, oldest_first=True)))


@pytest.mark.parametrize("which", RUNS)
def test_a_page_of_runs_is_found_by_an_index(watched: Watched, which: str) -> None:
    query = RUNS[which]
    check(watched.ways(lambda reader: reader.runs.page(query)))


def test_live_requests_are_counted_without_looking_at_the_others(watched: Watched) -> None:
    check(watched.ways(lambda reader: reader.requests.count(RequestQuery(statuses=LIVE))))
    queued = RequestQuery(statuses=frozenset({Status.QUEUED}), subject="team:t3")
    check(watched.ways(lambda reader: reader.requests.count(queued)))


def test_what_was_live_lately_or_long_ago_is_found_by_an_index(watched: Watched) -> None:
    lately = Instant(MIDDLE * 2 - million.START - 50 * million.EVERY_S * SECOND)
    long_ago = Instant(million.START + 50 * million.EVERY_S * SECOND)
    for at in (lately, long_ago):
        query = RequestQuery(live_at=at)
        check(watched.ways(lambda reader, query=query: reader.requests.page(query, oldest_first=True, limit=1000)))  # type: ignore[misc]


@pytest.mark.parametrize("which", ["live", "of a team", "a newcomer's"])
def test_these_checks_notice_where_there_is_no_index(watched: Watched, which: str) -> None:
    ways = watched.ways(lambda reader: reader.requests.page(REQUESTS[which]), without_indexes=True)
    with pytest.raises(AssertionError):
        check(ways)

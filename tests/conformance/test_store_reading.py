"""What a store answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fairpool.app.ports import Store
from fairpool.app.records import HistoryQuery, Kind, RequestQuery, RunQuery, RunStatus, State
from fairpool.core.amounts import vector
from fairpool.core.ids import Instant, PoolId, RequestId
from fairpool.core.requests import Demand, Status
from tests.conformance.store_samples import (
    BLUE,
    K8S,
    NOW,
    RED,
    Trial,
    allocated,
    change,
    document,
    ended,
    grant,
    policy,
    pool,
    profile,
    request,
    run,
    step,
)


def ids(store: Store, *, oldest_first: bool = True, **query: Any) -> list[str]:
    """The requests that a query finds."""
    page = store.reader.requests.page(RequestQuery(**query), oldest_first=oldest_first)
    return [record.id for record in page.items]


@pytest.fixture
def busy(on: Trial) -> Store:
    """A store with a request of each kind: see the ids."""
    on.commit(
        put=(
            pool(),
            pool("cloud"),
            policy(RED),
            policy(K8S, of="pool-cloud", profiles=("other",)),
            profile("half", ("shared",)),
            profile("other", ("cloud",)),
        ),
        inserted=(
            request("red-waits", at=1, run="run-1", step="s1", labels={"team": "red", "x": "1"}, name="train"),
            request("blue-waits", subjects=(BLUE,), at=2, labels={"team": "blue", "x": "1"}),
            request("both-hold", subjects=(RED, K8S), at=3, run="run-1", name="train"),
            request("red-done", at=4, retry_of="red-waits"),
            request("half-waits", at=5, profile="half"),
            request("other-waits", subjects=(K8S, RED), at=6, profile="other"),
            request("cloud-only", subjects=(K8S, RED), at=7, pool="cloud"),
            request("rejected", at=8, demand=Demand.of(vector({"gpu": 99}))),
        ),
    )
    done = allocated(grant((1, 1000), sequence=2))
    on.commit(
        updated=(
            (RequestId("both-hold"), allocated(grant((0, 1000), sequence=1))),
            (RequestId("red-done"), done),
            (RequestId("rejected"), ended(request("rejected").state, Status.REJECTED)),
        )
    )
    on.commit(updated=((RequestId("red-done"), ended(done, Status.RELEASED)),))
    return on.store


def test_a_request_may_go_to_every_pool_of_a_policy(on: Trial) -> None:
    wide = policy(RED, also=(PoolId("pool-cloud"),))
    on.commit(put=(pool(), pool("cloud"), pool("third"), wide), inserted=(request("waits"),))
    assert [ids(on.store, pool=name) for name in ("pool-shared", "pool-cloud", "pool-third")] == [
        ["waits"],
        ["waits"],
        [],
    ]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (
            {"statuses": frozenset({Status.QUEUED}), "subject": "team:red"},
            "red-waits half-waits other-waits cloud-only",
        ),
        ({"statuses": frozenset({Status.ALLOCATED, Status.PREEMPTING})}, "both-hold"),
        ({"statuses": frozenset({Status.RELEASED, Status.QUEUED}), "name": "train"}, "red-waits"),
        ({"subject": "component:k8s"}, "both-hold other-waits cloud-only"),
        ({"subject": "team:re"}, ""),
        ({"run": "run-1"}, "red-waits both-hold"),
        ({"run": "run-1", "step": "s1"}, "red-waits"),
        ({"name": "train"}, "red-waits both-hold"),
        ({"profile": "half"}, "half-waits"),
        ({"retry_of": "red-waits"}, "red-done"),
        ({"labels": {"x": "1"}}, "red-waits blue-waits"),
        ({"labels": {"x": "1", "team": "blue"}}, "blue-waits"),
        ({"labels": {"x": "2"}}, ""),
        ({"policy": "policy-red-pool-shared"}, "both-hold red-done"),
        ({"since": Instant(NOW + 2), "until": Instant(NOW + 4)}, "blue-waits both-hold"),
        # granted there, or let go there by pool, policies and profiles
        ({"pool": "pool-shared"}, "red-waits both-hold red-done half-waits rejected"),
        ({"pool": "pool-cloud"}, "other-waits cloud-only"),
        ({"pool": "pool-shared", "statuses": frozenset({Status.QUEUED})}, "red-waits half-waits"),
        ({"pool": "pool-shared", "statuses": frozenset({Status.ALLOCATED})}, "both-hold"),
        ({"pool": "no-such-pool"}, ""),
    ],
)
def test_a_query_finds_exactly_what_it_asks_for(busy: Store, query: dict[str, Any], found: str) -> None:
    assert ids(busy, **query) == found.split()
    assert ids(busy, oldest_first=False, **query) == found.split()[::-1]
    assert sum(busy.reader.requests.count(RequestQuery(**query)).values()) == len(found.split())


def test_counts_are_by_status_and_leave_out_what_there_is_none_of(busy: Store) -> None:
    counts = busy.reader.requests.count(RequestQuery())
    assert counts == {Status.QUEUED: 5, Status.ALLOCATED: 1, Status.RELEASED: 1, Status.REJECTED: 1}


@pytest.mark.parametrize("oldest_first", [True, False])
def test_pages_show_every_request_once_while_others_arrive(on: Trial, oldest_first: bool) -> None:
    names = [f"r{number:02}" for number in range(25)]
    on.commit(inserted=tuple(map(request, names)))
    seen: list[str] = []
    cursor: int | None = None
    for turn in range(99):
        page = on.store.reader.requests.page(RequestQuery(), cursor=cursor, limit=10, oldest_first=oldest_first)
        seen += [record.id for record in page.items]
        cursor = page.next
        if cursor is None:
            break
        if not oldest_first:
            on.commit(inserted=(request(f"late{turn}"),))  # at the front of the list, which has been read
    assert seen == (names if oldest_first else names[::-1])


def test_a_page_that_holds_exactly_the_rest_is_the_last(on: Trial) -> None:
    on.commit(inserted=tuple(request(f"r{number}") for number in range(4)))
    page = on.store.reader.requests.page(RequestQuery(), limit=4)
    assert (len(page.items), page.next) == (4, None)


def test_a_reference_is_an_id_then_a_name_then_the_beginning_of_an_id(on: Trial) -> None:
    on.commit(
        put=(
            pool("a", object_id="p-1"),
            pool("p-1x", object_id="p-2"),
            pool("c", object_id="p-1x"),
            pool("p", object_id="q"),
        )
    )
    match = on.store.reader.declared.match
    assert [one.id for one in match(Kind.POOL, "p-1x")] == ["p-1x"]  # the id, though another has that name
    assert [one.id for one in match(Kind.POOL, "a")] == ["p-1"]
    assert [one.id for one in match(Kind.POOL, "p")] == ["q"]  # the name, though it begins ids
    assert [one.id for one in match(Kind.POOL, "p-")] == ["p-1", "p-1x", "p-2"]
    assert match(Kind.POOL, "z") == match(Kind.POOL, "") == match(Kind.STACK, "a") == ()


def test_an_ambiguous_beginning_lists_a_few_candidates(on: Trial) -> None:
    on.commit(inserted=tuple(request(f"req-{number:02}") for number in range(20)))
    match = on.store.reader.requests.match
    assert match("req-1") == tuple(f"req-{number}" for number in range(10, 20))
    assert len(match("req-")) == 10
    assert match("req-07") == ("req-07",)
    assert match("req-7") == match("") == ()


def test_special_letters_in_a_reference_mean_themselves(on: Trial) -> None:
    on.commit(inserted=(request("r_1"), request("rx1"), request("r%1")))
    match = on.store.reader.requests.match
    assert match("r_") == ("r_1",)
    assert match("r%") == ("r%1",)
    assert match("'; DROP TABLE requests; --") == ()


def test_declared_objects_come_by_name(on: Trial) -> None:
    on.commit(put=(document(Kind.STACK, "b", {}), document(Kind.STACK, "a", {}), document(Kind.COMPONENT, "c", {})))
    reader = on.store.reader.declared
    assert [one.name for one in reader.all(Kind.STACK)] == ["a", "b"]
    assert reader.get(Kind.COMPONENT, "component-c") == document(Kind.COMPONENT, "c", {})
    assert reader.get(Kind.STACK, "component-c") is None


def test_runs_are_found_by_what_they_are_and_the_newest_comes_first(on: Trial) -> None:
    first = run("run-1", user="alice", labels={"k": "v"})
    second = run("run-2", status=RunStatus.FAILED, user="bob")
    third = replace(run("run-3", name="other"), created_at=Instant(NOW + 9))
    on.commit(runs=(first, second, third))

    def found(**query: Any) -> list[str]:
        return [one.id for one in on.store.reader.runs.page(RunQuery(**query)).items]

    assert found() == ["run-3", "run-2", "run-1"]
    assert found(name="sweep") == ["run-2", "run-1"]
    assert found(user="alice", labels={"k": "v"}, statuses=frozenset({RunStatus.RUNNING})) == ["run-1"]
    assert found(since=Instant(NOW + 1)) == ["run-3"]
    assert found(until=Instant(NOW + 1)) == ["run-2", "run-1"]
    page = on.store.reader.runs.page(RunQuery(), limit=2)
    assert [one.id for one in on.store.reader.runs.page(RunQuery(), cursor=page.next).items] == ["run-1"]
    match = on.store.reader.runs.match
    assert match("sweep") == (second,)  # the newest of that name
    assert match("run-") == (first, second, third)
    assert match("nope") == ()


def test_steps_come_in_the_order_of_their_first_report_and_are_counted(on: Trial) -> None:
    steps = (step("z", "run-1"), step("a", "run-1", status=RunStatus.FAILED), step("m", "run-2"))
    on.commit(runs=(run("run-1"), run("run-2"), run("run-3")), steps=steps)
    on.commit(steps=(replace(steps[0], status=RunStatus.FAILED, version=2),))
    reader = on.store.reader.runs
    assert [one.id for one in reader.steps("run-1")] == ["z", "a"]
    assert reader.step_counts(["run-1", "run-3"]) == {"run-1": {"failed": 2}}
    assert reader.match_step("m") == (steps[2],)
    assert reader.match_step("x") == ()


def test_history_is_numbered_without_gaps_and_filtered(on: Trial) -> None:
    assert on.store.reader.history.last_seq() == 0
    assert on.commit(changes=(change("r1", after={"status": "queued"}, run="run-1"), change("r2"))) == 2
    assert on.commit(inserted=(request("r3"),)) == 2  # nothing was said about it
    full = change("p1", "capacity changed", Kind.POOL, name="shared", actor="user:a", cause="asked", before={"gpu": 1})
    assert on.commit(changes=(full, replace(change("r1", "allocated", run="run-1"), at=Instant(NOW + 5)))) == 4
    reader = on.reopened().reader.history

    def found(**query: Any) -> list[int]:
        return [entry.seq for entry in reader.page(HistoryQuery(**query)).items]

    assert found() == [1, 2, 3, 4]
    assert found(kind=Kind.POOL) == [3]
    assert found(object="r1") == found(run="run-1") == [1, 4]
    assert found(since=Instant(NOW + 1)) == [4]
    assert found(until=Instant(NOW + 1), kind=Kind.REQUEST) == [1, 2]
    assert found(rules=True) == [3]
    assert found(without=frozenset({Kind.REQUEST})) == [3]
    assert found(actor="user:a") == [3]
    assert reader.last_seq() == 4
    assert reader.page(HistoryQuery(kind=Kind.POOL)).items[0].change == full


def test_history_is_read_on_from_the_last_entry_seen_in_either_direction(on: Trial) -> None:
    on.commit(changes=tuple(change(f"r{number}") for number in range(1, 8)))
    reader = on.store.reader.history
    ahead = reader.page(HistoryQuery(), cursor=2, limit=3)
    assert ([entry.seq for entry in ahead.items], ahead.next) == ([3, 4, 5], 5)
    back = reader.page(HistoryQuery(), cursor=6, limit=9, newest_first=True)
    assert ([entry.seq for entry in back.items], back.next) == ([5, 4, 3, 2, 1], None)
    assert reader.page(HistoryQuery(), cursor=7).items == ()


def test_the_history_of_a_name_is_that_of_whatever_has_ever_gone_by_it(on: Trial) -> None:
    on.commit(
        changes=(
            change("p1", "created", Kind.POOL, name="old"),
            change("p2", "created", Kind.POOL, name="other"),
            change("p1", "name changed", Kind.POOL, name="new"),
            change("p1", "deleted", Kind.POOL, name="new"),
            change("p3", "created", Kind.POOL, name="old"),
            change("u1", "created", Kind.USER, name="old"),
        )
    )

    def found(**query: Any) -> list[int]:
        return [entry.seq for entry in on.store.reader.history.page(HistoryQuery(rules=True, **query)).items]

    assert found(name="old", kind=Kind.POOL) == [1, 3, 4, 5]
    assert found(name="new") == [1, 3, 4]
    assert found(name="old") == [1, 3, 4, 5, 6]
    assert found(name="none") == []


def test_requests_that_were_live_at_a_moment_are_found_whatever_became_of_them(on: Trial) -> None:
    late = request("late")
    late = replace(late, submission=replace(late.submission, created_at=Instant(NOW + 5)))
    on.commit(inserted=(request("gone"), request("here"), late))
    gone = State(status=Status.CANCELLED, version=2, ended_at=Instant(NOW + 3), ended_by="owner")
    on.commit(updated=((RequestId("gone"), gone),))

    def live(at: int) -> list[str]:
        return sorted(one.id for one in on.store.reader.requests.page(RequestQuery(live_at=Instant(NOW + at))).items)

    assert live(-1) == []
    assert live(0) == live(2) == ["gone", "here"]
    assert live(3) == ["here"]
    assert live(5) == ["here", "late"]

"""S35: all leases of a process are renewed in one call, and their owners hear what they must know."""

from __future__ import annotations

import json
import queue
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from fairpool.client.api import Client
from fairpool.client.renewing import LeaseRenewer
from fairpool.client.transport import Transport
from fairpool.wire.requests import LeaseView
from fairpool.wire.values import RequestStatus
from tests.unit.client.conftest import Answer, Scripted, problem
from tests.waiting import wait_until

SOON_S = 0.01
Heard = queue.SimpleQueue[LeaseView | None]


def lease(request: str, status: str = "allocated", **more: object) -> dict[str, object]:
    return {"request": request, "status": status, "lease_until": "2026-01-01T00:00:00Z", **more}


def result(*items: dict[str, object], missing: tuple[str, ...] = ()) -> Answer:
    return Answer(body=json.dumps({"items": list(items), "missing": list(missing)}).encode())


@pytest.fixture
def renewer(server: Scripted) -> Iterator[LeaseRenewer]:
    server.answers(result())
    client = Client(Transport(server.url, None, retries=0))
    made = LeaseRenewer(client, every_s=SOON_S)
    yield made
    made.close()
    client.close()


def test_all_leases_are_renewed_in_one_call(server: Scripted, renewer: LeaseRenewer) -> None:
    for name in ("a", "b", "c"):
        renewer.add(name, lambda lease: None)
    asked = wait_until(
        lambda: [call for call in server.calls if len(json.loads(call.body)["requests"]) == 3],
        what="a renewal of all three",
    )
    assert json.loads(asked[0].body)["requests"] == ["a", "b", "c"]


def test_an_owner_hears_that_it_must_let_go_and_by_when(server: Scripted, renewer: LeaseRenewer) -> None:
    server.answers(result(lease("a", "preempting", eviction={"deadline_at": "2026-01-01T00:00:30Z"})))
    heard: Heard = queue.SimpleQueue()
    renewer.add("a", heard.put)
    told = heard.get(timeout=30)
    assert told is not None
    assert told.status is RequestStatus.PREEMPTING
    assert told.eviction is not None
    assert told.eviction.deadline_at == datetime(2026, 1, 1, 0, 0, 30, tzinfo=UTC)


def test_an_owner_hears_that_the_server_does_not_know_its_request(server: Scripted, renewer: LeaseRenewer) -> None:
    server.answers(result(missing=("a",)))
    heard: Heard = queue.SimpleQueue()
    renewer.add("a", heard.put)
    assert heard.get(timeout=30) is None


def test_one_owners_trouble_does_not_cost_the_others_their_leases(server: Scripted, renewer: LeaseRenewer) -> None:
    def fail(_: LeaseView | None) -> None:
        raise RuntimeError("trouble")

    server.answers(result(lease("a"), lease("b")))
    heard: Heard = queue.SimpleQueue()
    renewer.add("a", fail)
    renewer.add("b", heard.put)
    first, second = heard.get(timeout=30), heard.get(timeout=30)
    assert first is not None
    assert second is not None


def test_what_was_given_back_is_renewed_no_more(server: Scripted, renewer: LeaseRenewer) -> None:
    renewer.add("a", lambda lease: None)
    renewer.add("b", lambda lease: None)
    renewer.remove("a")
    renewer.remove("unknown")
    asked_before = len(server.calls)
    wait_until(lambda: len(server.calls) > asked_before + 2, what="further renewals")
    assert json.loads(server.calls[-1].body)["requests"] == ["b"]


def test_renewing_goes_on_after_the_server_was_away(server: Scripted, renewer: LeaseRenewer) -> None:
    server.answers(problem(500, "internal-error"), Answer(hang_up=True), result(lease("a")))
    heard: Heard = queue.SimpleQueue()
    renewer.add("a", heard.put)
    assert heard.get(timeout=30) is not None


def test_nothing_is_asked_where_nothing_is_held(server: Scripted) -> None:
    renewer = LeaseRenewer(Client(Transport(server.url, None)), every_s=SOON_S)
    renewer.close()
    assert server.calls == []

"""Requests of a process: nothing is lost when the server is away, events are missed, or answers come late."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from fairpool.sdk import broker as broker_module
from fairpool.sdk.broker import Broker, Submission
from fairpool.sdk.errors import Refused, Unreachable
from fairpool.wire.requests import RequestCreate, RequestView
from fairpool.wire.values import RequestStatus
from tests.unit.sdk.fake_server import FakeServer
from tests.waiting import wait_until


class Seen:
    """What a listener heard."""

    def __init__(self, name: str = "x") -> None:
        self.views: list[RequestView] = []
        self.failures: list[Exception] = []
        self._name = name

    def submission(self) -> Submission:
        return Submission(
            prepare=lambda: RequestCreate(demand={"gpu": 1}, name=self._name),
            listener=self.views.append,
            failed=self.failures.append,
        )

    def statuses(self) -> list[RequestStatus]:
        return [view.status for view in self.views]


@pytest.fixture
def server() -> FakeServer:
    return FakeServer(gpus=1)


@pytest.fixture
def broker(server: FakeServer) -> Iterator[Broker]:
    made = Broker(server, renew_every_s=0.05)
    yield made
    made.close()
    server.hang_up()


def test_a_listener_hears_the_grant_that_comes_later(server, broker):
    first, second = Seen(), Seen()
    broker.submit(first.submission())
    broker.submit(second.submission())
    wait_until(lambda: first.views and second.views, what="both are known")
    broker.release(first.views[0].id)
    wait_until(lambda: second.statuses() == [RequestStatus.QUEUED, RequestStatus.ALLOCATED], what="the second's turn")


def test_what_events_do_not_tell_the_leases_do(server, broker):
    """A lost event costs time, not the grant."""
    server.closed = True
    seen = Seen()
    broker.submit(seen.submission())
    wait_until(lambda: seen.views and server._streams, what="the request is known")
    server._streams.clear()
    server.say(seen.views[0].id, RequestStatus.CANCELLED)
    wait_until(lambda: seen.statuses()[-1] is RequestStatus.CANCELLED, what="the leases tell")


def test_calls_are_made_again_until_the_server_is_back(server, broker, monkeypatch):
    monkeypatch.setattr(broker_module, "FIRST_PAUSE_S", 0.01)
    answers = iter([Unreachable("starting"), Unreachable("starting")])
    real = server.create_requests

    def sometimes(requests):
        error = next(answers, None)
        if error is not None:
            raise error
        return real(requests)

    monkeypatch.setattr(server, "create_requests", sometimes)
    seen = Seen()
    broker.submit(seen.submission())
    wait_until(lambda: seen.views, what="the third try")
    assert not seen.failures and len(server.requests) == 1


def test_a_refusal_reaches_the_one_who_asked(server, broker, monkeypatch):
    def refuses(requests):
        raise Refused("no such pool", code=404)

    monkeypatch.setattr(server, "create_requests", refuses)
    seen = Seen()
    broker.submit(seen.submission())
    wait_until(lambda: seen.failures, what="the refusal")
    assert "no such pool" in str(seen.failures[0])


def test_one_that_cannot_be_prepared_fails_alone(server, broker):
    bad, good = Seen(), Seen()

    def breaks() -> RequestCreate:
        raise ValueError("nothing to ask for")

    broker.submit(Submission(prepare=breaks, listener=bad.views.append, failed=bad.failures.append))
    broker.submit(good.submission())
    wait_until(lambda: good.views and bad.failures, what="both are told")
    assert not bad.views and not good.failures


def test_submissions_that_have_gathered_go_out_as_one(server, broker, monkeypatch):
    sizes: list[int] = []
    gate = threading.Event()
    real = server.create_requests

    def counted(requests):
        sizes.append(len(requests))
        return real(requests)

    monkeypatch.setattr(server, "create_requests", counted)
    broker.call(gate.wait)
    seen = [Seen() for _ in range(50)]
    for one in seen:
        broker.submit(one.submission())
    gate.set()
    wait_until(lambda: all(one.views for one in seen), what="all are known")
    assert sizes == [50]


def test_a_failing_listener_does_not_keep_the_others_from_hearing(server, broker):
    def breaks(view: RequestView) -> None:
        raise KeyError("listener")

    good = Seen()
    broker.submit(Submission(prepare=good.submission().prepare, listener=breaks, failed=good.failures.append))
    broker.submit(good.submission())
    wait_until(lambda: good.views, what="the other hears")
    assert good.statuses()[0] in (RequestStatus.QUEUED, RequestStatus.ALLOCATED)

"""Who listens is told everything, whichever server they listen at, and whichever of them decides or dies meanwhile."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet

from fairpool.client.api import Client
from fairpool.client.transport import Transport
from fairpool.wire.events import Event
from fairpool.wire.pools import PoolCreate
from fairpool.wire.requests import RequestCreate
from tests.e2e.servers.installation import Installation, Server, add_pool
from tests.integration.receiver import Receiver, receiving
from tests.waiting import wait_until


@pytest.fixture
def database_url(new_postgres_url: str) -> str:
    return new_postgres_url


@pytest.fixture
def installation(installation: Installation, monkeypatch: pytest.MonkeyPatch) -> Installation:
    """Two servers that may call webhooks of this machine, over a PostgreSQL."""
    monkeypatch.setenv("FAIRPOOL_VAULT_KEY", Fernet.generate_key().decode())
    monkeypatch.setenv("FAIRPOOL_WEBHOOK_ALLOW_PRIVATE", "1")
    add_pool(installation.start("one"))
    installation.start("two")
    return installation


@pytest.fixture
def client(installation: Installation) -> Iterator[Client]:
    """Calls that go to whichever server answers."""
    made = Client(Transport(_both(installation), installation.token))
    yield made
    made.close()


def test_a_stream_through_the_follower_misses_and_doubles_nothing_across_changes_of_the_leader(
    installation: Installation, client: Client
) -> None:
    leader, follower = installation.servers["one"], installation.servers["two"]
    heard: list[Event] = []
    over = threading.Event()

    def listen() -> None:
        for event in Client(Transport(f"{follower.url},{leader.url}", installation.token)).events(after=0):
            heard.append(event)
            if event.name == "the-end":
                over.set()
                return

    reader = threading.Thread(target=listen, daemon=True)
    reader.start()
    _run(client, 5)
    _has_heard(heard, client)
    leader.kill()  # the stream stays where it is, and is told what another commits from now on: that server itself
    _run(client, 5)
    assert follower.leads
    _has_heard(heard, client)
    installation.start("one")
    follower.kill()  # the stream breaks, and goes on at the other server after the last event that was heard
    _run(client, 5)
    client.create_pool(PoolCreate(name="the-end"))
    assert over.wait(60), "the end was told"
    ids = [event.id for event in heard]
    told = [entry["id"] for entry in _history(installation.leader())]
    assert ids == told[: len(ids)] == list(range(1, len(ids) + 1))
    assert len(ids) >= 15 * 3


def test_webhooks_are_told_everything_across_changes_of_the_leader(
    installation: Installation, client: Client, tmp_path: Path
) -> None:
    with receiving(tmp_path / "receiver") as receiver:
        hook = {"name": "hook", "url": receiver.url, "events": ["request.granted", "request.released"]}
        installation.leader().call.ok("POST", "/webhooks", hook)
        requests = _run(client, 4)
        wait_until(lambda: _told(receiver) >= _wanted(requests), what="the first to be told")
        receiver.answers(*["500"] * 3)  # some wait to be told again when their server dies
        requests += _run(client, 4)
        for _ in range(2):
            leader = installation.leader()
            receiver.answers("500")
            requests += _run(client, 1)
            leader.kill()
            requests += _run(client, 4)
            installation.start(leader.directory.name)
        wait_until(lambda: _told(receiver) >= _wanted(requests), what="everything to be told", timeout_s=90)
        bodies: dict[str, set[str]] = {}
        ids: dict[tuple[str, str], set[str]] = {}
        for call in receiver.calls():
            body = json.loads(call["body"])
            bodies.setdefault(call["headers"]["webhook-id"], set()).add(call["body"])
            ids.setdefault((body["type"], body["data"]["request"]), set()).add(call["headers"]["webhook-id"])
        assert all(len(told) == 1 for told in bodies.values()), "what is told again is told alike"
        assert all(len(known) == 1 for known in ids.values()), "what is told again is told by the same id"
        assert set(ids) == _wanted(requests), "and nothing else is told"


def _both(installation: Installation) -> str:
    return ",".join(server.url for server in installation.servers.values())


def _run(client: Client, count: int) -> list[str]:
    """So many requests that are granted and let go, one after the other."""
    made = []
    for _ in range(count):
        request = client.submit(RequestCreate(demand={"gpu": 1}, subjects=["team:red"], lease_s=3600))
        client.release(request.id)
        made.append(request.id)
    return made


def _has_heard(heard: list[Event], client: Client) -> None:
    last = client.history()[0].id
    wait_until(lambda: heard and heard[-1].id >= last, what="the stream to have told everything")


def _history(server: Server) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = server.call.ok("GET", "/history?after=0&limit=1000")["items"]
    return found


def _wanted(requests: list[str]) -> set[tuple[str, str]]:
    return {(event, request) for request in requests for event in ("request.granted", "request.released")}


def _told(receiver: Receiver) -> set[tuple[str, str]]:
    bodies = [json.loads(call["body"]) for call in receiver.taken()]
    return {(body["type"], body["data"]["request"]) for body in bodies}

"""Calls are repeated only where that cannot do a thing twice, and every failure says who must act."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator

import pytest

from fairpool.client import patience
from fairpool.client.api import Client
from fairpool.client.errors import Problem, Unreachable
from fairpool.client.transport import Transport
from fairpool.wire.pools import PoolCreate, PoolUpdate
from fairpool.wire.problems import EXIT_CODES, Exit, Slug
from fairpool.wire.requests import RequestCreate
from tests.unit.client.conftest import HANG_UP, Answer, Scripted, problem

POOL = {
    "id": "00aaaaaaaaaaaaaaaaaa",
    "name": "gpus",
    "capacity": {"gpu": 4},
    "used": {},
    "free": {"gpu": 4},
    "reserved": {},
    "borrowed": {},
    "active": 0,
    "queued": 0,
    "version": 1,
    "created_at": "2026-01-01T00:00:00Z",
}
NAMED = Answer(body=b'{"pool": "gpus", "outcome": "deleted", "policies": [], "queued": [], "active": []}')
EMPTY_PAGE = Answer(body=b'{"items": []}')


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long it would have waited before each further try."""
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    return waited


@pytest.fixture
def client(server: Scripted) -> Iterator[Client]:
    made = Client(Transport(server.url, "secret"))
    yield made
    made.close()


def test_every_call_shows_the_token(server: Scripted, client: Client) -> None:
    server.answers(EMPTY_PAGE)
    client.pools()
    assert server.calls[0].headers["authorization"] == "Bearer secret"


def test_a_connection_is_kept_for_the_next_call(server: Scripted, client: Client) -> None:
    server.answers(EMPTY_PAGE)
    for _ in range(5):
        client.pools()
    assert server.connections == 1


def test_reading_is_tried_again_after_a_lost_connection(server: Scripted, client: Client) -> None:
    server.answers(HANG_UP, HANG_UP, EMPTY_PAGE)
    assert client.pools() == []
    assert len(server.calls) == 3


def test_a_creation_is_repeated_with_the_same_idempotency_key(server: Scripted, client: Client) -> None:
    server.answers(HANG_UP, problem(409, Slug.EXISTS, "there is one"))
    with pytest.raises(Problem):
        client.create_pool(PoolCreate(name="gpus", capacity={"gpu": 4}))
    keys = [call.headers["idempotency-key"] for call in server.calls]
    assert len(keys) == 2
    assert len(set(keys)) == 1


def test_two_creations_have_two_idempotency_keys(server: Scripted, client: Client) -> None:
    server.answers(problem(409, Slug.EXISTS))
    for _ in range(2):
        with pytest.raises(Problem):
            client.create_pool(PoolCreate(name="gpus"))
    assert len({call.headers["idempotency-key"] for call in server.calls}) == 2


def test_a_bulk_whose_answer_was_lost_is_repeated_with_the_same_key_for_each_item(
    server: Scripted, client: Client
) -> None:
    server.answers(HANG_UP, Answer(body=b'{"items": []}'))
    mine = RequestCreate(demand={"gpu": 1}, subjects=["team:a"], idempotency_key="mine")
    assert client.submit_many([mine, RequestCreate(demand={"gpu": 1}, subjects=["team:a"])]) == []
    keys = [[item["idempotency_key"] for item in json.loads(call.body)["requests"]] for call in server.calls]
    assert keys[0] == keys[1]
    assert keys[0][0] == "mine"
    assert keys[0][1] not in ("", "mine")


@pytest.mark.parametrize("version", [None, 3])
def test_a_change_is_repeated_as_it_says_what_is_to_be_so(
    server: Scripted, client: Client, version: int | None
) -> None:
    server.answers(HANG_UP)
    with pytest.raises(Unreachable):
        client.update_pool("gpus", PoolUpdate(description="new"), version=version)
    assert len(server.calls) == 1 + patience.RETRIES
    assert {call.headers.get("if-match") for call in server.calls} == {None if version is None else '"3"'}


def test_what_may_have_been_done_and_cannot_be_done_twice_is_not_repeated(server: Scripted, client: Client) -> None:
    server.answers(HANG_UP)
    with pytest.raises(Unreachable):
        client.transport.raw("sign_in_exchange")
    assert len(server.calls) == 1


@pytest.mark.parametrize("route", ["apply", "token_create"])
def test_what_is_applied_or_told_once_is_asked_again_with_its_key(server: Scripted, client: Client, route: str) -> None:
    server.answers(HANG_UP, Answer(body=b"{}"))
    client.transport.raw(route)
    assert len(server.calls) == 2
    assert len({call.headers["idempotency-key"] for call in server.calls}) == 1


def test_what_was_not_said_is_not_sent(server: Scripted, client: Client) -> None:
    server.answers(problem(404, Slug.NOT_FOUND))
    with pytest.raises(Problem):
        client.update_pool("gpus", PoolUpdate(description="new"))
    assert json.loads(server.calls[0].body) == {"description": "new"}


def test_a_busy_server_is_asked_again_when_it_says_so(server: Scripted, client: Client, waits: list[float]) -> None:
    server.answers(problem(503, Slug.OVERLOADED, Retry_After="2"), EMPTY_PAGE)
    assert client.pools() == []
    assert [2 <= wait <= 2.5 for wait in waits] == [True]


def test_a_server_cannot_make_a_person_wait_for_ever(server: Scripted, client: Client, waits: list[float]) -> None:
    server.answers(problem(503, Slug.OVERLOADED, Retry_After="86400"), EMPTY_PAGE)
    client.pools()
    assert [5 <= wait <= 6 for wait in waits] == [True]


def test_a_server_that_says_that_it_will_be_back_is_waited_for_longer_than_a_minute(
    server: Scripted, client: Client, waits: list[float]
) -> None:
    """A database that is away for a minute costs nobody their work."""
    server.answers(problem(503, Slug.UNAVAILABLE, "the database is away", Retry_After="1"))
    with pytest.raises(Problem, match="the database is away"):
        client.pools()
    assert 60 < sum(waits) < 2 * patience.PATIENCE_S
    assert max(waits) <= patience.LONGEST_WAIT_S * 1.2


def test_waiting_is_said_once_and_that_it_is_over(server: Scripted) -> None:
    told: list[str] = []
    client = Client(Transport(server.url, "secret", say=told.append))
    busy = problem(503, Slug.UNAVAILABLE, "the database is away", Retry_After="1")
    server.answers(busy, busy, busy, busy, EMPTY_PAGE)
    client.pools()
    assert told == [
        f"waiting for the server at {server.url}: the database is away",
        f"the server at {server.url} answers again",
    ]
    client.close()


def test_a_short_pause_is_not_worth_a_word(server: Scripted) -> None:
    told: list[str] = []
    client = Client(Transport(server.url, "secret", say=told.append))
    server.answers(HANG_UP, HANG_UP, EMPTY_PAGE)
    client.pools()
    assert told == []
    client.close()


def test_of_several_servers_the_next_is_called_at_once_where_one_is_gone(server: Scripted, waits: list[float]) -> None:
    server.answers(EMPTY_PAGE)
    with socket.create_server(("127.0.0.1", 0)) as unused:
        gone = f"http://127.0.0.1:{unused.getsockname()[1]}"
    client = Client(Transport(f"{gone}/, {server.url}", "secret"))
    assert client.pools() == []
    assert waits == [0]
    assert client.url == server.url, "and stays with the one that answers"
    client.close()


def test_of_several_servers_the_next_is_called_where_one_reaches_no_leader(server: Scripted) -> None:
    other = Scripted()
    other.answers(EMPTY_PAGE)
    server.answers(problem(503, Slug.NOT_LEADING, Retry_After="1"))
    client = Client(Transport(f"{server.url},{other.url}", "secret"))
    assert client.pools() == []
    assert (len(server.calls), len(other.calls)) == (1, 1)
    client.close()
    other.close()


def test_several_servers_that_are_all_gone_are_waited_for(waits: list[float]) -> None:
    """One after the other they are restarted: for a moment nobody listens anywhere."""
    with socket.create_server(("127.0.0.1", 0)) as first, socket.create_server(("127.0.0.1", 0)) as second:
        gone = [f"http://127.0.0.1:{unused.getsockname()[1]}" for unused in (first, second)]
    with pytest.raises(Unreachable):
        Client(Transport(",".join(gone), None)).pools()
    assert sum(waits) > 60


def test_each_of_several_servers_can_be_asked_alone_and_nobody_is_waited_for(
    server: Scripted, waits: list[float]
) -> None:
    transport = Transport(f"http://127.0.0.1:1,{server.url}", "tok")
    gone, there = (Client(each) for each in transport.each())
    with pytest.raises(Unreachable):
        gone.server()
    assert waits == []
    server.answers(EMPTY_PAGE)
    assert there.pools() == []
    assert server.calls[0].headers["authorization"] == "Bearer tok"
    for each in (gone, there):
        each.close()
    transport.close()
    assert Transport(server.url, None).each()[0].url == server.url


def test_further_tries_come_later_and_later(server: Scripted, client: Client, waits: list[float]) -> None:
    server.answers(HANG_UP)
    with pytest.raises(Unreachable):
        client.pools()
    assert len(waits) == patience.RETRIES
    # Each wait lies between half and one and a half of its doubling base.
    assert all(0.05 * 2**n <= wait <= 0.15 * 2**n for n, wait in enumerate(waits))


@pytest.mark.parametrize("slug", list(Slug))
def test_a_refusal_keeps_its_words_and_has_its_exit_code(server: Scripted, client: Client, slug: Slug) -> None:
    server.answers(problem(400, slug, "why"))
    with pytest.raises(Problem) as caught:
        client.pool("gpus")
    assert (caught.value.slug, caught.value.status, caught.value.message) == (slug, 400, "why")
    assert caught.value.exit_code == EXIT_CODES[slug]
    assert len(server.calls) == 1, "a refusal is not asked again"


def test_a_slug_of_a_newer_server_is_a_plain_failure(server: Scripted, client: Client) -> None:
    server.answers(problem(400, "not-invented-yet", "why"))
    with pytest.raises(Problem) as caught:
        client.pool("gpus")
    assert caught.value.exit_code == Exit.FAILED


@pytest.mark.parametrize("body", [b"<html>Bad gateway</html>", b"", b"\xff\xfe"])
def test_what_is_no_problem_document_is_told_with_its_status(server: Scripted, client: Client, body: bytes) -> None:
    server.answers(Answer(status=500, body=body, headers={"Content-Type": "text/html"}))
    with pytest.raises(Problem, match="the server answered 500"):
        client.pool("gpus")


def test_a_broken_problem_document_is_told_with_its_status(server: Scripted, client: Client) -> None:
    server.answers(Answer(status=409, body=b"{", headers={"Content-Type": "application/problem+json"}))
    with pytest.raises(Problem, match="409"):
        client.pool("gpus")


def test_nobody_listening_is_said_plainly(server: Scripted) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    with pytest.raises(Unreachable, match="nothing listens there") as caught:
        Client(Transport(f"http://127.0.0.1:{port}", None)).pools()
    assert caught.value.exit_code == Exit.UNREACHABLE
    assert "fairpool doctor" in caught.value.hint


def test_a_server_that_came_back_elsewhere_is_found(server: Scripted) -> None:
    server.answers(EMPTY_PAGE)
    with socket.create_server(("127.0.0.1", 0)) as unused:
        gone = f"http://127.0.0.1:{unused.getsockname()[1]}"
    client = Client(Transport(gone, "old", find_again=lambda: (server.url, "new")))
    assert client.pools() == []
    assert client.url == server.url
    assert server.calls[0].headers["authorization"] == "Bearer new"
    client.close()


def test_names_cannot_leave_their_place_in_the_path(server: Scripted, client: Client) -> None:
    server.answers(NAMED)
    client.delete_pool("../../x?y=1#z")
    assert server.calls[0].path.partition("?")[0] == "/api/v1/pools/..%2F..%2Fx%3Fy%3D1%23z"


def test_pages_are_read_until_the_last_one(server: Scripted, client: Client) -> None:
    pages = [{"items": [POOL, POOL], "next_cursor": "c1"}, {"items": [POOL]}]
    server.answers(*(Answer(body=json.dumps(page).encode()) for page in pages))
    assert len(client.pools()) == 3
    assert "cursor=c1" in server.calls[1].path


def test_no_more_is_read_than_was_asked_for(server: Scripted, client: Client) -> None:
    server.answers(Answer(body=json.dumps({"items": [], "next_cursor": None}).encode()))
    assert list(client.requests(limit=7)) == []
    assert "limit=7" in server.calls[0].path


def test_filters_that_were_not_given_are_not_sent_and_labels_repeat(server: Scripted, client: Client) -> None:
    server.answers(EMPTY_PAGE)
    list(client.requests(limit=1, pool=None, label=["a=1", "b=2"]))
    assert server.calls[0].path.endswith("?label=a%3D1&label=b%3D2&limit=1")


def test_events_are_read_as_they_come_and_comments_passed_over(server: Scripted, client: Client) -> None:
    event = {
        "id": 7,
        "at": "2026-01-01T00:00:00Z",
        "what": "created",
        "kind": "pool",
        "object": "p",
        "actor": "local",
    }
    stream = b": hello\n\nid: 7\nevent: change\ndata: " + json.dumps(event).encode() + b"\n\n"
    server.answers(Answer(body=stream, headers={"Content-Type": "text/event-stream"}))
    assert next(client.events(after=6)).id == 7
    assert "after=6" in server.calls[0].path


def test_a_refused_stream_says_why(server: Scripted, client: Client) -> None:
    server.answers(problem(403, Slug.FORBIDDEN, "not yours"))
    with pytest.raises(Problem, match="not yours"):
        list(client.events())

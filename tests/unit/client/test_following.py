"""The event stream is taken up where it broke off; nothing is missed and nothing told twice."""

from __future__ import annotations

import json
from itertools import islice

import pytest

from fairpool.client.errors import Problem
from fairpool.client.following import follow
from fairpool.client.transport import Transport
from fairpool.wire.events import Event
from tests.unit.client.conftest import HANG_UP, Answer, Scripted, problem


def block(number: int) -> str:
    event = {"id": number, "at": "2026-01-01T00:00:00Z", "kind": "request", "object": "r", "what": "queued"}
    return f"id: {number}\nevent: request\ndata: {json.dumps(event)}\n\n"


def stream(text: str) -> Answer:
    return Answer(body=text.encode(), headers={"Content-Type": "text/event-stream"})


def taken(server: Scripted, count: int, after: int | None = None) -> list[int]:
    found = follow(Transport(server.url, None), after=after, pause=lambda seconds: None)
    events: list[Event] = list(islice(found, count))
    return [event.id for event in events]


def asked(server: Scripted) -> list[str]:
    return [call.path.partition("?")[2] for call in server.calls]


def test_it_goes_on_after_the_last_event_that_came_whole(server: Scripted) -> None:
    cut = block(3)[:40]
    server.answers(stream("retry: 1000\n\n" + block(1) + block(2) + cut), stream(block(3) + block(4)))
    assert taken(server, 4, after=0) == [1, 2, 3, 4]
    assert asked(server) == ["after=0", "after=2"]


def test_one_that_follows_from_now_on_misses_nothing_when_the_first_connection_brings_nothing(
    server: Scripted,
) -> None:
    server.answers(stream("id: 41\nretry: 1000\n\n"), stream("id: 41\nretry: 1000\n\n" + block(42)))
    assert taken(server, 1) == [42]
    assert asked(server) == ["", "after=41"]


def test_a_connection_that_breaks_and_a_server_that_is_away_are_tried_again(server: Scripted) -> None:
    server.answers(HANG_UP, problem(503, "unavailable"), problem(429, "too-many-calls"), stream(block(1)))
    assert taken(server, 1, after=0) == [1]


def test_a_refusal_that_does_not_pass_is_told(server: Scripted) -> None:
    server.answers(problem(403, "forbidden"))
    with pytest.raises(Problem):
        taken(server, 1)


def test_pauses_grow_while_nothing_comes_and_are_short_again_after_it_does(server: Scripted) -> None:
    pauses: list[float] = []
    server.answers(*[problem(503, "unavailable")] * 8, stream(block(1)), stream(block(2)))
    found = follow(Transport(server.url, None), after=0, pause=pauses.append)
    assert [event.id for event in islice(found, 2)] == [1, 2]
    assert max(pauses[:8]) <= 7.5
    assert pauses[7] > pauses[0]
    assert pauses[8] < 0.2

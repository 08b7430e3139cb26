"""Bodies are bounded in bytes, in what they hold and in time, and large ones let others be answered meanwhile."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest
from starlette.requests import Request
from starlette.types import Message

from fairpool.server import sent_bodies
from fairpool.server.endpoints import OPEN_BODY, SMALL_BODY, body_limit
from fairpool.server.problems import Refused
from fairpool.server.routes import ENDPOINTS
from fairpool.server.sent_bodies import MAX_VALUES, SentBody

LARGEST = 16 * 2**20


class Slow:
    """What a client sends, piece by piece; it never says that it is at the end where `ends` is not set."""

    def __init__(self, *pieces: bytes, ends: bool = True) -> None:
        self._waiting: list[Message] = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
        if ends:
            self._waiting.append({"type": "http.request", "body": b"", "more_body": False})

    async def __call__(self) -> Message:
        if not self._waiting:
            await asyncio.Event().wait()
        return self._waiting.pop(0)


def sent(*pieces: bytes, ends: bool = True, limit: int = LARGEST) -> SentBody:
    scope = {"type": "http", "method": "POST", "headers": [(b"content-type", b"application/json")]}
    return SentBody(Request(scope, Slow(*pieces, ends=ends)), limit=limit, lane=asyncio.Lock())


def refused(body: SentBody) -> Any:
    with pytest.raises(Refused) as caught:
        asyncio.run(body.read(lambda value: value))
    return caught.value.problem


def test_a_body_in_pieces_is_put_together() -> None:
    assert asyncio.run(sent(b'{"a"', b": 1}").read(lambda value: value)) == ({"a": 1}, {"a": 1})


def test_a_body_that_does_not_come_to_an_end_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sent_bodies, "BODY_S", 0.01)
    problem = refused(sent(b'{"a"', ends=False))
    assert (problem.type, problem.detail) == ("malformed-body", "the body did not come within 0.01 s")


def test_a_body_of_too_many_values_is_refused_before_they_are_made() -> None:
    problem = refused(sent(b"[" + b"[]," * MAX_VALUES + b"1]"))
    assert (problem.type, problem.numbers["limit"]) == ("body-too-large", MAX_VALUES)


def test_one_of_many_pieces_is_refused_without_a_length_said_beforehand() -> None:
    problem = refused(sent(*[b" " * 1000] * 20, limit=5_000))
    assert problem.type == "body-too-large" and problem.numbers["limit"] == 5_000


def test_what_is_large_is_read_on_another_thread_and_what_is_small_at_once() -> None:
    def where(_: object) -> int:
        return threading.get_ident()

    here = threading.get_ident()
    assert asyncio.run(sent(b'{"a": 1}').read(where))[1] == here
    assert asyncio.run(sent(json.dumps({"a": "b" * 100_000}).encode()).read(where))[1] != here


def test_only_calls_about_many_things_may_be_large_and_those_that_anybody_may_make_are_small() -> None:
    limits = {name: body_limit(endpoint, LARGEST) for name, endpoint in ENDPOINTS.items()}
    assert {name for name, limit in limits.items() if limit == LARGEST} == {
        "request_bulk",
        "lease_bulk",
        "plan",
        "apply",
    }
    assert {limits[name] for name, endpoint in ENDPOINTS.items() if endpoint.is_open} == {OPEN_BODY}
    assert limits["request_create"] == SMALL_BODY
    assert body_limit(ENDPOINTS["request_bulk"], 100) == body_limit(ENDPOINTS["pool_create"], 100) == 100

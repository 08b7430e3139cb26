"""Calls whose headers are wrong: who asks, under which name, what the body is said to be, which version is meant."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fairpool.wire.problems import MEDIA_TYPE
from tests.integration.serving import Caller, serving

Row = tuple[str, str, dict[str, str], int, str, str, str]

POOL = {"name": "new"}
ASK = {"demand": {"gpu": 1}, "idempotency_key": "one"}

# fmt: off
ROWS: list[Row] = [
    ("no token", "GET /pools", {"Authorization": ""}, 401, "unauthenticated", "", "the call carries no token"),
    ("wrong token", "GET /pools", {"Authorization": "Bearer x"}, 401, "unauthenticated", "", "FAIRPOOL_TOKEN"),
    ("another kind of token", "GET /pools", {"Authorization": "Basic eDp4"}, 401, "unauthenticated", "", "send it"),
    ("wrong token, unknown route", "GET /nope", {"Authorization": "Bearer x"}, 401, "unauthenticated", "", "token"),
    ("wrong token with a creation", "POST /pools", {"Authorization": "Bearer x"}, 401, "unauthenticated", "", "token"),
    ("another host", "GET /pools", {"Host": "evil.example"}, 421, "wrong-host", "", "127.0.0.1, [::1], localhost"),
    ("no host", "GET /pools", {"Host": ""}, 421, "wrong-host", "", "call it by one of"),
    ("text", "POST /pools", {"Content-Type": "text/plain"}, 415, "unsupported-media-type", "", "'text/plain'"),
    ("YAML", "POST /pools", {"Content-Type": "text/yaml"}, 415, "unsupported-media-type", "", "application/json"),
    ("a form", "POST /pools", {"Content-Type": "application/x-www-form-urlencoded"}, 415, "unsupported-media-type", "",
     "application/json"),
    ("another charset", "POST /pools", {"Content-Type": "application/json; charset=latin-1"}, 415,
     "unsupported-media-type", "", "'latin-1'"),
    ("packed", "POST /pools", {"Content-Encoding": "gzip"}, 415, "unsupported-media-type", "", "'gzip'"),
    ("version without quotes", "PATCH /pools/gpus", {"If-Match": "7"}, 422, "invalid-input", "If-Match", "no version"),
    ("version in words", "PATCH /pools/gpus", {"If-Match": '"new"'}, 422, "invalid-input", "If-Match", "no version"),
    ("two versions", "PATCH /pools/gpus", {"If-Match": '"1", "2"'}, 422, "invalid-input", "If-Match", "no version"),
    ("stale version", "PATCH /pools/gpus", {"If-Match": '"7"'}, 412, "stale", "", "at version 1, not 7"),
    ("empty key", "POST /requests", {"Idempotency-Key": ""}, 422, "invalid-input", "Idempotency-Key", "1 to 200"),
    ("key of 201 characters", "POST /requests", {"Idempotency-Key": "x" * 201}, 422, "invalid-input", "Idempotency-Key",
     "it has 201 characters"),
    ("two keys", "POST /requests", {"Idempotency-Key": "two"}, 422, "invalid-input", "idempotency_key", "in both"),
    ("event", "GET /events", {"Last-Event-ID": "last"}, 422, "invalid-input", "Last-Event-ID", "'last' is no event id"),
]
# fmt: on


@pytest.fixture(scope="module")
def call(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    with serving(tmp_path_factory.mktemp("headers")) as call:
        call.ok("POST", "/pools", {"name": "gpus", "capacity": {"gpu": 1}})
        yield call


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_wrong_header_is_refused_and_changes_nothing(call: Caller, row: Row) -> None:
    _, route, headers, status, slug, field, words = row
    method, _, path = route.partition(" ")
    body = {"POST": ASK if path == "/requests" else POOL, "PATCH": {"backfill": False}}.get(method)
    before = call.ok("GET", "/history?limit=1")
    answer = call(method, path, body, headers=headers)
    assert (answer.status, answer.json["type"], answer.headers["content-type"]) == (status, slug, MEDIA_TYPE)
    assert [error["field"] for error in answer.json.get("errors", [])] == ([field] if field else [])
    assert words in answer.json["detail"] + answer.json.get("help", "")
    assert call.ok("GET", "/history?limit=1") == before
    assert call.ok("GET", "/requests?view=all")["items"] == []


def test_refusals_carry_the_headers_that_programs_look_for(call: Caller) -> None:
    assert call("GET", "/pools", headers={"Authorization": ""}).headers["www-authenticate"].startswith("Bearer")
    assert call("PUT", "/pools", {}).headers["allow"] == "GET, POST"
    assert call("PATCH", "/pools/gpus", {}, headers={"If-Match": '"7"'}).etag == '"1"'
    key = {"Idempotency-Key": "one"}
    call.ok("POST", "/requests:check", ASK)
    assert call("POST", "/runs", {"name": "r"}, headers=key).status == 201
    again = call("POST", "/runs", {"name": "another"}, headers=key)
    assert (again.status, again.json["type"]) == (409, "idempotency-key-reused")


def test_what_is_no_http_is_refused_before_anything_reads_it(call: Caller) -> None:
    odd = call("GET", "/pools", headers={"X-Odd": "\x07"})
    assert (odd.status, call("BREW", "/pools").status) == (400, 400)
    assert call.ok("GET", "/pools")["items"][0]["name"] == "gpus"

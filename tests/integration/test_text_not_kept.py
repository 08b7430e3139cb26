"""A NUL, which SQLite keeps and PostgreSQL does not: refused where people type it, told as U+FFFD where a program
reports how it went. On either database the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fairpool.wire.runs import RunUpdate, StepUpdate
from tests.integration.serving import Caller, serving

INVALID = (422, "invalid-input")


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def call(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    database = []
    if request.param == "postgres":
        database = ["--database-url", request.getfixturevalue("postgres_cluster").new_database()]
    with serving(tmp_path_factory.mktemp("server"), *database) as caller:
        caller.ok("POST", "/pools", {"name": "gpus", "capacity": {"gpu": 1}})
        caller.ok("POST", "/policies", {"pool": "gpus", "subject": "team:red"})
        yield caller


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/pools", {"name": "a\0"}, "name"),
        ("/pools", {"name": "a", "description": "a\0b"}, "description"),
        ("/components", {"name": "a", "kind": "orchestrator", "config": {"x": [{"y": "a\0b"}]}}, "config.x.0.y"),
        ("/components", {"name": "a", "kind": "orchestrator", "config": {"a\0b": 1}}, "config.a\\x00b"),
        ("/requests", {"demand": {"gpu": 1}, "subjects": ["team:red"], "name": "a\0b"}, "name"),
        ("/requests", {"demand": {"gpu": 1}, "subjects": ["team:red"], "labels": {"a": "\0"}}, "labels.a"),
        ("/requests", {"demand": {"gpu": 1}, "subjects": ["team:red"], "retry_of": "\0"}, "retry_of"),
        ("/requests:bulk", {"requests": [{"demand": {"gpu": 1}, "subjects": ["a\0"]}]}, "requests.0.subjects.0"),
        ("/runs", {"name": "a", "stack": "a\0"}, "stack"),
        ("/apply", {"documents": [{"kind": "pool", "name": "a", "labels": {"x": "\0"}}]}, "documents.0.labels.x"),
        ("/tokens", {"name": "a", "owner": "user:\0"}, "owner"),
    ],
)
def test_what_people_type_is_refused_by_its_field(call: Caller, path: str, body: object, field: str) -> None:
    refused = call("POST", path, body)
    assert (refused.status, refused.json["type"]) == INVALID, refused.json
    assert [problem["field"] for problem in refused.json["errors"]] == [field]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("/history?named=%00", "named"),
        ("/history?actor=a%00", "actor"),
        ("/requests?label=a=%00", "label"),
        ("/runs?name=%00", "name"),
        ("/events?object=%00", "object"),
        ("/policies?pool=%00", "pool"),
    ],
)
def test_what_is_asked_for_is_refused_by_its_parameter(call: Caller, query: str, field: str) -> None:
    refused = call("GET", query)
    assert (refused.status, refused.json["type"]) == INVALID, refused.json
    assert [problem["field"] for problem in refused.json["errors"]] == [field]


@pytest.mark.parametrize("path", ["/pools/a%00", "/runs/a%00", "/steps/%00", "/requests/%00/history", "/queues/a%00"])
def test_no_name_holds_it(call: Caller, path: str) -> None:
    refused = call("GET", path)
    assert (refused.status, refused.json["type"]) == (404, "unknown-route")


def test_a_failure_is_known_whatever_its_report_holds(call: Caller) -> None:
    told = "ValueError: bad byte \0 in\nline 2 \x1b[31m"
    run = call.ok("POST", "/runs", {"name": "r"})["id"]
    step = call.ok("POST", f"/runs/{run}/steps", {"name": "s"})["id"]
    call.ok("PATCH", f"/steps/{step}", {"status": "failed", "error": told})
    call.ok("PATCH", f"/runs/{run}", {"status": "failed", "error": told})
    kept = call.ok("GET", f"/runs/{run}")
    assert (kept["status"], kept["error"]) == ("failed", told.replace("\0", "\ufffd"))
    assert (kept["steps"][0]["status"], kept["steps"][0]["error"]) == ("failed", told.replace("\0", "\ufffd"))


def test_half_a_character_is_sent_as_one_that_can_be() -> None:
    """What Python makes of a file name that is no UTF-8."""
    for update in (RunUpdate(error="no file \udcff\0"), StepUpdate(error="no file \udcff\0")):
        assert update.error == "no file \ufffd\ufffd"
        assert "\ufffd" in update.model_dump_json()

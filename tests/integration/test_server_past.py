"""The past over HTTP: who changed what, and how everything was at a moment."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.integration.serving import Caller, serving


@pytest.fixture
def call(tmp_path: Path) -> Iterator[Caller]:
    with serving(tmp_path) as caller:
        yield caller


def test_pools_policies_and_requests_are_shown_as_they_were(call: Caller) -> None:
    call.ok("POST", "/pools", {"name": "gpus", "capacity": {"gpu": 8}})
    call.ok("POST", "/policies", {"pool": "gpus", "subject": "team:red", "reserved": {"gpu": 2}})
    held = call.ok("POST", "/requests", {"subjects": ["team:red"], "demand": {"gpu": 6}})
    call.ok("POST", "/requests", {"subjects": ["team:red"], "demand": {"gpu": 4}})
    (newest, *_) = call.ok("GET", "/history")["items"]
    at = quote(newest["at"])
    pool, policies = call.ok("GET", "/pools/gpus"), call.ok("GET", "/policies")["items"]
    before = call.ok("GET", "/requests")["items"]
    call.ok("POST", f"/requests/{held['id']}/release", {})
    call.ok("PATCH", "/pools/gpus", {"name": "big", "capacity": {"gpu": 16}})
    call.ok("DELETE", "/pools/big?on_work=let-go")
    assert call.ok("GET", "/pools")["items"] == []
    then = call.ok("GET", f"/pools/gpus?at={at}")
    for name in ("name", "capacity", "used", "free", "reserved", "borrowed", "queued", "active", "state"):
        assert then[name] == pool[name], name
    assert [each["used"] for each in call.ok("GET", f"/policies?at={at}")["items"]] == [policies[0]["used"]]
    assert [(each["id"], each["status"]) for each in call.ok("GET", f"/requests?at={at}")["items"]] == [
        (each["id"], each["status"]) for each in before
    ]
    assert [each["status"] for each in call.ok("GET", f"/requests?view=active&at={at}")["items"]] == ["allocated"]
    assert call("GET", "/pools/gpus").status == 404


def test_a_moment_says_its_zone_and_has_passed(call: Caller) -> None:
    for at in ("2026-11-21T08:00:00", "yesterday", "9999-01-01T00:00:00Z"):
        refused = call("GET", f"/pools?at={at}")
        assert (refused.status, refused.json["errors"][0]["field"]) == (422, "at")
    assert call.ok("GET", "/pools?at=2001-01-01T00:00:00Z")["items"] == []


def test_the_history_of_rules_says_who_when_from_where_before_and_after(call: Caller) -> None:
    call.ok("POST", "/pools", {"name": "gpus", "capacity": {"gpu": 8}, "description": "old"})
    call.ok("PATCH", "/pools/gpus", {"name": "big", "description": "new"})
    call.ok("POST", "/policies", {"pool": "big", "subject": "team:red"})
    call.ok("POST", "/requests", {"subjects": ["team:red"], "demand": {"gpu": 6}})
    found = call.ok("GET", "/history?rules=true&kind=pool&named=gpus")["items"]
    assert [entry["what"] for entry in found] == ["description, name changed", "created"]
    changed = found[0]
    assert (changed["before"], changed["after"]) == (
        {"name": "gpus", "description": "old"},
        {"name": "big", "description": "new"},
    )
    assert (changed["actor"], changed["source"]) == ("local", "127.0.0.1")
    assert {entry["kind"] for entry in call.ok("GET", "/history?rules=true")["items"]} <= {
        "pool", "policy", "component", "stack", "settings"
    }  # fmt: skip
    assert call.ok("GET", "/history?actor=user:nobody")["items"] == []
    late = quote(found[0]["at"])
    assert [entry["kind"] for entry in call.ok("GET", f"/history?rules=true&since={late}")["items"]] == [
        "policy",
        "pool",
    ]
    assert call.ok("GET", f"/history?kind=pool&until={quote(found[1]['at'])}")["items"] == []

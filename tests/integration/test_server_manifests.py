"""Documents over HTTP: a real server, a real database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet

from fairpool.wire.manifests import schemas
from fairpool.wire.routes import API
from tests.documents import FULL
from tests.integration.serving import Caller, begin, end, serving

POOL = {"kind": "pool", "name": "gpus", "capacity": {"gpu": 8}}
RED = {"kind": "policy", "pool": "gpus", "subject": "team:red", "reserved": {"gpu": 2}}


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Caller]:
    monkeypatch.setenv("FAIRPOOL_VAULT_KEY", Fernet.generate_key().decode())
    with serving(tmp_path) as caller:
        yield caller


def planned(call: Caller, *documents: object, **said: object) -> Any:
    return call.ok("POST", "/plan", {"documents": list(documents), **said})


def test_a_plan_changes_nothing_and_is_carried_out_with_what_it_rests_on(call: Caller) -> None:
    plan = planned(call, RED, POOL)
    assert [(change["action"], change["kind"], change["document"]) for change in plan["changes"]] == [
        ("create", "pool", 1),
        ("create", "policy", 0),
    ]
    assert call.ok("GET", "/pools")["items"] == []
    done = call.ok("POST", "/apply", {"documents": [RED, POOL], "expected": plan["expected"]})
    assert done["applied"] is True
    assert call.ok("GET", "/pools/gpus")["policies"][0]["reserved"] == {"gpu": 2}


def test_the_same_call_again_finds_everything_done(call: Caller) -> None:
    """A client that has not heard the answer asks again with what its plan rested on."""
    plan = planned(call, RED, POOL)
    body = {"documents": [RED, POOL], "expected": plan["expected"]}
    call.ok("POST", "/apply", body)
    again = call.ok("POST", "/apply", body)
    assert (again["applied"], again["changes"], again["unchanged"]) == (False, [], 2)
    assert call.ok("GET", "/pools/gpus")["version"] == 1


def test_what_has_changed_since_the_plan_is_a_conflict_that_changes_nothing(call: Caller) -> None:
    call.ok("POST", "/apply", {"documents": [POOL]})
    plan = planned(call, {**POOL, "placement": "spread"}, RED)
    call.ok("PATCH", "/pools/gpus", {"capacity": {"gpu": 4}})
    body = {"documents": [{**POOL, "placement": "spread"}, RED], "expected": plan["expected"]}
    refused = call("POST", "/apply", body)
    assert (refused.status, refused.json["type"]) == (409, "conflict")
    assert "pool 'gpus' has changed" in refused.json["detail"]
    assert call.ok("GET", "/policies")["items"] == []


def test_every_document_that_is_wrong_is_named_by_its_place(call: Caller) -> None:
    refused = call(
        "POST",
        "/apply",
        {"documents": [{**POOL, "capacty": 1}, {"kind": "polcy"}, {**RED, "reserved": {"gpu": -1}}, POOL, POOL]},
    )
    assert refused.status == 422
    assert [problem["field"] for problem in refused.json["errors"]] == [
        "documents.0.capacty",
        "documents.1.kind",
        "documents.2.reserved.gpu",
        "documents.4",
    ]
    refused = call("POST", "/apply", {"documents": [POOL, {**RED, "reserved": {"gpu": 9}}]})
    assert (refused.status, refused.json["type"]) == (422, "invalid-rules")
    assert [problem["field"] for problem in refused.json["errors"]] == ["documents.1.reserved.gpu"]
    refused = call("POST", "/apply", {"documents": [], "prune": True, "kinds": ["pols"]})
    assert (refused.status, refused.json["errors"][0]["field"]) == (422, "kinds.0")
    assert call.ok("GET", "/pools")["items"] == []


def test_what_was_applied_and_whose_it_is_survive_a_restart(tmp_path: Path) -> None:
    call = begin(tmp_path)
    call.ok("POST", "/apply", {"documents": [POOL, RED], "set": "mine"})
    end(tmp_path)
    with serving(tmp_path) as again:
        assert planned(again, POOL, RED, set="mine")["changes"] == []
        pruned = planned(again, POOL, set="mine", prune=True)
        assert [(change["action"], change["name"]) for change in pruned["changes"]] == [("delete", "gpus/team:red")]
        refused = again("POST", "/apply", {"documents": [{**POOL, "backfill": False}]})
        assert (refused.status, refused.json["errors"][0]["field"]) == (409, "documents.0")


def test_what_it_does_to_work_is_said_before_and_happens_after(call: Caller) -> None:
    call.ok("POST", "/apply", {"documents": [POOL, RED, {**RED, "subject": "team:blue"}]})
    lent = call.ok("POST", "/requests", {"subjects": ["team:blue"], "demand": {"gpu": 7}, "name": "sweep"})
    waits = call.ok("POST", "/requests", {"subjects": ["team:red"], "demand": {"gpu": 4}, "name": "train"})
    more = {**RED, "reserved": {"gpu": 6}}
    (effect,) = planned(call, more)["effects"]
    assert (effect["outcome"], effect["count"], effect["requests"][0]["id"]) == ("evicted", 1, lent["id"])
    assert effect["requests"][0]["why"] == "reclaim for request train"
    assert call.ok("GET", f"/requests/{lent['id']}")["status"] == "allocated"
    call.ok("POST", "/apply", {"documents": [more]})
    assert call.ok("GET", f"/requests/{lent['id']}")["status"] == "preempting"
    assert call.ok("GET", f"/requests/{waits['id']}")["status"] == "queued"


@pytest.mark.parametrize("kind", FULL)
def test_what_the_server_shows_of_an_object_can_be_applied_again_unchanged(call: Caller, kind: str) -> None:
    call.ok("POST", "/apply", {"documents": list(FULL.values())})
    name = "service-accounts" if kind == "service-account" else f"{kind}s" if kind != "policy" else "policies"
    listed = call.ok("GET", f"/{name}")["items"]
    whole = [call.ok("GET", f"/{name}/{one['id']}") for one in listed]
    for shown in (listed, whole):
        plan = planned(call, *shown)
        assert (plan["changes"], plan["unchanged"]) == ([], len(listed)), "and it says what kind it is"


def test_the_schemas_that_are_published_are_those_that_the_program_writes(call: Caller) -> None:
    index = call.ok("GET", "/schemas")["items"]
    assert [item["kind"] for item in index] == list(schemas.names())
    for item in index:
        assert call.ok("GET", item["url"].removeprefix(API)) == schemas.named(item["kind"])
    missing = call("GET", "/schemas/polcy")
    assert (missing.status, missing.json["type"]) == (404, "not-found")
    assert "'policy'" in missing.json["help"]


def acting_as(call: Caller, name: str, role: str) -> Caller:
    """Calls as a user of that role."""
    call.ok("POST", "/users", {"name": name, "role": role})
    token = call.ok("POST", "/tokens", {"name": "test", "owner": f"user:{name}"})["token"]
    return Caller(call.url, token)


def test_applying_needs_the_right_to_do_the_same_by_itself_and_planning_only_the_right_to_look(call: Caller) -> None:
    user = {"kind": "user", "name": "bob"}
    operator, viewer = acting_as(call, "olga", "operator"), acting_as(call, "vera", "viewer")
    assert len(planned(viewer, POOL, user)["changes"]) == 2
    assert viewer("POST", "/apply", {"documents": [POOL]}).status == 403
    refused = operator("POST", "/apply", {"documents": [POOL, user]})
    assert (refused.status, refused.json["type"]) == (403, "forbidden")
    assert refused.json["detail"] == "the role operator does not cover: create user 'bob'; nothing was changed"
    assert call.ok("GET", "/pools")["items"] == []
    operator.ok("POST", "/apply", {"documents": [POOL]})
    (entry,) = call.ok("GET", "/history?kind=pool")["items"]
    assert entry["actor"] == "user:olga"
    assert acting_as(call, "mia", "member")("POST", "/plan", {"documents": [POOL]}).status == 403

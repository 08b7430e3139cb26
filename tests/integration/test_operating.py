"""What those who operate a server are told: metrics that add up to what happened, readiness, a log without secrets."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fairpool.server.metric_families import FAMILIES
from fairpool.wire import local_server
from tests.integration.serving import Caller, begin, end, serving

Series = Mapping[tuple[str, frozenset[tuple[str, str]]], float]


def scraped(call: Caller) -> Series:
    answer = call("GET", "//metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.body.decode())
        for sample in family.samples
    }


def value(series: Series, name: str, **labels: str) -> float | None:
    return series.get((name, frozenset({"workspace": "default", **labels}.items())))


def ask(gpus: float, team: str, **fields: object) -> dict[str, object]:
    return {"demand": {"gpu": gpus}, "subjects": [f"team:{team}"], "pool": "gpus", "lease_s": 600, **fields}


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    """Four GPUs; red borrows all, blue calls two of them in, a third waits, a fourth is impossible, one goes."""
    with serving(tmp_path_factory.mktemp("metrics")) as call:
        call.ok("POST", "/pools", {"name": "gpus", "capacity": {"gpu": 4}})
        call.ok("POST", "/policies", {"pool": "gpus", "subject": "team:red", "reserved": {"gpu": 1}, "grace_s": 600})
        call.ok("POST", "/policies", {"pool": "gpus", "subject": "team:blue", "reserved": {"gpu": 2}, "grace_s": 0})
        call.ok("POST", "/profiles", {"name": "duo", "demand": {"gpu": 2}, "pools": ["gpus"]})
        red = [call.ok("POST", "/requests", ask(2, "red")) for _ in range(2)]
        blue = call.ok("POST", "/requests", {"profile": "duo", "subjects": ["team:blue"], "lease_s": 600})
        assert blue["status"] == "queued"
        call.ok("POST", f"/requests/{red[1]['id']}/release")
        assert call.ok("GET", f"/requests/{red[1]['id']}")["status"] == "preempted"
        assert call.ok("GET", f"/requests/{blue['id']}")["status"] == "allocated"
        for _ in range(3):
            assert call.ok("POST", "/requests", ask(1, "red"))["status"] == "queued"
        assert call.ok("POST", "/requests", ask(9, "red"))["status"] == "rejected"
        cancelled = call.ok("POST", "/requests", ask(3, "blue"))
        call.ok("POST", f"/requests/{cancelled['id']}/cancel")
        yield call


def test_pools_and_policies_are_counted_as_the_books_say(story: Caller) -> None:
    found = scraped(story)
    told = {
        side: value(found, f"fairpool_pool_{side}", pool="gpus", key="gpu")
        for side in ("capacity", "used", "free", "reserved", "borrowed")
    }
    assert told == {"capacity": 4, "used": 4, "free": 0, "reserved": 3, "borrowed": 2}
    shares = {
        (team, side): value(found, f"fairpool_policy_{side}", pool="gpus", policy=f"team:{team}", key="gpu")
        for team in ("red", "blue")
        for side in ("used", "reserved", "borrowed")
    }
    assert shares == {
        ("red", "used"): 2,
        ("red", "reserved"): 1,
        ("red", "borrowed"): 2,
        ("blue", "used"): 2,
        ("blue", "reserved"): 2,
        ("blue", "borrowed"): None,
    }
    assert value(found, "fairpool_requests", status="queued") == 3
    assert value(found, "fairpool_requests", status="active") == 2


def test_queues_are_counted_by_pool_policy_and_profile_with_the_oldest_wait(story: Caller) -> None:
    found = scraped(story)
    where = {"pool": "gpus", "policy": "team:red", "profile": ""}
    assert value(found, "fairpool_queue_depth", **where) == 3
    first = value(found, "fairpool_queue_oldest_wait_seconds", **where)
    assert first is not None
    assert first > 0
    later = value(scraped(story), "fairpool_queue_oldest_wait_seconds", **where)
    assert later is not None
    assert later > first
    assert len([name for name, _ in found if name == "fairpool_queue_depth"]) == 1


def test_what_was_decided_is_counted_exactly(story: Caller) -> None:
    found = scraped(story)
    assert value(found, "fairpool_requests_submitted_total") == 8
    red = {"pool": "gpus", "policy": "team:red", "profile": ""}
    blue = {"pool": "gpus", "policy": "team:blue", "profile": "duo"}
    assert value(found, "fairpool_grants_total", **red) == 2
    assert value(found, "fairpool_grants_total", **blue) == 1
    assert value(found, "fairpool_grant_wait_seconds_count", **blue) == 1
    assert value(found, "fairpool_grant_latency_seconds_count") == 2
    assert value(found, "fairpool_evictions_total", pool="gpus", reason="reclaim") == 1
    assert value(found, "fairpool_rejections_total", code="EXCEEDS_POOL_CAPACITY") == 1
    ended = {status: value(found, "fairpool_requests_ended_total", status=status) for status in _FINAL}
    assert ended == {"preempted": 1, "rejected": 1, "cancelled": 1, "released": None, "expired": None}
    decisions = value(found, "fairpool_decisions_total")
    assert decisions is not None
    assert value(found, "fairpool_decision_duration_seconds_count") == decisions
    commits = value(found, "fairpool_commit_duration_seconds_count")
    assert commits is not None
    assert 12 <= commits <= decisions


_FINAL = ("preempted", "rejected", "cancelled", "released", "expired")


def test_calls_are_counted_by_route_and_status(story: Caller) -> None:
    before = scraped(story)
    story("GET", "/pools")
    story("GET", "/pools/nowhere")
    story("GET", "/unheard-of/../of")
    after = scraped(story)

    def more(route: str, status: str, workspace: str = "default") -> float:
        labels = {"workspace": workspace, "method": "GET", "route": route, "status": status}
        key = ("fairpool_http_requests_total", frozenset(labels.items()))
        return after.get(key, 0) - before.get(key, 0)

    assert more("/api/v1/pools", "200") == 1
    assert more("/api/v1/pools/{ref}", "404") == 1
    assert more("none", "404", workspace="") == 1


def test_what_a_caller_asked_to_wait_is_no_slowness(story: Caller) -> None:
    queued = story.ok("GET", "/requests?view=queued")["items"][0]
    story.ok("GET", f"/requests/{queued['id']}?wait_s=0.6")
    labels = frozenset({"workspace": "default", "method": "GET", "route": "/api/v1/requests/{id}"}.items())
    found = scraped(story)
    total = found[("fairpool_http_request_duration_seconds_sum", labels)]
    assert total < 0.5


def test_every_metric_is_one_of_the_table_or_of_the_process(story: Caller) -> None:
    text = story("GET", "//metrics").body.decode()
    named = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE ")}
    assert {name for name in named if not name.startswith("process_")} <= set(FAMILIES)
    helped = {line.split()[2] for line in text.splitlines() if line.startswith("# HELP ")}
    assert helped == named


def test_no_label_says_who_asked(story: Caller) -> None:
    names = {label for _, labels in scraped(story) for label, _ in labels}
    assert names <= {label for family in FAMILIES.values() for label in family.labels} | {"le"}
    assert not names & {"user", "request", "run", "actor", "token"}


def test_readiness_is_told_check_by_check_and_to_anybody(story: Caller) -> None:
    answer = story("GET", "//readyz", headers={"Authorization": ""})
    assert answer.status == 200
    assert answer.json["ready"] is True
    assert [(check["name"], check["holds"]) for check in answer.json["checks"]] == [
        ("serving", True),
        ("database", True),
        ("schema", True),
        ("scheduler", True),
    ]


SECRETS = {"labels": {"customer": "label-secret-1"}, "name": "name-secret-2"}


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_token_label_name_or_key_gets_into_the_log_however_chatty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setenv("FAIRPOOL_LOG_LEVEL", "debug")
    call = begin(tmp_path, "--log-format", form)
    try:
        call.ok("POST", "/pools", {"name": "gpus", "capacity": {"gpu": 1}})
        call.ok("POST", "/policies", {"pool": "gpus", "subject": "team:red"})
        key = {"Idempotency-Key": "key-secret-3"}
        made = call.ok("POST", "/requests", ask(1, "red", **SECRETS), headers=key)
        call("POST", "/requests", ask(1, "red", labels={"a": 7, "label-secret-4": "b"}))
        call("POST", "/requests", b'{"name": "name-secret-5"')
        call("GET", "/requests?label=x=label-secret-6")
        call("GET", "/pools/ref-secret-7")
        call("GET", "/pools?limit=query-secret-8")
        call("GET", "/pools", headers={"Authorization": "Bearer token-secret-9"})
        call.ok("POST", f"/requests/{made['id']}/release", {"reason": "reason-secret-10"})
    finally:
        end(tmp_path)
    log = (tmp_path / local_server.LOG_FILE).read_text()
    assert call.token not in log
    assert "secret" not in log
    lines = [line for line in log.splitlines() if "/api/v1/requests/{id}/release" in line]
    assert len(lines) == 1
    if form == "json":
        parsed = [json.loads(line) for line in log.splitlines()]
        told = next(entry for entry in parsed if entry.get("route") == "/api/v1/requests/{id}/release")
        assert (told["method"], told["status"], told["actor"], told["workspace"]) == ("POST", 200, "local", "default")
        assert told["request_id"]

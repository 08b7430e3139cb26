"""What callers do with a server, over a real socket and a real file: ask, wait, hold, let go, look back."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import urllib3

from tests.integration.serving import Caller, begin, end, serving
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def call(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    with serving(tmp_path_factory.mktemp("flow")) as call:
        yield call


@pytest.fixture
def pool(call: Caller, request: pytest.FixtureRequest) -> Iterator[str]:
    """A pool of four GPUs with two teams, by a name of its own for each test."""
    name = f"p{abs(hash(request.node.name)) % 10**9}"
    call.ok("POST", "/pools", {"name": name, "capacity": {"gpu": 4}})
    for team in ("red", "blue"):
        call.ok("POST", "/policies", {"pool": name, "subject": f"team:{team}", "reserved": {"gpu": 2}, "grace_s": 60})
    yield name
    call.ok("DELETE", f"/pools/{name}?on_work=let-go")


def ask(pool: str, gpus: float = 1, team: str = "red", **fields: object) -> dict[str, object]:
    return {"demand": {"gpu": gpus}, "subjects": [f"team:{team}"], "pool": pool, "lease_s": 600, **fields}


def test_a_request_is_granted_held_and_released(call: Caller, pool: str) -> None:
    made = call("POST", "/requests", ask(pool, 2, name="train", labels={"model": "m"}))
    assert made.status == 201
    assert made.json["status"] == "allocated"
    assert made.json["demand"] == {"gpu": 2, "step_run": 1}
    assert [device["index"] for device in made.json["allocation"]["parts"][0]["devices"]] == [0, 1]
    assert made.json["allocation"]["in_share"] is True
    released = call.ok("POST", f"/requests/{made.json['id']}/release")
    assert (released["status"], released["allocation"]["pool"]) == ("released", pool)
    seen = call("GET", f"/requests/{made.json['id']}")
    assert (seen.json["status"], seen.etag) == ("released", f'"{seen.json["version"]}"')
    history = call.ok("GET", f"/requests/{made.json['id']}/history")["items"]
    assert [entry["what"] for entry in history] == ["released", "allocated", "queued"]


def test_a_policy_over_several_pools_is_attached_shown_moved_and_told_of(call: Caller, pool: str) -> None:
    other = f"{pool}-b"
    call.ok("POST", "/pools", {"name": other, "capacity": {"gpu": 4}})
    body = {"pool": other, "also": [pool], "subject": "team:wide", "limit": {"gpu": 5}, "grace_s": 60}
    made = call.ok("POST", "/policies", body)
    assert (made["pool"], made["also"]) == (other, [pool])
    refused = call("POST", "/policies", {**body, "subject": "team:twice", "also": [other]})
    assert (refused.status, refused.json["errors"][0]["field"]) == (422, "also")
    held = [call.ok("POST", "/requests", ask("", gpus, "wide")) for gpus in (4, 1)]
    assert [one["allocation"]["pool"] for one in held] == [other, pool]
    waits = call.ok("POST", "/requests", ask("", 1, "wide"))
    told = call.ok("GET", f"/requests/{waits['id']}/explain")
    assert f"limit of 5 gpu on pools {other} and {pool} together" in told["summary"]
    assert call.ok("GET", f"/policies/{made['id']}")["used"]["gpu"] == 5
    listed = call.ok("GET", f"/policies?pool={pool}&subject=team:wide")["items"]
    assert [one["id"] for one in listed] == [made["id"]]
    moved = call.ok("PATCH", f"/policies/{made['id']}", {"also": [], "limit": {}})
    assert (moved["also"], moved["used"]["gpu"]) == ([], 4)  # what runs in the other pool counts no more
    for one in (*held, waits):
        call("POST", f"/requests/{one['id']}/release")
    call.ok("DELETE", f"/pools/{other}?on_work=let-go")


def test_amounts_keep_their_digits_all_the_way(call: Caller, pool: str) -> None:
    made = call("POST", "/requests", ask(pool, 0.25))
    assert b'"gpu":0.25' in made.body
    assert made.json["allocation"]["parts"][0]["devices"][0]["share"] == 0.25
    name = f"{pool}-huge"
    huge = call("POST", "/pools", b'{"name": "%s", "capacity": {"tokens": 999999999999999.125}}' % name.encode())
    assert b'"tokens":"999999999999999.125"' in huge.body
    call.ok("DELETE", f"/pools/{name}")


def test_a_caller_that_waits_is_told_when_its_turn_comes(call: Caller, pool: str) -> None:
    holder = call.ok("POST", "/requests", ask(pool, 4))
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(call.ok, "POST", "/requests?wait_s=60", ask(pool, 4))
        wait_until(lambda: call.ok("GET", f"/requests?view=queued&pool={pool}")["items"], what="the second to queue")
        call.ok("POST", f"/requests/{holder['id']}/release")
        assert waiting.result(timeout=90)["status"] == "allocated"


def test_a_poll_answers_at_once_when_the_caller_is_behind_and_after_its_wait_when_nothing_changes(
    call: Caller, pool: str
) -> None:
    call.ok("POST", "/requests", ask(pool, 4))
    queued = call.ok("POST", "/requests", ask(pool, 4))
    assert call.ok("GET", f"/requests/{queued['id']}?wait_s=60&after_version=0")["version"] == queued["version"]
    assert call.ok("GET", f"/requests/{queued['id']}?wait_s=0.05")["status"] == "queued"
    call.ok("POST", f"/requests/{queued['id']}/cancel", {"reason": "changed my mind"})
    assert call.ok("GET", f"/requests/{queued['id']}?wait_s=60")["status"] == "cancelled"


def test_an_eviction_reaches_its_owner_with_cause_and_deadline(call: Caller, pool: str) -> None:
    borrower = call.ok("POST", "/requests", ask(pool, 4))
    with ThreadPoolExecutor() as threads:
        path = f"/requests/{borrower['id']}?wait_s=60&after_version={borrower['version']}"
        told = threads.submit(call.ok, "GET", path)
        owner = call.ok("POST", "/requests", ask(pool, 2, "blue"))
        seen = told.result(timeout=90)
    assert (seen["status"], seen["eviction"]["because"], seen["eviction"]["cause"]) == (
        "preempting",
        "reclaim",
        owner["id"],
    )
    renewed = call.ok("POST", f"/requests/{borrower['id']}/renew")
    assert (renewed["status"], renewed["eviction"]["cause"]) == ("preempting", owner["id"])
    explained = call.ok("GET", f"/requests/{owner['id']}/explain")
    assert explained["evicting"] == [borrower["id"]]
    call.ok("POST", f"/requests/{borrower['id']}/release")
    assert call.ok("GET", f"/requests/{borrower['id']}")["status"] == "preempted"
    assert (
        call.ok("GET", f"/requests/{owner['id']}?wait_s=30&after_version={owner['version']}")["status"] == "allocated"
    )


def test_what_waits_is_explained_with_position_reasons_holders_and_help(call: Caller, pool: str) -> None:
    holder = call.ok("POST", "/requests", ask(pool, 3, name="holder"))
    waiting = call.ok("POST", "/requests", ask(pool, 3))
    explained = call.ok("GET", f"/requests/{waiting['id']}/explain")
    (candidate,) = explained["candidates"]
    assert (candidate["pool"], candidate["position"], candidate["ahead"]) == (pool, 1, 0)
    assert candidate["reasons"][0]["code"] == "POOL_FULL"
    assert (candidate["reasons"][0]["asked"], candidate["reasons"][0]["free"]) == (3, 1)
    assert [(held["request"], held["name"]) for held in candidate["holders"]] == [(holder["id"], "holder")]
    assert candidate["help"]
    assert pool in explained["summary"]


def test_an_estimate_says_when_between_when_and_what_it_rests_on(call: Caller, pool: str) -> None:
    """S37: nothing known, then a declared run time, each in words."""
    holder = call.ok("POST", "/requests", ask(pool, 3))
    unknown = call.ok("POST", "/requests:check", ask(pool, 3))["explanation"]["estimate"]
    assert (unknown["low"], unknown["about"], unknown["high"]) == (None, None, None)
    assert unknown["basis"] == f"nothing is known of how long request {holder['id']} takes; a max_runtime_s would tell"
    call.ok("POST", f"/requests/{holder['id']}/release")
    call.ok("POST", "/requests", ask(pool, 3, max_runtime_s=600))
    known = call.ok("POST", "/requests:check", ask(pool, 3))["explanation"]["estimate"]
    assert known["low"] == known["about"] == known["high"]
    assert known["basis"] == "running work takes all the time that it asked for (max_runtime_s)"
    waiting = call.ok("POST", "/requests", ask(pool, 3))
    told = call.ok("GET", f"/requests/{waiting['id']}/explain")["estimate"]
    assert told["about"] == known["about"]
    assert waiting["queued_at"] <= told["as_of"] < told["about"]


@pytest.mark.parametrize(("gpus", "verdict"), [(1, "now"), (4, "later"), (5, "never")])
def test_a_check_says_now_later_or_never_and_changes_nothing(call: Caller, pool: str, gpus: int, verdict: str) -> None:
    call.ok("POST", "/requests", ask(pool, 1))
    before = call.ok("GET", "/history?limit=1")["items"]
    assert call.ok("POST", "/requests:check", ask(pool, gpus))["verdict"] == verdict
    assert call.ok("POST", "/requests?dry_run=true", ask(pool, gpus))["verdict"] == verdict
    assert call.ok("GET", "/history?limit=1")["items"] == before


def test_what_can_never_run_is_rejected_with_a_reason_that_has_the_numbers(call: Caller, pool: str) -> None:
    made = call.ok("POST", "/requests", ask(pool, 5))
    assert made["status"] == "rejected"
    (reason,) = made["reasons"]
    assert (reason["code"], reason["asked"], reason["possible"]) == ("EXCEEDS_POOL_CAPACITY", 5, 4)
    assert "5 gpu" in reason["message"]
    assert call.ok("GET", f"/requests/{made['id']}/explain")["summary"].startswith("can never run")


def test_the_same_idempotency_key_returns_the_same_request_and_another_body_is_refused(call: Caller, pool: str) -> None:
    headers = {"Idempotency-Key": f"key-{pool}"}
    first = call.ok("POST", "/requests", ask(pool), headers=headers)
    with ThreadPoolExecutor() as threads:
        answers = list(threads.map(lambda _: call.ok("POST", "/requests", ask(pool), headers=headers)["id"], range(8)))
    assert set(answers) == {first["id"]}
    refused = call("POST", "/requests", ask(pool, 2), headers=headers)
    assert (refused.status, refused.json["type"]) == (409, "idempotency-key-reused")


def test_a_bulk_has_a_result_for_each_and_one_wrong_item_spoils_nothing(call: Caller, pool: str) -> None:
    given = [ask(pool), ask(pool, 1.5), ask("nowhere"), ask(pool), {**ask(pool), "idempotency_key": f"bulk-{pool}"}]
    items = call.ok("POST", "/requests:bulk", {"requests": given})["items"]
    assert [item["index"] for item in items] == [0, 1, 2, 3, 4]
    assert [item["request"] is not None for item in items] == [True, False, False, True, True]
    assert items[1]["problem"]["type"] == "invalid-input"
    assert items[2]["problem"]["type"] == "not-found"
    again = call.ok("POST", "/requests:bulk", {"requests": [given[4]]})["items"]
    assert again[0]["request"]["id"] == items[4]["request"]["id"]


def test_many_leases_are_renewed_at_once(call: Caller, pool: str) -> None:
    made = [call.ok("POST", "/requests", ask(pool, 1))["id"] for _ in range(3)]
    call.ok("POST", f"/requests/{made[2]}/release")
    result = call.ok("POST", "/requests:renew", {"requests": [*made, "nothing"]})
    assert {item["request"]: item["status"] for item in result["items"]} == {
        made[0]: "allocated",
        made[1]: "allocated",
        made[2]: "released",
    }
    assert result["missing"] == ["nothing"]


def test_a_lease_that_lapses_frees_what_it_held(call: Caller, pool: str) -> None:
    lost = call.ok("POST", "/requests", ask(pool, 4, lease_s=1))
    queued = call.ok("POST", "/requests", ask(pool, 4))
    assert (
        call.ok("GET", f"/requests/{queued['id']}?wait_s=30&after_version={queued['version']}")["status"] == "allocated"
    )
    assert call.ok("GET", f"/requests/{lost['id']}")["status"] == "expired"


@pytest.mark.parametrize(("order", "step"), [("newest", -1), ("oldest", 1)])
def test_lists_come_in_pages_that_miss_and_repeat_nothing(call: Caller, pool: str, order: str, step: int) -> None:
    made = [call.ok("POST", "/requests", ask(pool, 1, labels={"n": str(number % 2)}))["id"] for number in range(7)]
    found: list[str] = []
    path = f"/requests?pool={pool}&limit=3&order={order}"
    page = call.ok("GET", path)
    while True:
        found += [item["id"] for item in page["items"]]
        if page["next_cursor"] is None:
            break
        page = call.ok("GET", f"{path}&cursor={page['next_cursor']}")
    assert found == made[::step]
    labelled = call.ok("GET", f"/requests?pool={pool}&label=n=1")["items"]
    assert [item["id"] for item in labelled] == made[::-1][1::2]
    assert len(call.ok("GET", f"/requests?pool={pool}&status=allocated")["items"]) == 4
    assert len(call.ok("GET", f"/requests?pool={pool}&view=queued")["items"]) == 3


def test_a_request_answers_to_a_unique_prefix_of_its_id(call: Caller, pool: str) -> None:
    made = call.ok("POST", "/requests", ask(pool))
    assert call.ok("GET", f"/requests/{made['id'][:-2]}")["id"] == made["id"]


def test_releasing_twice_is_once_and_releasing_what_waits_is_refused(call: Caller, pool: str) -> None:
    made = call.ok("POST", "/requests", ask(pool, 4))
    waiting = call.ok("POST", "/requests", ask(pool, 4))
    refused = call("POST", f"/requests/{waiting['id']}/release")
    assert (refused.status, refused.json["type"]) == (409, "illegal-transition")
    first = call.ok("POST", f"/requests/{made['id']}/release", {"force": True})
    assert call.ok("POST", f"/requests/{made['id']}/release") == first


def test_deleting_a_pool_with_work_needs_a_choice_and_lists_the_work_first(call: Caller, pool: str) -> None:
    held = call.ok("POST", "/requests", ask(pool, 4))
    queued = call.ok("POST", "/requests", ask(pool, 4))
    refused = call("DELETE", f"/pools/{pool}")
    assert (refused.status, refused.json["type"]) == (409, "in-use")
    assert (refused.json["numbers"]["active"], refused.json["numbers"]["queued"]) == ([held["id"]], [queued["id"]])
    listed = call.ok("DELETE", f"/pools/{pool}?on_work=let-go&dry_run=true")
    assert (listed["outcome"], listed["active"], listed["queued"]) == ("deleted", [held["id"]], [queued["id"]])
    assert call.ok("GET", f"/requests/{queued['id']}")["status"] == "queued"
    drained = call.ok("DELETE", f"/pools/{pool}?on_work=drain")
    assert drained["outcome"] == "draining"
    assert call.ok("GET", f"/pools/{pool}")["state"] == "draining"


def test_a_pool_shows_its_nodes_policies_and_shares(call: Caller) -> None:
    nodes = [{"name": f"n{number}", "capacity": {"gpu": 2}, "gpu_type": "a100"} for number in (1, 2)]
    call.ok("POST", "/pools", {"name": "noded", "nodes": nodes})
    call.ok("POST", "/policies", {"pool": "noded", "subject": "team:red", "reserved": {"gpu": 1}})
    made = call.ok("POST", "/requests", ask("noded", 2))
    seen = call.ok("GET", "/pools/noded")
    assert (seen["capacity"], seen["used"]["gpu"], seen["borrowed"]["gpu"]) == ({"gpu": 4}, 2, 2)
    assert [(node["name"], node["used"], node["requests"]) for node in seen["nodes"]] == [
        ("n1", {"gpu": 2}, [made["id"]]),
        ("n2", {}, []),
    ]
    (policy,) = seen["policies"]
    assert (policy["used"]["gpu"], policy["borrowed"]["gpu"], policy["active"]) == (2, 2, 1)
    call.ok("PATCH", "/pools/noded/nodes/n2", {"state": "cordoned"})
    assert call.ok("GET", "/pools/noded")["capacity"] == {"gpu": 2}
    missing = call("PATCH", "/pools/noded/nodes/n9", {"state": "cordoned"})
    assert (missing.status, "'n1' or 'n2'" in missing.json["help"]) == (404, True)
    call.ok("DELETE", "/pools/noded?on_work=let-go")


def test_stacks_are_made_of_components_and_one_is_active(call: Caller) -> None:
    call.ok("POST", "/components", {"name": "k8s", "flavor": "mine:Orchestrator", "config": {"context": "c"}})
    call.ok("POST", "/stacks", {"name": "prod", "orchestrator": "k8s"})
    call.ok("POST", "/stacks/prod/activate")
    active = [stack["name"] for stack in call.ok("GET", "/stacks")["items"] if stack["active"]]
    assert active == ["prod"]
    assert call("DELETE", "/components/k8s").json["type"] == "in-use"
    call.ok("POST", "/stacks/default/activate")
    call.ok("DELETE", "/stacks/prod")
    call.ok("DELETE", "/components/k8s")


def test_a_run_shows_its_steps_with_the_status_of_their_requests(call: Caller, pool: str) -> None:
    run = call.ok("POST", "/runs", {"name": "sweep", "user": "ann"})
    step = call.ok("POST", f"/runs/{run['id']}/steps", {"name": "train", "settings": {"gpu": 0.5}})
    made = call.ok("POST", "/requests", ask(pool, 0.5, run=run["id"], step=step["id"]))
    call.ok("PATCH", f"/steps/{step['id']}", {"status": "running", "request": made["id"], "attempt": 1})
    seen = call.ok("GET", "/runs/sweep")
    (shown,) = seen["steps"]
    assert (shown["status"], shown["settings"], seen["counts"]) == ("running", {"gpu": 0.5}, {"running": 1})
    (attempt,) = shown["requests"]
    assert (attempt["id"], attempt["status"], attempt["pool"], attempt["devices"]) == (
        made["id"],
        "allocated",
        pool,
        ["0"],
    )
    call.ok("PATCH", f"/steps/{step['id']}", {"status": "completed"})
    call.ok("PATCH", f"/runs/{run['id']}", {"status": "completed"})
    listed = call.ok("GET", "/runs?limit=1")["items"][0]
    assert (listed["id"], listed["status"], listed["counts"]) == (run["id"], "completed", {"completed": 1})


def events(call: Caller, query: str, last: str | None = None) -> Generator[dict[str, Any], None, None]:
    headers = {"Authorization": f"Bearer {call.token}"} | ({"Last-Event-ID": last} if last else {})
    url = f"{call.url}/api/v1/events{query}"
    with urllib3.PoolManager(timeout=90).request("GET", url, headers=headers, preload_content=False) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        text = b""
        for chunk in answer.stream(1):
            text += chunk
            if text.endswith(b"\n\n"):
                fields = dict(line.split(": ", 1) for line in text.decode().splitlines() if ": " in line)
                text = b""
                if "data" in fields:
                    yield {**json.loads(fields["data"]), "sse_id": fields["id"], "sse_event": fields["event"]}


def test_events_tell_what_happens_and_go_on_where_a_reader_left_off(call: Caller, pool: str) -> None:
    before = call.ok("GET", "/history?limit=1")["items"][0]["id"]
    made = call.ok("POST", "/requests", ask(pool))
    stream = events(call, f"?kind=request&after={before}")
    first = next(stream)
    assert (first["what"], first["object"], first["sse_id"], first["sse_event"]) == (
        "queued",
        made["id"],
        str(first["id"]),
        "request",
    )
    stream.close()
    resumed = events(call, "?kind=request", last=first["sse_id"])
    assert next(resumed)["what"] == "allocated"
    call.ok("POST", f"/requests/{made['id']}/release")
    assert next(resumed)["what"] == "released"
    resumed.close()


def test_settings_are_guarded_by_their_version(call: Caller) -> None:
    seen = call("GET", "/settings")
    changed = call("PATCH", "/settings", {"require_policy": True}, headers={"If-Match": seen.etag})
    assert changed.json["require_policy"] is True
    rejected = call.ok("POST", "/requests", {"demand": {"cpu": 1}, "subjects": ["local"]})
    assert rejected["status"] == "rejected"
    assert call("PATCH", "/settings", {"require_policy": False}, headers={"If-Match": seen.etag}).status == 412
    call.ok("PATCH", "/settings", {"require_policy": False})


def test_work_that_no_policy_speaks_of_starts_at_once_and_is_shown_as_such(call: Caller) -> None:
    made = call.ok("POST", "/requests", {"demand": {"mcpu": 1000}})
    assert (made["status"], made["allocation"]["pool"], made["subjects"]) == ("allocated", None, ["component:local"])
    call.ok("POST", f"/requests/{made['id']}/release")


def test_what_was_acknowledged_is_there_after_a_restart_and_its_owner_goes_on(tmp_path: Path) -> None:
    call = begin(tmp_path)
    call.ok("POST", "/pools", {"name": "gpus", "capacity": {"gpu": 1}})
    call.ok("POST", "/policies", {"pool": "gpus", "subject": "team:red"})
    held, queued = (call.ok("POST", "/requests", ask("gpus")) for _ in range(2))
    end(tmp_path)
    with serving(tmp_path) as again:
        assert again.ok("POST", f"/requests/{held['id']}/renew")["status"] == "allocated"
        assert again.ok("GET", f"/requests/{queued['id']}")["status"] == "queued"
        again.ok("POST", f"/requests/{held['id']}/release")
        assert (
            again.ok("GET", f"/requests/{queued['id']}?wait_s=30&after_version={queued['version']}")["status"]
            == "allocated"
        )


def test_hundreds_of_calls_wait_without_a_thread_each(tmp_path: Path) -> None:
    waiters = 200
    script = """
import asyncio, sys
async def poll(port, token, request):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET /api/v1/requests/{request}?wait_s=60 HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\n"
                 f"Authorization: Bearer {token}\\r\\nConnection: close\\r\\n\\r\\n".encode())
    answer = await reader.read()
    return b'"status":"cancelled"' in answer
async def main(port, token, request, count):
    print(sum(await asyncio.gather(*(poll(int(port), token, request) for _ in range(int(count))))))
asyncio.run(main(*sys.argv[1:]))
"""
    import psutil

    from fairpool.wire import local_server

    with serving(tmp_path) as call:
        call.ok("POST", "/pools", {"name": "gpus", "capacity": {"gpu": 1}})
        call.ok("POST", "/policies", {"pool": "gpus", "subject": "team:red"})
        _, queued = (call.ok("POST", "/requests", ask("gpus")) for _ in range(2))
        port = str(urllib3.util.parse_url(call.url).port)
        command = [sys.executable, "-c", script, port, call.token, queued["id"], str(waiters)]
        polls = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        under_way = f"fairpool_http_requests_under_way {waiters + 1}"
        wait_until(lambda: under_way in call("GET", "//metrics").body.decode(), what="all polls to be under way")
        found = local_server.find(tmp_path)
        assert found is not None
        assert psutil.Process(found.pid).num_threads() < 30
        call.ok("POST", f"/requests/{queued['id']}/cancel")
        assert polls.communicate(timeout=90)[0].strip() == str(waiters)

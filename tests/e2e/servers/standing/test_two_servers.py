"""Two servers of one database: one decides, and whoever asks the other notices nothing of that."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from fairpool.wire.routes import API
from tests.e2e.servers.installation import ASK, Server
from tests.waiting import wait_until


def test_one_leads_and_the_other_knows_where(leader: Server, follower: Server) -> None:
    assert leader.leads
    told = follower.info()
    assert (told["leader"], told["leader_address"], told["address"]) == (False, leader.url, follower.url)
    assert follower.call("GET", "//readyz").status == 200


def test_whatever_is_asked_of_the_follower_is_answered_as_the_leader_would(leader: Server, follower: Server) -> None:
    created = follower.call("POST", "/pools", {"name": "other", "capacity": {"gpu": 2}})
    assert (created.status, created.etag) == (201, '"1"')
    assert leader.call.ok("GET", "/pools/other") == follower.call.ok("GET", "/pools/other") == created.json
    stale = follower.call("PATCH", "/pools/other", {"description": "x"}, headers={"If-Match": '"7"'})
    assert (stale.status, stale.json["type"], stale.etag) == (412, "stale", '"1"')
    changed = follower.call("PATCH", "/pools/other?dry_run=true", {"capacity": {"gpu": 3}}, headers={"If-Match": '"1"'})
    assert changed.json["capacity"] == {"gpu": 3}
    wrong = follower.call("POST", "/pools", b"{", headers={"Content-Type": "application/json"})
    assert (wrong.status, wrong.json["type"]) == (400, "malformed-body")
    missing = follower.call("GET", "/pools/n%C3%B6%2F")
    assert (missing.status, missing.json["detail"]) == (404, leader.call("GET", "/pools/n%C3%B6%2F").json["detail"])


def test_a_key_that_was_used_at_one_is_known_at_the_other(leader: Server, follower: Server) -> None:
    key = {"Idempotency-Key": "k1"}
    first = leader.call.ok("POST", "/requests", ASK, headers=key)
    assert follower.call.ok("POST", "/requests", ASK, headers=key)["id"] == first["id"]
    follower.call.ok("POST", f"/requests/{first['id']}/release", {})


@pytest.mark.parametrize(
    ("path", "body", "other"),
    [
        ("/pools", {"name": "twice", "capacity": {"gpu": 1}}, {"name": "twice", "capacity": {"gpu": 2}}),
        ("/components", {"name": "twice", "kind": "orchestrator"}, {"name": "more", "kind": "orchestrator"}),
        ("/users", {"name": "twice", "role": "member"}, {"name": "twice", "role": "admin"}),
        ("/runs", {"name": "twice"}, {"name": "more"}),
    ],
)
def test_a_creation_whose_answer_was_lost_is_made_again_with_its_key(
    leader: Server, follower: Server, path: str, body: object, other: object
) -> None:
    key = {"Idempotency-Key": f"k{path}"}
    first = leader.call("POST", path, body, headers=key)
    again = follower.call("POST", path, body, headers=key)
    assert (again.status, again.json["id"]) == (first.status, first.json["id"]) == (201, first.json["id"])
    reused = follower.call("POST", path, other, headers=key)
    assert (reused.status, reused.json["type"]) == (409, "idempotency-key-reused")


def test_a_step_whose_answer_was_lost_is_reported_again_with_its_key(leader: Server, follower: Server) -> None:
    run = leader.call.ok("POST", "/runs", {"name": "r"})["id"]
    made = [
        server.call.ok("POST", f"/runs/{run}/steps", {"name": "s"}, headers={"Idempotency-Key": "s1"})["id"]
        for server in (leader, follower)
    ]
    assert made[0] == made[1]
    assert [step["id"] for step in leader.call.ok("GET", f"/runs/{run}")["steps"]] == made[:1]


def test_the_follower_lets_nobody_in_without_the_token(follower: Server) -> None:
    for path in ("/pools", "/history"):
        assert follower.call("GET", path, headers={"Authorization": "Bearer wrong"}).status == 401


def test_a_long_poll_at_the_follower_is_answered_when_the_leader_decides(leader: Server, follower: Server) -> None:
    held = [leader.call.ok("POST", "/requests", ASK) for _ in range(2)]
    waiting = leader.call.ok("POST", "/requests", ASK)
    with ThreadPoolExecutor(1) as threads:
        polled = threads.submit(follower.call.ok, "GET", f"/requests/{waiting['id']}?wait_s=60")
        wait_until(
            lambda: "fairpool_http_requests_under_way 2" in leader.call("GET", "//metrics").body.decode(),
            what="the long poll to have reached the leader",
        )
        leader.call.ok("POST", f"/requests/{held[0]['id']}/release", {})
        assert polled.result(timeout=90)["status"] == "allocated"
    for request in (held[1], waiting):
        leader.call.ok("POST", f"/requests/{request['id']}/release", {})


def test_an_event_stream_at_the_follower_tells_what_the_leader_commits_and_goes_on_at_the_leader(
    leader: Server, follower: Server
) -> None:
    seen: list[dict[str, object]] = []
    ready, enough = threading.Event(), threading.Event()

    def listen() -> None:
        headers = {"Authorization": f"Bearer {follower.call.token}", "Last-Event-ID": "0"}
        stream = follower.call.pool.request(
            "GET", f"{follower.url}{API}/events", headers=headers, preload_content=False
        )
        for line in stream:
            if line.startswith(b"data: "):
                seen.append(json.loads(line.removeprefix(b"data: ")))
                ready.set()
                if seen[-1]["kind"] == "request" and seen[-1]["what"] == "allocated":
                    break
        enough.set()
        stream.close()

    thread = threading.Thread(target=listen)
    thread.start()
    assert ready.wait(30)
    leader.call.ok("POST", "/requests", ASK)
    assert enough.wait(30)
    thread.join()
    ids = [event["id"] for event in seen]
    assert ids == list(range(1, len(ids) + 1)), "nothing is missed, nothing comes twice"


def test_a_call_that_was_passed_on_is_not_passed_on_again(leader: Server, follower: Server) -> None:
    refused = follower.call("GET", "/pools", headers={"Fairpool-Forwarded": "http://127.0.0.1:1"})
    assert (refused.status, refused.json["type"], refused.headers["retry-after"]) == (503, "not-leading", "1")

"""A real receiver is told what it asked for: once, in order, signed, whatever becomes of it or of the server."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.hmac import HMAC

from fairpool.wire import local_server
from tests.integration.receiver import Receiver, receiving
from tests.integration.serving import Caller, begin, end, serving
from tests.waiting import wait_until

BOTH = ["request.granted", "request.released"]


@pytest.fixture(autouse=True)
def with_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRPOOL_VAULT_KEY", Fernet.generate_key().decode())
    monkeypatch.setenv("FAIRPOOL_WEBHOOK_ALLOW_PRIVATE", "1")


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    with receiving(tmp_path / "receiver") as found:
        yield found


@pytest.fixture
def call(tmp_path: Path) -> Iterator[Caller]:
    with serving(tmp_path / "data") as call:
        stock(call)
        yield call


def stock(call: Caller) -> None:
    call.ok("POST", "/pools", {"name": "gpus", "capacity": {"gpu": 2}})
    for team in ("red", "blue"):
        call.ok("POST", "/policies", {"pool": "gpus", "subject": f"team:{team}"})


def hook(call: Caller, receiver: Receiver, name: str = "hook", **fields: object) -> dict[str, Any]:
    given = {"name": name, "url": receiver.url, "events": BOTH, **fields}
    made: dict[str, Any] = call.ok("POST", "/webhooks", given)
    return made


def submit(call: Caller, gpus: float = 1, team: str = "red", **fields: object) -> str:
    body = {"demand": {"gpu": gpus}, "subjects": [f"team:{team}"], "pool": "gpus", "lease_s": 600, **fields}
    return str(call.ok("POST", "/requests", body)["id"])


def run_one(call: Caller, **fields: Any) -> str:
    request = submit(call, **fields)
    call.ok("POST", f"/requests/{request}/release")
    return request


def state(call: Caller, name: str = "hook") -> dict[str, Any]:
    found: dict[str, Any] = call.ok("GET", f"/webhooks/{name}")["delivery"]
    return found


def is_signed(secret: str, delivered: Mapping[str, Any]) -> bool:
    """What the specification of Standard Webhooks says, with another library than the server's."""
    headers = delivered["headers"]
    signer = HMAC(base64.b64decode(secret.removeprefix("whsec_")), hashes.SHA256())
    signer.update(f"{headers['webhook-id']}.{headers['webhook-timestamp']}.{delivered['body']}".encode())
    return f"v1,{base64.b64encode(signer.finalize()).decode()}" in headers["webhook-signature"].split(" ")


def told(receiver: Receiver) -> list[tuple[str, str]]:
    """Which event of which request, in the order in which they were taken."""
    bodies = [json.loads(call["body"]) for call in receiver.taken()]
    return [(body["type"], body["data"]["request"]) for body in bodies]


def test_what_happens_is_told_in_order_signed_and_with_what_concerns_the_request(
    call: Caller, receiver: Receiver
) -> None:
    run_one(call)
    made = hook(call, receiver)
    first, second = run_one(call, name="train"), run_one(call)
    wait_until(lambda: len(receiver.taken()) == 4, what="four messages")
    assert told(receiver) == [
        ("request.granted", first),
        ("request.released", first),
        ("request.granted", second),
        ("request.released", second),
    ]
    for delivered in receiver.taken():
        assert is_signed(made["secret"], delivered)
        assert abs(int(delivered["headers"]["webhook-timestamp"]) - time.time()) < 60
    data = json.loads(receiver.taken()[0]["body"])["data"]
    assert (data["name"], data["pool"], data["policy"], data["demand"]) == (
        "train",
        "gpus",
        "team:red",
        {"gpu": 1, "step_run": 1},
    )
    assert (data["workspace"], data["status"], data["subjects"]) == ("default", "allocated", ["team:red"])
    ids = [delivered["headers"]["webhook-id"] for delivered in receiver.taken()]
    assert len(set(ids)) == 4


def test_the_secret_is_told_once_and_kept_sealed(call: Caller, receiver: Receiver, tmp_path: Path) -> None:
    made = hook(call, receiver)
    assert made["secret"].startswith("whsec_")
    assert len(base64.b64decode(made["secret"].removeprefix("whsec_"))) >= 24
    seen = (call("GET", "/webhooks/hook"), call("GET", "/webhooks"), call("GET", "/history?kind=webhook"))
    assert all(made["secret"] not in answer.body.decode() and "gAAAA" not in answer.body.decode() for answer in seen)
    database = b"".join(path.read_bytes() for path in (tmp_path / "data").glob("fairpool.db*"))
    assert made["secret"].encode() not in database


def test_a_receiver_that_fails_is_tried_again_with_the_same_id_and_misses_nothing(
    call: Caller, receiver: Receiver
) -> None:
    made = hook(call, receiver)
    receiver.answers("500", "503")
    first = run_one(call)
    wait_until(lambda: len(receiver.taken()) == 2, what="both messages in the end")
    assert [delivered["status"] for delivered in receiver.calls()] == [500, 503, 200, 200]
    tries = [delivered["headers"]["webhook-id"] for delivered in receiver.calls()[:3]]
    assert len(set(tries)) == 1
    assert all(is_signed(made["secret"], delivered) for delivered in receiver.calls())
    assert told(receiver) == [("request.granted", first), ("request.released", first)]
    wait_until(lambda: state(call)["status"] == "ok", what="it to be well again")


def test_a_receiver_that_is_away_is_told_all_of_it_when_it_is_back(call: Caller, receiver: Receiver) -> None:
    hook(call, receiver)
    receiver.stop()
    requests = [run_one(call) for _ in range(3)]
    broken = wait_until(lambda: (s := state(call))["failures"] and s, what="the failure to be noted")
    assert broken["status"] == "retrying"
    assert "cannot be reached" in broken["last_error"]
    assert broken["next_try_at"]
    receiver.start()
    wait_until(lambda: len(receiver.taken()) == 6, what="everything")
    assert told(receiver) == [(event, request) for request in requests for event in BOTH]


def test_a_server_that_is_killed_goes_on_where_it_was(tmp_path: Path, receiver: Receiver) -> None:
    import signal

    call = begin(tmp_path / "data")
    try:
        stock(call)
        hook(call, receiver)
        before = run_one(call)
        wait_until(lambda: len(receiver.taken()) == 2, what="the first two")
        receiver.answers(*["500"] * 50)
        during = run_one(call)
        wait_until(lambda: state(call)["failures"], what="the failure to be kept")
        end(tmp_path / "data", signal.SIGKILL)
        receiver.answers()
        call = begin(tmp_path / "data")
        after = run_one(call)
        wait_until(lambda: told(receiver)[-1:] == [("request.released", after)], what="the last message")
    finally:
        end(tmp_path / "data")
    heard = list(dict.fromkeys(told(receiver)))
    assert heard == [(event, request) for request in (before, during, after) for event in BOTH]
    by_id: dict[str, set[str]] = {}
    for delivered in receiver.taken():
        by_id.setdefault(delivered["headers"]["webhook-id"], set()).add(delivered["body"])
    assert all(len(bodies) == 1 for bodies in by_id.values()), "what is told again is told alike"


def test_a_hanging_receiver_delays_no_other_and_no_grant(call: Caller, receiver: Receiver, tmp_path: Path) -> None:
    with receiving(tmp_path / "slow") as slow:
        hook(call, receiver)
        hook(call, slow, name="slow")
        slow.answers(*["never"] * 20)
        for _ in range(4):
            run_one(call)
        wait_until(lambda: len(receiver.taken()) == 8, what="the quick one to hear everything")
        assert call.ok("GET", "/webhooks/slow")["delivery"]["status"] == "ok", "its first call still lasts"


def test_filters_let_through_what_they_name(call: Caller, receiver: Receiver, tmp_path: Path) -> None:
    call.ok("POST", "/pools", {"name": "other", "capacity": {"gpu": 1}})
    call.ok("POST", "/policies", {"pool": "other", "subject": "team:red"})
    hook(call, receiver, team="blue", events=["request.granted"])
    with receiving(tmp_path / "other") as other:
        hook(call, other, name="of-other", pool="other", events=["request.granted", "request.rejected"])
        run_one(call)
        blue = run_one(call, team="blue")
        elsewhere = run_one(call, pool="other")
        never = submit(call, 99, pool="other")
        submit(call, 99)
        wait_until(lambda: len(other.taken()) == 2 and len(receiver.taken()) == 1, what="what concerns each")
        assert told(receiver) == [("request.granted", blue)]
        assert told(other) == [("request.granted", elsewhere), ("request.rejected", never)]


def test_what_a_deleted_pool_leaves_behind_is_told_and_its_webhook_says_that_it_is_gone(
    call: Caller, receiver: Receiver
) -> None:
    hook(call, receiver, events=["request.released", "request.rejected"], pool="gpus")
    hook(call, receiver, name="of-all", events=["request.expired"])
    runs, waits = submit(call, 2), submit(call, 2)
    assert call.ok("GET", "/webhooks/hook")["warnings"] == []
    call.ok("DELETE", "/pools/gpus?on_work=let-go")
    call.ok("POST", f"/requests/{runs}/release")
    wait_until(lambda: len(told(receiver)) == 2, what="what became of both to be told")
    assert told(receiver) == [("request.rejected", waits), ("request.released", runs)]
    [warning] = call.ok("GET", "/webhooks/hook")["warnings"]
    assert "'gpus'" in warning
    shown = call.ok("GET", "/webhooks")["items"]
    assert {one["name"]: one["warnings"] for one in shown} == {"hook": [warning], "of-all": []}
    call.ok("POST", "/pools", {"name": "gpus", "capacity": {"gpu": 1}})
    assert call.ok("PATCH", "/webhooks/hook", {"description": "again"})["warnings"] == []


def test_who_waits_too_long_is_told_once_and_who_does_not_is_not(call: Caller, receiver: Receiver) -> None:
    hook(call, receiver, events=["request.waiting"], waiting_longer_than_s=2)
    holder = submit(call, 2)
    gone, long = submit(call, 2), submit(call, 2)
    call.ok("POST", f"/requests/{gone}/cancel")
    (message,) = wait_until(receiver.taken, what="somebody to have waited too long")
    body = json.loads(message["body"])
    assert (body["type"], body["data"]["request"], body["data"]["status"]) == ("request.waiting", long, "queued")
    assert body["data"]["waited_s"] == pytest.approx(2, abs=0.1)
    assert "longer than 2 s" in body["data"]["cause"]
    call.ok("POST", f"/requests/{holder}/release")
    quick = submit(call, 2)
    call.ok("POST", f"/requests/{long}/release")
    assert call.ok("GET", f"/requests/{quick}")["status"] == "allocated"
    later = submit(call, 2)
    wait_until(lambda: len(receiver.taken()) == 2, what="the next who waits too long")
    assert [request for _, request in told(receiver)] == [long, later]


def test_a_receiver_that_wants_no_more_is_given_up_and_begins_again_where_it_stopped(
    call: Caller, receiver: Receiver
) -> None:
    hook(call, receiver)
    receiver.answers("410")
    missed = run_one(call)
    given_up = wait_until(lambda: (s := state(call))["status"] == "failing" and s, what="it to be given up")
    assert given_up["last_error"] == "it answered 410"
    call.ok("PATCH", "/webhooks/hook", {"enabled": True})
    wait_until(lambda: len(receiver.taken()) == 2, what="what was missed")
    assert told(receiver) == [("request.granted", missed), ("request.released", missed)]


def test_one_that_is_disabled_hears_nothing_until_it_is_enabled(call: Caller, receiver: Receiver) -> None:
    hook(call, receiver)
    call.ok("PATCH", "/webhooks/hook", {"enabled": False})
    assert state(call)["status"] == "disabled"
    missed = run_one(call)
    call.ok("PATCH", "/webhooks/hook", {"enabled": True})
    wait_until(lambda: len(receiver.taken()) == 2, what="what was missed")
    assert {request for _, request in told(receiver)} == {missed}
    call.ok("DELETE", "/webhooks/hook")
    assert call("GET", "/webhooks/hook").status == 404


def test_a_test_says_what_the_receiver_answered_and_follows_no_redirect(call: Caller, receiver: Receiver) -> None:
    made = hook(call, receiver)
    tried = call.ok("POST", "/webhooks/hook/test")
    assert (tried["delivered"], tried["status"]) == (True, 200)
    assert is_signed(made["secret"], receiver.taken()[0])
    assert receiver.events() == ["webhook.test"]
    receiver.answers("302")
    tried = call.ok("POST", "/webhooks/hook/test")
    assert (tried["delivered"], tried["status"]) == (False, 302)
    assert "redirects are not followed" in tried["detail"]
    assert [delivered["path"] for delivered in receiver.calls()] == ["/hook", "/hook"]
    receiver.stop()
    assert "cannot be reached" in call.ok("POST", "/webhooks/hook/test")["detail"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"url": "ftp://example.org/x"}, "url"),
        ({"url": "http://user:secret@example.org/x"}, "url"),
        ({"url": "not an address"}, "url"),
        ({"events": []}, "events"),
        ({"events": ["request.stolen"]}, "events"),
        ({"events": ["request.waiting"]}, "waiting_longer_than_s"),
        ({"waiting_longer_than_s": 5}, "waiting_longer_than_s"),
        ({"name": "no good"}, "name"),
    ],
)
def test_what_is_wrong_with_a_webhook_is_named(
    call: Caller, receiver: Receiver, change: dict[str, object], field: str
) -> None:
    answer = call("POST", "/webhooks", {"name": "hook", "url": receiver.url, "events": BOTH, **change})
    assert answer.status == 422, answer.body
    assert answer.json["errors"][0]["field"] == field
    assert "secret@" not in answer.body.decode()
    assert call.ok("GET", "/webhooks")["items"] == []


def test_nothing_private_can_be_called_unless_the_server_allows_it(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRPOOL_WEBHOOK_ALLOW_PRIVATE", "0")
    with serving(tmp_path / "data") as call:
        for url in (receiver.url, "http://localhost/x", "http://[::1]:1/", "http://169.254.169.254/latest/meta-data"):
            answer = call("POST", "/webhooks", {"name": "hook", "url": url, "events": BOTH})
            assert (answer.status, answer.json["errors"][0]["field"]) == (422, "url"), url
        # A name that means this machine is found out when it is called, by where it leads.
        call.ok("POST", "/webhooks", {"name": "hook", "url": f"http://0x7f000001:{receiver.port}/", "events": BOTH})
        tried = call.ok("POST", "/webhooks/hook/test")
        assert (tried["delivered"], receiver.calls()) == (False, [])
        assert "only this machine or its network can reach" in tried["detail"]


def test_without_a_key_no_webhook_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAIRPOOL_VAULT_KEY")
    with serving(tmp_path / "data") as call:
        answer = call("POST", "/webhooks", {"name": "hook", "url": "https://example.org", "events": BOTH})
        assert answer.status == 409
        assert "FAIRPOOL_VAULT_KEY" in answer.json["detail"]


def test_neither_secrets_nor_paths_of_receivers_get_into_the_log(
    call: Caller, receiver: Receiver, tmp_path: Path
) -> None:
    made = hook(call, receiver)
    receiver.answers("500")
    run_one(call)
    wait_until(lambda: len(receiver.taken()) == 2, what="both messages")
    log = (tmp_path / "data" / local_server.LOG_FILE).read_text()
    assert "did not take a message: it answered 500" in log
    assert made["secret"] not in log
    assert "/hook" not in log.replace("/webhooks", "")


def test_deliveries_are_counted_by_what_became_of_them(call: Caller, receiver: Receiver) -> None:
    hook(call, receiver)
    receiver.answers("500")
    run_one(call)
    wait_until(lambda: len(receiver.taken()) == 2, what="both messages")

    def count(outcome: str) -> str:
        name = f'fairpool_webhook_deliveries_total{{outcome="{outcome}",webhook="hook",workspace="default"}} '
        lines = call("GET", "//metrics").body.decode().splitlines()
        return next((line.removeprefix(name) for line in lines if line.startswith(name)), "")

    wait_until(lambda: (count("delivered"), count("failed")) == ("2.0", "1.0"), what="the counts")


def test_hundreds_of_messages_arrive_complete_and_in_order(call: Caller, receiver: Receiver) -> None:
    hook(call, receiver)
    threads = [threading.Thread(target=lambda: [run_one(call, gpus=0.5) for _ in range(40)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wait_until(lambda: len(receiver.taken()) >= 320, what="all of them", timeout_s=60)
    numbers = [json.loads(call["body"])["data"]["event"] for call in receiver.taken()]
    assert numbers == sorted(set(numbers))
    assert len(numbers) == 320

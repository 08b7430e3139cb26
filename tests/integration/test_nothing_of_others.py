"""Of others' requests a member learns what explains their own wait: no private word of theirs is in any answer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from fairpool.app.authz import Role
from fairpool.app.rights import right_of
from fairpool.server.gate import OPEN
from fairpool.wire.routes import API, ROUTES
from tests.integration.serving import Caller, serving
from tests.waiting import wait_until

WORD = "canary"
"""Stands in everything that is private to the other team."""


@dataclass
class Scene:
    """A pool that two teams share. others: requests of the other team by status. waiting: the member's own."""

    owner: Caller
    alice: Caller
    others: dict[str, str]
    run: str
    step: str
    waiting: str


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with serving(tmp_path_factory.mktemp("others")) as owner:
        yield _scene(owner)


def _scene(owner: Caller) -> Scene:
    owner.ok("POST", "/users", {"name": "alice"})
    owner.ok("POST", "/users", {"name": f"{WORD}-user", "role": "operator", "email": f"{WORD}@example.org"})
    owner.ok("POST", "/teams", {"name": "mine", "members": ["alice"]})
    owner.ok("POST", "/teams", {"name": "theirs", "members": [f"{WORD}-user"]})
    owner.ok("POST", "/service-accounts", {"name": f"{WORD}-bot", "teams": ["theirs"]})
    callers = {}
    for whose in ("user:alice", f"user:{WORD}-user", f"service-account:{WORD}-bot"):
        token = owner.ok("POST", "/tokens", {"name": f"{whose.partition(':')[2]}-token", "owner": whose})
        callers[whose] = Caller(owner.url, token["token"])
    alice, bob, bot = callers.values()
    owner.ok("POST", "/pools", {"name": "shared", "capacity": {"gpu": 8}})
    owner.ok("POST", "/pools", {"name": f"{WORD}-pool", "capacity": {"gpu": 8}})
    # The rules that concern the member were made by somebody of the other team.
    bob.ok("POST", "/policies", {"pool": "shared", "subject": "team:mine", "reserved": {"gpu": 2}})
    bob.ok("POST", "/policies", {"pool": "shared", "subject": "team:theirs", "reserved": {"gpu": 4}, "grace_s": 900})
    bob.ok("POST", "/policies", {"pool": "shared", "subject": f"user:{WORD}-user", "priority": 5})
    bob.ok("POST", "/policies", {"pool": f"{WORD}-pool", "subject": "team:theirs"})
    bob.ok("POST", "/profiles", {"name": f"{WORD}-profile", "demand": {"gpu": 1}, "pools": [f"{WORD}-pool"]})
    bob.ok("POST", "/profiles", {"name": "half", "demand": {"gpu": 0.5}, "pools": ["shared"]})
    run = bob.ok("POST", "/runs", {"name": f"{WORD}-run", "labels": {f"{WORD}-label": WORD}, "user": f"{WORD}-login"})
    step = bob.ok("POST", f"/runs/{run['id']}/steps", {"name": f"{WORD}-step", "log": f"/logs/{WORD}"})
    bob.ok("PATCH", f"/steps/{step['id']}", {"status": "running", "checkpoint": f"{WORD}-checkpoint"})

    def ask(who: Caller, gpus: int, **said: object) -> str:
        private = {
            "name": f"{WORD}-request",
            "labels": {"command": f"python {WORD}.py", f"{WORD}-key": f"{WORD}-value"},
            "run": run["id"],
            "step": step["id"],
        }
        return str(who.ok("POST", "/requests", {"demand": {"gpu": gpus}, "pool": "shared", **private, **said})["id"])

    others = {
        "released": ask(bob, 1, idempotency_key=f"{WORD}-again"),
        "rejected": ask(bob, 99),
        "allocated": ask(bot, 4, team="theirs"),
        "preempting": ask(bob, 3, max_runtime_s=3600, profile=None),
    }
    bob.ok("POST", f"/requests/{others['released']}/release", {"reason": f"{WORD} is done"})
    ask(bob, 1)
    others["queued"] = ask(bob, 2)
    alice.ok("POST", "/requests", {"demand": {"gpu": 2}, "pool": "shared"})  # what is reserved for her is taken back
    waiting = alice.ok("POST", "/requests", {"demand": {"gpu": 4}, "pool": "shared", "name": "hers"})["id"]
    wait_until(lambda: owner.ok("GET", "/requests?status=preempting")["items"], what="somebody to let go")
    return Scene(owner, alice, others, run["id"], step["id"], waiting)


def paths(scene: Scene) -> Iterator[str]:
    """Every route that is read, for every thing that there is."""
    things = {
        "pools": ["shared", f"{WORD}-pool"],
        "policies": [policy["id"] for policy in scene.owner.ok("GET", "/policies")["items"]],
        "profiles": ["half", f"{WORD}-profile"],
        "components": ["local"],
        "stacks": ["default"],
        "requests": [scene.waiting, *scene.others.values()],
        "runs": [scene.run, f"{WORD}-run"],
        "steps": [scene.step],
        "users": ["alice", f"{WORD}-user"],
        "teams": ["mine", "theirs"],
        "service-accounts": [f"{WORD}-bot"],
        "vaults": ["mine", "theirs"],
        "schemas": ["pool"],
        "webhooks": ["mine"],
        "queues": ["mine/half", "theirs/half", f"user:{WORD}-user/{WORD}-profile"],
    }
    for name, route in ROUTES.items():
        if route.method != "GET" or name in OPEN or name == "events":
            continue
        path = ("/" if route.root else "") + route.path
        noun = route.path.split("/")[1].partition(":")[0]
        for thing in things[noun] if "{" in path else [""]:
            filled = re.sub(r"\{owner\}/\{profile\}|\{\w+\}", thing, path, count=1)
            assert "{" not in filled, f"how to fill in {route.path}?"
            yield filled
    yield from ("/requests?view=all&limit=1000", "/requests?view=queued", "/requests?subject=team:theirs&view=all")
    yield from (f"/requests?view=all&name={WORD}-request", f"/requests?view=all&label={WORD}-key={WORD}-value")
    yield from ("/history?limit=1000", "/history?after=0&limit=1000", "/runs?limit=1000", "/tokens?limit=1000")
    yield from (f"/history?object={request}" for request in scene.others.values())


def told(answer: Any) -> str:
    """What an answer tells that the caller did not say: what they asked for comes back in a refusal."""
    document = json.loads(answer.body) if answer.body.startswith((b"{", b"[")) else {}
    if answer.status >= 400:
        return json.dumps({key: document.get(key) for key in ("candidates", "numbers")})
    return str(answer.body.decode())


def test_no_answer_to_a_member_has_a_private_word_of_others(scene: Scene) -> None:
    walked = 0
    for path in paths(scene):
        answer = scene.alice("GET", path)
        assert answer.status in (200, 403, 404), (path, answer.status, answer.body)
        assert WORD not in told(answer), (path, answer.body.decode())
        walked += 1
    assert walked > 60


def test_the_words_are_there_for_who_may_read_them(scene: Scene) -> None:
    """Else the walk would prove nothing."""
    seen = [path for path in paths(scene) if WORD in scene.owner("GET", path).body.decode()]
    assert len(seen) > 30, seen


def test_what_is_asked_and_checked_tells_nothing_either(scene: Scene) -> None:
    body = {"demand": {"gpu": 5}, "pool": "shared"}
    for path in ("/requests:check", "/requests?dry_run=true"):
        assert WORD not in json.dumps(scene.alice.ok("POST", path, body))
    for action in ("cancel", "release", "renew"):
        for request in scene.others.values():
            answer = scene.alice("POST", f"/requests/{request}/{action}")
            assert answer.status in (403, 404) and WORD not in told(answer), (action, answer.body)
    renewed = scene.alice.ok("POST", "/requests:renew", {"requests": list(scene.others.values())})
    assert sorted(renewed["missing"]) == sorted(scene.others.values())


def test_nothing_can_be_found_out_by_asking_for_it(scene: Scene) -> None:
    """Whether a request of others is called so, is labelled so, or belongs to that run, the list does not say."""
    for condition in (
        f"name={WORD}-request",
        f"label={WORD}-key={WORD}-value",
        f"profile={WORD}-profile",
        f"subject=user:{WORD}-user",
    ):
        assert scene.alice.ok("GET", f"/requests?view=all&{condition}")["items"] == []
    assert scene.alice("GET", f"/requests?run={scene.run}").status == 404
    used = {"demand": {"gpu": 1}, "pool": "shared", "idempotency_key": f"{WORD}-again"}
    assert scene.alice("POST", "/requests", used).json["type"] == "idempotency-key-reused"
    taken = scene.alice("POST", "/requests", {"demand": {"gpu": 1}, "run": scene.run})
    assert taken.status == 404, "nobody gets into the runs of others"


def test_what_explains_the_wait_is_told(scene: Scene) -> None:
    """The team, what it asks for and since when, the status, and who holds what is missing."""
    seen = {item["id"]: item for item in scene.alice.ok("GET", "/requests?limit=1000")["items"]}
    whole = {item["id"]: item for item in scene.owner.ok("GET", "/requests?limit=1000")["items"]}
    assert set(seen) == set(whole)
    for status in ("allocated", "queued"):
        mine, theirs = seen[scene.others[status]], whole[scene.others[status]]
        assert mine["foreign"] and not theirs["foreign"]
        assert mine["subjects"] == ["team:theirs"]
        for key in ("status", "demand", "queued_at", "priority", "preemptible"):
            assert mine[key] == theirs[key]
    explanation = scene.alice.ok("GET", f"/requests/{scene.waiting}/explain")
    holders = explanation["candidates"][0]["holders"]
    assert scene.others["allocated"] in [holder["request"] for holder in holders]
    assert "team:theirs" in [holder["subject"] for holder in holders]


def test_finished_requests_of_others_are_not_there(scene: Scene) -> None:
    ids = {item["id"] for item in scene.alice.ok("GET", "/requests?view=all&limit=1000")["items"]}
    for status in ("released", "rejected"):
        assert scene.others[status] not in ids
        assert scene.alice("GET", f"/requests/{scene.others[status]}").status == 404


def test_the_event_stream_has_no_private_word_of_others(scene: Scene) -> None:
    answer = scene.alice.pool.request(
        "GET",
        f"{scene.alice.url}{API}/events?after=0",
        headers={"Authorization": f"Bearer {scene.alice.token}"},
        preload_content=False,
    )
    marker = scene.alice.ok("POST", "/requests", {"demand": {"gpu": 8}, "pool": "shared"})["id"]
    seen = b""
    for chunk in answer.stream(1):
        seen += chunk
        if marker.encode() in seen:
            break
    answer.close()
    assert WORD.encode() not in seen and scene.waiting.encode() in seen


def test_this_is_about_members(scene: Scene) -> None:
    assert right_of("request_list", Role.MEMBER).value == "own"

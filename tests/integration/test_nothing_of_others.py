"""Of others' requests a member learns what explains their own wait: no private word of theirs is in any answer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from fairpool.app.authz import Role
from fairpool.app.rights import right_of
from fairpool.server.gate import OPEN
from fairpool.wire.routes import API, ROUTES
from tests.integration.others import WORD, Scene, made_by, told
from tests.integration.serving import serving


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with serving(tmp_path_factory.mktemp("others")) as owner:
        yield made_by(owner)


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
        "workspaces": ["default", f"{WORD}-workspace"],
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
    taken = scene.alice("POST", "/requests", {"demand": {"gpu": 1}, "run": scene.run})
    assert taken.status == 404, "nobody gets into the runs of others"


def test_what_explains_the_wait_is_told(scene: Scene) -> None:
    """The team, what it asks for and since when, the status, and who holds what is missing."""
    seen = {item["id"]: item for item in scene.alice.ok("GET", "/requests?limit=1000")["items"]}
    whole = {item["id"]: item for item in scene.owner.ok("GET", "/requests?limit=1000")["items"]}
    assert set(seen) == set(whole) - {scene.away}
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

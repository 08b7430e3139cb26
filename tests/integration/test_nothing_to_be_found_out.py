"""What is not told of others is not found out either: by guessing, by filters, by prefixes, by asking as them."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.integration.others import WORD, Scene, made_by
from tests.integration.serving import Answer, serving


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with serving(tmp_path_factory.mktemp("found")) as owner:
        yield made_by(owner)


def beyond(answer: Answer, *said: str) -> str:
    """The whole answer, without what the caller has said."""
    text = answer.body.decode()
    for word in said:
        text = text.replace(word, "")
    return text


def test_a_request_of_others_cannot_be_repeated_and_tells_nothing_of_itself(scene: Scene) -> None:
    for status, request in scene.others.items():
        body = {"demand": {"gpu": 1}, "pool": "shared", "retry_of": request}
        for path in ("/requests", "/requests:check", "/requests?dry_run=true"):
            answer = scene.alice("POST", path, body)
            assert (answer.status, WORD in answer.body.decode()) == (404, False), (status, path, answer.body)


def test_nobody_gets_into_the_steps_of_others(scene: Scene) -> None:
    body = {"demand": {"gpu": 1}, "pool": "shared", "step": scene.step}
    assert scene.alice("POST", "/requests", body).status == 404
    assert scene.alice("POST", "/requests:bulk", {"requests": [body]}).status == 404
    shown = scene.owner.ok("GET", f"/steps/{scene.step}")["requests"]
    assert not [attempt for attempt in shown if attempt["policy"] == "team:mine"]


@pytest.mark.parametrize("said", [f"{WORD[:-1]}-profile", f"{WORD}-profil", f"{WORD}-profile"])
def test_a_profile_that_is_not_offered_is_not_guessed_at(scene: Scene, said: str) -> None:
    body = {"profile": said}
    for path in ("/requests", "/requests:check"):
        answer = scene.alice("POST", path, body)
        assert WORD not in beyond(answer, said), (path, answer.body)
    item = scene.alice.ok("POST", "/requests:bulk", {"requests": [body]})
    assert WORD not in json.dumps(item).replace(said, "")
    answer = scene.alice("GET", f"/queues/mine/{said}")
    assert (answer.status, WORD in beyond(answer, said)) == (404, False), answer.body


@pytest.mark.parametrize("said", [f"{WORD[:-1]}-pool", f"{WORD}-poo", "0"])
def test_a_pool_that_does_not_concern_them_is_not_guessed_at(scene: Scene, said: str) -> None:
    answer = scene.alice("POST", "/requests", {"demand": {"gpu": 1}, "pool": said})
    assert (answer.status, WORD in beyond(answer, said)) == (404, False), answer.body
    for path in (f"/requests?pool={said}", f"/requests?pool={WORD}-pool", f"/vaults/{said}"):
        answer = scene.alice("GET", path)
        assert (answer.status, WORD in beyond(answer, said, f"{WORD}-pool")) == (404, False), (path, answer.body)


def test_what_waits_or_runs_where_they_have_no_business_is_not_there(scene: Scene) -> None:
    assert scene.away not in {item["id"] for item in scene.alice.ok("GET", "/requests?limit=1000")["items"]}
    assert scene.away in {item["id"] for item in scene.owner.ok("GET", "/requests?limit=1000")["items"]}
    for said in (scene.away, scene.away[:-1]):
        assert scene.alice("GET", f"/requests/{said}").status == 404
    for path in ("/explain", "/history"):
        answer = scene.alice("GET", f"/requests/{scene.away}{path}")
        assert answer.status == 403 and WORD not in answer.body.decode(), (path, answer.body)
        assert scene.alice("GET", f"/requests/{scene.away[:-1]}{path}").status == 404


def test_finished_requests_of_others_are_as_if_they_had_never_been(scene: Scene) -> None:
    """By their ids and by what their ids begin with."""
    never = scene.others["released"][:-3] + "zzz"
    for request in (scene.others["released"], scene.others["rejected"], scene.others["preempted"], never):
        for method, path, body in (
            ("GET", "", None),
            ("GET", "/explain", None),
            ("GET", "/history", None),
            ("POST", "/cancel", {}),
            ("POST", "/release", {}),
            ("POST", "/renew", {}),
            ("POST", "/environment", None),
        ):
            for said in (request, request[:-2]):
                answer = scene.alice(method, f"/requests/{said}{path}", body)
                assert answer.status == 404, (method, path, answer.body)
                assert request not in beyond(answer, said), (method, path, answer.body)


def test_a_prefix_means_what_they_may_know_alone(scene: Scene) -> None:
    gone = {scene.others[status] for status in ("released", "rejected", "preempted")} | {scene.away}
    for path in ("", "/explain", "/history"):
        answer = scene.alice("GET", f"/requests/{scene.away[:2]}{path}")
        assert answer.status in (404, 409) and not [one for one in gone if one in answer.body.decode()], answer.body


def test_a_filter_finds_no_name_that_is_not_shown(scene: Scene) -> None:
    """Rules that concern them were made by somebody whom the answer does not name: neither does asking for the name."""
    for actor in (f"user:{WORD}-user", f"service-account:{WORD}-bot"):
        assert scene.alice.ok("GET", f"/history?limit=1000&actor={actor}")["items"] == []
        assert scene.alice.ok("GET", f"/history?limit=1000&after=0&actor={actor}")["items"] == []
    assert scene.alice.ok("GET", "/history?limit=1000&actor=user:alice")["items"]
    assert scene.owner.ok("GET", f"/history?limit=1000&actor=user:{WORD}-user")["items"]


def test_a_rule_that_spoke_of_somebody_does_not_name_them_after_it_has_changed_hands(scene: Scene) -> None:
    made = scene.owner.ok("POST", "/policies", {"pool": "spare", "subject": f"service-account:{WORD}-bot"})
    scene.owner.ok("PATCH", f"/policies/{made['id']}", {"subject": "component:local"})
    for path in (f"/policies/{made['id']}/history", "/history?limit=1000", f"/history?object={made['id']}"):
        answer = scene.alice("GET", path)
        assert answer.status == 200 and answer.json["items"] and WORD not in answer.body.decode(), (path, answer.body)


def test_an_idempotency_key_of_others_is_no_key_of_theirs(scene: Scene) -> None:
    """Else it could be found out, or taken away from them beforehand."""
    body = {"demand": {"gpu": 8}, "pool": "shared", "idempotency_key": f"{WORD}-again"}
    made = scene.alice.ok("POST", "/requests", body)
    assert made["id"] not in scene.others.values()
    assert scene.alice.ok("POST", "/requests", body)["id"] == made["id"]
    run = scene.owner.ok("POST", "/runs", {"name": "r"}, headers={"Idempotency-Key": f"{WORD}-run"})
    assert scene.alice.ok("POST", "/runs", {"name": "s"}, headers={"Idempotency-Key": f"{WORD}-run"})["id"] != run["id"]

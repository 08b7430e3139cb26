"""Input that is wrong is refused with its field, its value and what is possible, by a real server over a real file.

The rows are in wrong_input.py. Nothing has changed after any of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from fairpool.wire.problems import MEDIA_TYPE
from tests.integration.serving import Answer, Caller, serving
from tests.integration.wrong_input import TABLES, Row, ask, policy

BODY_LIMIT_MB = "0.05"


@dataclass(frozen=True)
class World:
    """A server with something in it, the ids of what is in it, and what it answers as long as nothing changes."""

    call: Caller
    ids: dict[str, str]
    state: object


def state(call: Caller) -> object:
    lists = ("/pools", "/policies", "/profiles", "/components", "/stacks", "/requests?view=all", "/runs")
    return [call.ok("GET", path) for path in (*lists, "/settings", "/history?limit=1")]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRPOOL_BODY_LIMIT_MB", BODY_LIMIT_MB)
        with serving(tmp_path_factory.mktemp("refusals")) as call:
            made = {"pool": call.ok("POST", "/pools", {"name": "gpus", "capacity": {"gpu": 8, "licence": 3}})}
            call.ok("POST", "/pools", {"name": "small", "capacity": {"gpu": 2}})
            call.ok("POST", "/pools", {"name": "noded", "nodes": [{"name": "n1", "capacity": {"gpu": 1}}]})
            made["policy"] = call.ok("POST", "/policies", policy(subject="team:red", reserved={"gpu": 4}))
            call.ok("POST", "/policies", policy(subject="team:blue", reserved={"gpu": 2}))
            call.ok("POST", "/components", {"name": "k8s"})
            call.ok("POST", "/profiles", {"name": "big", "demand": {"gpu": 2}, "pools": ["gpus"]})
            made["run"] = call.ok("POST", "/runs", {"name": "run"})
            made["request"] = call.ok("POST", "/requests", ask(lease_s=3600))
            yield World(call, {kind: found["id"] for kind, found in made.items()}, state(call))


def refused(answer: Answer, status: int, slug: str) -> dict[str, object]:
    assert (answer.status, answer.headers["content-type"]) == (status, MEDIA_TYPE), answer.body
    found: dict[str, object] = answer.json
    assert (found["status"], found["type"]) == (status, slug)
    assert found["title"]
    assert found["detail"]
    return found


@pytest.mark.parametrize(
    "row", [pytest.param(row, id=f"{table}: {row[0]}") for table, rows in TABLES.items() for row in rows]
)
def test_what_is_wrong_is_named_with_what_is_possible_and_changes_nothing(world: World, row: Row) -> None:
    _, call, body, (status, slug), field, words = row
    method, _, path = call.partition(" ")
    answer = world.call(method, path.format(**world.ids), body)
    found = refused(answer, status, slug)
    assert words.format(**world.ids) in answer.body.decode() or words in str(found["detail"]), found
    if field:
        assert field in [error["field"] for error in answer.json["errors"]]
    assert answer.body.decode().isprintable()
    assert state(world.call) == world.state


def test_a_stale_if_match_is_refused_and_says_what_the_version_is_now(world: World) -> None:
    changes: list[tuple[str, object]] = [
        ("/pools/gpus", {"backfill": False}),
        ("/policies/{policy}", {"priority": 3}),
        ("/profiles/big", {"description": "x"}),
        ("/components/k8s", {"description": "x"}),
        ("/stacks/default", {"description": "x"}),
    ]
    for path, body in changes:
        for method, sent in (("PATCH", body), ("DELETE", None)):
            answer = world.call(method, path.format(**world.ids), sent, headers={"If-Match": '"9"'})
            found = refused(answer, 412, "stale")
            assert "is at version 1, not 9: read it again" in str(found["detail"])
            assert answer.etag == '"1"'
    assert state(world.call) == world.state


def test_an_ambiguous_id_prefix_lists_what_it_could_mean(world: World) -> None:
    ids = [found["id"] for found in world.call.ok("GET", "/policies")["items"]]
    common = ids[0]
    while not all(found.startswith(common) for found in ids):
        common = common[:-1]
    found = refused(world.call("GET", f"/policies/{common}"), 409, "ambiguous-name")
    assert len(found["candidates"]) == 2  # type: ignore[arg-type]


def test_a_dry_run_refuses_the_same_and_changes_nothing(world: World) -> None:
    refused(world.call("POST", "/pools?dry_run=true", {"name": "gpus"}), 409, "already-exists")
    refused(world.call("POST", "/policies?dry_run=true", policy(limit={"gpu": 9})), 422, "invalid-rules")
    refused(world.call("PATCH", "/pools/gpus?dry_run=true", {"capacity": {"gpu": 5}}), 422, "invalid-rules")
    world.call.ok("POST", "/pools?dry_run=true", {"name": "dry", "capacity": {"gpu": 1}})
    refused(world.call("GET", "/pools/dry"), 404, "not-found")
    assert state(world.call) == world.state


def test_one_wrong_request_of_many_is_refused_alone(world: World) -> None:
    sent = {"requests": [ask(pool="gpuss"), ask(demand={"gpu": 1.5}), ask(subjects=["squad:x"]), ask(profile="bigg")]}
    items = world.call.ok("POST", "/requests:bulk", sent)["items"]
    assert [item["problem"]["type"] for item in items] == ["not-found", "invalid-input", "invalid-input", "not-found"]
    assert [item["request"] for item in items] == [None] * 4
    assert state(world.call) == world.state

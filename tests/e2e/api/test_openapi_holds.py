"""Every operation of the OpenAPI document, tried by every role with sound and unsound input: no server error, and no
answer that the document does not have.

schemathesis makes the input from the document. What it finds depends on a seed that stays the same, so that a failure
comes again.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import CheckFunction, not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from fairpool.app.rights import OF_INSTALLATION
from fairpool.wire.routes import ROUTES
from tests.integration.serving import Caller, serving

CHECKS: list[CheckFunction] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
ROLES = ("admin", "operator", "member", "viewer")
OWNER = "owner of the installation"
EXAMPLES = 6
"""For each operation, each tried by every role and by nobody: what fits into the minute that this may take."""

KNOWN = {
    "pool": "gpus",
    "pools": ["gpus"],
    "profile": "small",
    "subject": "team:red",
    "subjects": ["team:red"],
    "demand": {"gpu": 1},
    "reserved": {"gpu": 1},
    "limit": {"gpu": 2},
    "capacity": {"gpu": 8},
}
"""What stands in the bodies of calls that mean something here; schemathesis cannot guess names."""


@dataclass
class World:
    """A server with something of each kind in it, the token of each role, and the document as it tells it."""

    call: Caller
    tokens: dict[str, str]
    document: dict[str, Any]
    schema: Any
    refs: dict[str, str] = field(default_factory=dict)

    def stock(self) -> None:
        """Make what the calls before have deleted."""
        team = {"demand": {"gpu": 1}, "subjects": ["team:red"], "lease_s": 600}
        for path, body in (
            ("/pools", {"name": "gpus", "capacity": {"gpu": 4}}),
            ("/pools", {"name": "noded", "nodes": [{"name": "n1", "capacity": {"gpu": 1}}]}),
            ("/policies", {"pool": "gpus", "subject": "team:red"}),
            ("/profiles", {"name": "small", "demand": {"gpu": 1}, "pools": ["gpus"]}),
            ("/components", {"name": "k8s"}),
            ("/stacks", {"name": "prod"}),
            ("/runs", {"name": "a run"}),
            ("/requests", {**team, "pool": "gpus"}),
            ("/users", {"name": "passer-by"}),
            ("/teams", {"name": "red", "members": []}),
            ("/service-accounts", {"name": "ci"}),
            ("/workspaces", {"name": "research"}),
        ):
            made = self.call("POST", path, body)
            assert made.status < 500, made.body
            if made.status == 201:
                self.refs[path.strip("/")] = made.json["id"]
        step = self.call("POST", f"/runs/{self.refs['runs']}/steps", {"name": "step", "index": 0})
        if step.status == 201:
            self.refs["steps"] = step.json["id"]

    def ref(self, path: str) -> str:
        """Something that there is, of the kind that the path is about."""
        names = {
            "pools": "gpus",
            "profiles": "small",
            "components": "k8s",
            "stacks": "prod",
            "teams": "red",
            "workspaces": "research",
        }
        kind = path.removeprefix("/api/v1/").partition("/")[0].partition(":")[0]
        return names.get(kind) or self.refs.get(kind, "nothing")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRPOOL_RATE_PER_S", "0")
        with serving(tmp_path_factory.mktemp("api")) as call:
            tokens = {}
            for role in ROLES:
                call.ok("POST", "/users", {"name": f"the-{role}", "role": role})
                made = call.ok("POST", "/tokens", {"name": "t", "owner": f"user:the-{role}"})
                tokens[role] = made["token"]
            document = call.ok("GET", "/openapi.json")
            tokens[OWNER] = call.token
            yield World(call, tokens, document, schema_of(document, call.url))


def schema_of(document: dict[str, Any], url: str) -> Any:
    schema = schemathesis.openapi.from_dict(document)
    schema.config.update(base_url=url)
    return schema


def operation_of(schema: Any, name: str) -> Any:
    route = ROUTES[name]
    return schema[route.template][route.method]


def sensible(case: Any, world: World, choices: int) -> None:
    """Name what there is, in the path and in the body, as the bits of `choices` say."""
    if choices & 1 and case.path_parameters:
        case.path_parameters = {**case.path_parameters, **dict.fromkeys(case.path_parameters, "n1")}
        first = next(iter(case.path_parameters))
        case.path_parameters[first] = world.ref(case.operation.path)
    if choices & 2 and isinstance(case.body, dict):
        case.body = {key: KNOWN.get(key, value) for key, value in case.body.items()}
    if case.query and "wait_s" in case.query:
        case.query = {**case.query, "wait_s": "0.01" if choices & 4 else case.query["wait_s"]}
        if not choices & 4 and _is_long(case.query["wait_s"]):
            case.query = {**case.query, "wait_s": "0"}


def _is_long(value: object) -> bool:
    try:
        return float(str(value)) > 0
    except ValueError:
        return False


# Events have no end; and whoever signs out takes the tokens away that all the others need.
@pytest.mark.parametrize("name", sorted(set(ROUTES) - {"events", "sign_out"}))
def test_an_operation_answers_everybody_as_the_document_says(world: World, name: str) -> None:
    operation = operation_of(world.schema, name)
    world.stock()
    sound = operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
    unsound = operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=sound | unsound, choices=st.integers(0, 7))
    def attempt(case: Any, choices: int) -> None:
        sensible(case, world, choices)
        for role in (*ROLES, *([OWNER] if name in OF_INSTALLATION else []), "nobody"):
            headers = {"Authorization": f"Bearer {world.tokens[role]}"} if role in world.tokens else {}
            response = case.call(headers=headers, session=session)
            case.validate_response(response, checks=CHECKS, headers=headers)

    with closing(requests.Session()) as session:
        attempt()


def test_what_the_document_leaves_out_is_noticed(world: World) -> None:
    """The checks bite: with less in the document the very same answers are refused."""
    world.stock()
    for name, change in (("pool_list", _without_status), ("pool_list", _with_another_type), ("health", _without_media)):
        document = copy.deepcopy(world.document)
        route = ROUTES[name]
        change(document["paths"][route.template][route.method.lower()]["responses"])
        case = operation_of(schema_of(document, world.call.url), name).Case()
        response = case.call(headers={"Authorization": f"Bearer {world.call.token}"})
        with pytest.raises(FailureGroup):
            case.validate_response(response, checks=CHECKS)


def _without_status(responses: dict[str, Any]) -> None:
    responses["202"] = responses.pop("200")


def _with_another_type(responses: dict[str, Any]) -> None:
    responses["200"]["content"]["application/json"]["schema"] = {"type": "array"}


def _without_media(responses: dict[str, Any]) -> None:
    responses["200"]["content"] = {"text/html": {}}


@pytest.mark.parametrize("role", [*ROLES, "nobody"])
def test_the_event_stream_begins_or_is_refused_as_the_document_says(world: World, role: str) -> None:
    """The one operation that schemathesis cannot try, since its answer has no end."""
    headers = {"Authorization": f"Bearer {world.tokens[role]}"} if role in world.tokens else {}
    responses = world.document["paths"]["/api/v1/events"]["get"]["responses"]
    for query in ({}, {"after": "0"}, {"after": "x"}, {"kind": "nothing"}, {"odd": "1"}):
        url = f"{world.call.url}/api/v1/events"
        with requests.get(url, params=query, headers=headers, stream=True, timeout=90) as answer:
            documented = responses[str(answer.status_code)]["content"]
            assert answer.headers["content-type"].partition(";")[0] in documented
            assert answer.status_code < 500

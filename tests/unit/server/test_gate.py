"""What every call passes: the token, the host's name, the body's limits, failures as problem documents."""

from __future__ import annotations

import errno
import logging
from typing import Any

import pytest
from starlette.responses import Response
from starlette.types import ASGIApp

from fairpool.app.authz import Principal, Role
from fairpool.app.store_errors import StoreUnavailable
from fairpool.core.errors import InvalidRules
from fairpool.core.ids import Instant
from fairpool.core.policies import Subject
from fairpool.server.access_log import LINES_PER_S
from fairpool.server.application import create_app
from fairpool.server.calls import Call
from fairpool.server.endpoints import Endpoint
from fairpool.server.gate import LOOPBACK_HOSTS
from fairpool.server.identities import Identities, Tokens
from fairpool.server.services import Services
from fairpool.server.workspaces import Workspace, Workspaces
from fairpool.wire.pools import PoolCreate
from fairpool.wire.problems import MEDIA_TYPE
from tests.unit.server.asgi import TOKEN, Answer, ask

LIMIT = 200


async def read_pool(call: Call) -> Response:
    body = await call.body(PoolCreate)
    return Response(f"{body.name} {call.dry_run} {call.expected_version} {call.idempotency_key}")


async def list_pools(call: Call) -> Response:
    return Response(f"{call.page_size}")


async def fail(call: Call) -> Response:
    raise RuntimeError("secret details")


async def fill(call: Call) -> Response:
    raise OSError(errno.ENOSPC, "No space left on device")


async def lose(call: Call) -> Response:
    raise StoreUnavailable("/var/lib/x.db: busy")


async def contradict(call: Call) -> Response:
    raise InvalidRules("too much", field="reserved.gpu", value="9", possible="at most 4")


@pytest.fixture
def app() -> ASGIApp:
    endpoints = {
        "pool_create": Endpoint(handler=read_pool, summary="", is_local=True),
        "pool_list": Endpoint(handler=list_pools, summary="", is_local=True),
        "pool_get": Endpoint(handler=fail, summary="", is_local=True),
        "pool_delete": Endpoint(handler=fill, summary="", is_local=True),
        "policy_list": Endpoint(handler=contradict, summary="", is_local=True),
        "team_list": Endpoint(handler=lose, summary="", is_local=True),
        "health": Endpoint(handler=list_pools, summary="", is_local=True),
        "ready": Endpoint(handler=list_pools, summary="", is_local=True),
    }
    unused: Any = None  # these endpoints decide and read nothing
    services = Services(
        workspaces=Workspaces(Workspace(loop=unused, reader=unused)),
        clock=unused,
        identities=Identities(Tokens([TOKEN])),
        hosts=LOOPBACK_HOSTS,
        body_limit_bytes=LIMIT,
        has_work=lambda: False,
        started_at=Instant(0),
        version="0",
        database="none",
    )
    return create_app(services, endpoints)


def problem(answer: Answer, status: int, slug: str) -> dict[str, object]:
    assert answer.headers["content-type"] == MEDIA_TYPE
    found: dict[str, object] = answer.json
    assert (answer.status, found["status"], found["type"]) == (status, status, slug)
    return found


def test_a_call_with_the_token_is_let_in(app: ASGIApp) -> None:
    answer = ask(app, "POST", "/api/v1/pools", body={"name": "p"}, headers={"If-Match": '"7"', "Idempotency-Key": "k"})
    assert (answer.status, answer.body) == (200, b"p False 7 k")


@pytest.mark.parametrize("value", ["", "Bearer wrong", "Bearer", "Basic dTpw", f"Basic {TOKEN}", f"Bearer {TOKEN}x"])
def test_a_call_without_the_token_is_refused(app: ASGIApp, value: str) -> None:
    answer = ask(app, "GET", "/api/v1/pools", headers={"Authorization": value})
    problem(answer, 401, "unauthenticated")
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_only_health_and_readiness_are_told_without_a_token(app: ASGIApp) -> None:
    assert ask(app, "GET", "/healthz", headers={"Authorization": ""}).status == 200
    assert ask(app, "GET", "/readyz", headers={"Authorization": ""}).status == 200
    assert ask(app, "GET", "/metrics", headers={"Authorization": ""}).status == 401


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "10.0.0.1:80"])
def test_a_host_that_is_not_this_servers_is_refused_even_for_health(app: ASGIApp, host: str) -> None:
    problem(ask(app, "GET", "/healthz", headers={"Host": host}), 421, "wrong-host")


@pytest.mark.parametrize("host", ["localhost:8080", "127.0.0.1", "[::1]:99", "[::1]", "LOCALHOST"])
def test_loopback_names_are_served(app: ASGIApp, host: str) -> None:
    assert ask(app, "GET", "/healthz", headers={"Host": host}).status == 200


def test_of_two_tokens_or_names_that_differ_neither_counts(app: ASGIApp) -> None:
    """What is in front of the server may believe the one, and the server the other."""
    for name, values in (("authorization", ["Bearer x", f"Bearer {TOKEN}"]), ("host", ["evil.example", "127.0.0.1"])):
        for one, other in (values, values[::-1]):
            answer = ask(app, "GET", "/api/v1/pools", headers={name: one}, again={name: other})
            assert answer.status == (401 if name == "authorization" else 421)
    assert ask(app, "GET", "/api/v1/pools", again={"host": "127.0.0.1:80"}).status == 200


def test_an_unknown_route_is_a_problem_that_names_the_nearest(app: ASGIApp) -> None:
    assert "/api/v1/pools" in str(problem(ask(app, "GET", "/api/v1/pool"), 404, "unknown-route")["help"])


def test_a_method_that_a_route_does_not_take_is_a_problem_that_names_those_it_takes(app: ASGIApp) -> None:
    answer = ask(app, "PUT", "/api/v1/pools")
    problem(answer, 405, "method-not-allowed")
    assert answer.headers["allow"] == "GET, POST"


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limt=3", "limt"),
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("limit=x", "limit"),
        ("limit=%F0%9D%9F%8F", "limit"),
    ],
)
def test_query_parameters_are_read_strictly(app: ASGIApp, query: str, field: str) -> None:
    found = problem(ask(app, "GET", "/api/v1/pools", query=query), 422, "invalid-input")
    assert found["errors"][0]["field"] == field  # type: ignore[index]


@pytest.mark.parametrize(("header", "value"), [("If-Match", "7"), ("If-Match", '"x"'), ("Idempotency-Key", "k" * 201)])
def test_headers_are_read_strictly(app: ASGIApp, header: str, value: str) -> None:
    found = problem(
        ask(app, "POST", "/api/v1/pools", body={"name": "p"}, headers={header: value}), 422, "invalid-input"
    )
    assert found["errors"][0]["field"] == header  # type: ignore[index]


def test_a_body_that_is_not_json_is_refused_with_line_and_column(app: ASGIApp) -> None:
    found = problem(ask(app, "POST", "/api/v1/pools", body=b'{"name":\n  p}'), 400, "malformed-body")
    assert found["numbers"] == {"line": 2, "column": 3}
    assert "line 2, column 3" in str(found["detail"])


def test_a_body_over_the_limit_is_refused_with_the_limit(app: ASGIApp) -> None:
    found = problem(ask(app, "POST", "/api/v1/pools", body={"name": "p" * LIMIT}), 413, "body-too-large")
    assert found["numbers"] == {"limit": LIMIT, "size": LIMIT + 12}


def test_a_body_of_another_type_is_refused(app: ASGIApp) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    problem(ask(app, "POST", "/api/v1/pools", body=b"name=p", headers=headers), 415, "unsupported-media-type")


def test_rules_that_contradict_are_told_with_field_value_and_what_is_possible(app: ASGIApp) -> None:
    found = problem(ask(app, "GET", "/api/v1/policies"), 422, "invalid-rules")
    error = {"field": "reserved.gpu", "message": "too much", "value": "9", "possible": "at most 4"}
    assert found["errors"] == [error]


def test_a_full_disk_is_said_and_retried_later(app: ASGIApp) -> None:
    answer = ask(app, "DELETE", "/api/v1/pools/p")
    problem(answer, 507, "disk-full")
    assert int(answer.headers["retry-after"]) > 0


def test_where_the_database_is_and_what_it_says_is_told_to_who_holds_the_installations_token_alone(
    app: ASGIApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def mia(self: Identities, authorization: bytes) -> Principal:
        return Principal(subject=Subject.parse("user:mia"), role=Role.ADMIN, token="t")

    told = problem(ask(app, "GET", "/api/v1/teams"), 503, "unavailable")
    assert told["detail"] == "/var/lib/x.db: busy"
    monkeypatch.setattr(Identities, "of", mia)
    told = problem(ask(app, "GET", "/api/v1/teams"), 503, "unavailable")
    assert told["detail"] == "the database does not answer; the server's log says more"


def test_an_unexpected_error_leaks_nothing_but_an_incident_that_the_log_has(
    app: ASGIApp, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        answer = ask(app, "GET", "/api/v1/pools/p")
    found = problem(answer, 500, "internal-error")
    incident = str(found["instance"]).removeprefix("urn:fairpool:incident:")
    assert b"secret" not in answer.body
    assert incident in caplog.text
    assert "secret details" in caplog.text
    assert TOKEN not in caplog.text


def test_a_call_keeps_the_id_that_its_caller_gave_it_and_gets_one_otherwise(
    app: ASGIApp, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        refused = ask(app, "GET", "/api/v1/pools", headers={"Authorization": "", "X-Request-Id": "job-7.attempt_2"})
    assert refused.headers["x-request-id"] == "job-7.attempt_2"
    made = ask(app, "GET", "/api/v1/pools").headers["x-request-id"]
    assert made != ask(app, "GET", "/api/v1/pools").headers["x-request-id"]
    for odd in ("a b", "x" * 65, 'quote"', "new\tline"):
        assert ask(app, "GET", "/api/v1/pools", headers={"X-Request-Id": odd}).headers["x-request-id"] != odd


def test_each_failure_is_a_line_that_says_who_and_which_route_and_nothing_that_was_sent(
    app: ASGIApp, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        ask(app, "GET", "/api/v1/pools", query="limit=private")
        ask(app, "GET", "/api/v1/pools")
    (line,) = [record for record in caplog.records if record.name == "fairpool.server.access_log"]
    told = vars(line)["fields"]
    assert {key: value for key, value in told.items() if key != "ms"} == {
        "method": "GET",
        "route": "/api/v1/pools",
        "status": 422,
        "problem": "invalid-input",
        "actor": "local",
        "workspace": "default",
        "client": "127.0.0.1",
    }
    with caplog.at_level(logging.DEBUG):
        ask(app, "GET", "/api/v1/pools")
    assert vars(caplog.records[-1])["fields"]["status"] == 200


def test_failing_a_thousand_times_a_second_does_not_fill_the_log(
    app: ASGIApp, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr("fairpool.server.access_log.time.monotonic", lambda: now)
    with caplog.at_level(logging.INFO, logger="fairpool.server.access_log"):
        for _ in range(LINES_PER_S + 200):
            ask(app, "GET", "/api/v1/pools", headers={"Authorization": ""})
        assert len(caplog.records) == LINES_PER_S
        now = 101.0
        ask(app, "GET", "/api/v1/pools", headers={"Authorization": ""})
    assert "200 more calls failed" in caplog.text

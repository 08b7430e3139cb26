"""Who may do what: every cell of the table, over HTTP against a real server, with one's own and with others' things."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from fairpool.app.authz import Right, Role
from fairpool.app.rights import OF_INSTALLATION, RIGHTS, right_of
from fairpool.server.gate import OPEN
from fairpool.wire.routes import API, ROUTES
from tests.integration.rights_probes import MINE, NOWHERE, PROBES, THEIRS, Office
from tests.integration.serving import Caller, serving
from tests.waiting import wait_until

APART = {"events", "sign_out"}
SAME_FOR_ALL = {"service_account_list"}
"""Routes on which a person's own does not exist: only a service account is one of those."""


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    with pytest.MonkeyPatch.context() as surroundings:
        surroundings.setenv("FAIRPOOL_WEBHOOK_ALLOW_PRIVATE", "1")  # one that is tried calls where nothing listens
        surroundings.setenv("FAIRPOOL_VAULT_KEY", Fernet.generate_key().decode())
        yield from _office(tmp_path_factory.mktemp("rights"))


def _office(directory: Path) -> Iterator[Office]:
    with serving(directory) as owner:
        owner.ok("POST", "/workspaces", {"name": THEIRS})
        owner.ok("POST", "/users", {"name": "stranger"})
        owner.ok("POST", "/users", {"name": "root", "role": "admin"})
        for role in Role:
            owner.ok("POST", "/users", {"name": f"the-{role}", "role": role.value})
        owner.ok("POST", "/components", {"name": "spare"})
        owner.ok("POST", "/stacks", {"name": "spare", "orchestrator": "local"})
        for team, members in ((MINE, [f"the-{role}" for role in Role]), (THEIRS, ["stranger"])):
            owner.ok("POST", "/teams", {"name": team, "members": members})
            owner.ok("POST", "/service-accounts", {"name": f"bot-of-{team}", "teams": [team]})
            owner.ok(
                "POST",
                "/pools",
                {"name": team, "nodes": [{"name": f"{team}-1", "capacity": {"gpu": 2000}}]},
            )
            owner.ok("POST", "/policies", {"pool": team, "subject": f"team:{team}"})
            owner.ok("POST", "/profiles", {"name": f"one-{team}", "demand": {"gpu": 1}, "pools": [team]})
            owner.ok("POST", "/vaults", {"name": team})
            owner.ok(
                "POST", "/webhooks", {"name": team, "url": NOWHERE, "events": ["request.expired"], "enabled": False}
            )
        callers = {}
        for name in [*(f"the-{role}" for role in Role), "stranger"]:
            token = owner.ok("POST", "/tokens", {"name": "t", "owner": f"user:{name}"})["token"]
            callers[name.removeprefix("the-")] = Caller(owner.url, token)
        made = Office(owner, callers)
        for team in (MINE, THEIRS):
            made.request(team)
            made.run(team)
        yield made


def test_every_route_is_walked() -> None:
    assert set(PROBES) | APART | set(OPEN) == set(ROUTES) == set(RIGHTS)


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("route", PROBES)
def test_a_role_may_do_what_the_table_says_and_no_more(office: Office, route: str, role: Role) -> None:
    right = right_of(route, role)
    probe, let = PROBES[route]
    for team, is_let in ((MINE, right is not Right.NO), (THEIRS, right is Right.ALL)):
        method, path, body = probe(office, team, role.value)
        _goes_to(route, method, path)
        answer = office.callers[role.value](method, path, body)
        assert answer.status < 500, (route, role, team, answer.body)
        if right is Right.NO:
            assert (answer.status, answer.json["type"]) == (403, "forbidden"), (route, role, team, answer.body)
            assert role.value in answer.json["detail"], answer.body
            assert bool(answer.json["numbers"]["roles"]) is (route not in OF_INSTALLATION), answer.body
        elif route in SAME_FOR_ALL or is_about_services(route, right):
            assert answer.status in (200, 404), (route, role, team, answer.body)
        else:
            assert let(office, team, role.value, answer) is is_let, (route, role, team, answer.status, answer.body)


@pytest.mark.parametrize("route", sorted(OF_INSTALLATION))
def test_what_no_role_covers_the_installation_s_own_token_does(office: Office, route: str) -> None:
    probe, let = PROBES[route]
    for team in (MINE, THEIRS):
        answer = office.owner(*probe(office, team, Role.ADMIN.value))
        assert let(office, team, Role.ADMIN.value, answer), answer.body


def is_about_services(route: str, right: Right) -> bool:
    """Whether a person's own is meant of what can only be a service account's own."""
    return route == "service_account_get" and right is Right.OWN


def _goes_to(route: str, method: str, path: str) -> None:
    """The probe calls the route that it is for."""
    wanted = ROUTES[route]
    given = (path[1:] if path.startswith("//") else API + path).partition("?")[0].split("/")
    template = wanted.template.split("/")
    assert method == wanted.method and len(given) == len(template), (route, path)
    assert all("{" in want or want == have for want, have in zip(template, given, strict=True)), (route, path)


@pytest.mark.parametrize("role", Role)
def test_the_event_stream_tells_a_member_of_their_own_alone(office: Office, role: Role) -> None:
    caller = office.callers[role.value]
    after = office.owner.ok("GET", "/history?limit=1")["items"][0]["id"]
    theirs, mine = office.request(THEIRS), office.request(MINE)
    answer = caller.pool.request(
        "GET",
        f"{caller.url}{API}/events?after={after}",
        headers={"Authorization": f"Bearer {caller.token}"},
        preload_content=False,
    )
    seen = b""
    for chunk in answer.stream(1):
        seen += chunk
        if mine.encode() in seen:
            break
    answer.close()
    assert (theirs.encode() in seen) is (right_of("events", role) is Right.ALL)


def test_an_event_stream_ends_with_its_token(office: Office) -> None:
    made = office.owner.ok("POST", "/tokens", {"name": "stream", "owner": "user:the-member"})
    caller = Caller(office.owner.url, made["token"])
    answer = caller.pool.request(
        "GET",
        f"{caller.url}{API}/events",
        headers={"Authorization": f"Bearer {caller.token}"},
        preload_content=False,
    )
    assert next(answer.stream(1))
    office.owner.ok("DELETE", f"/tokens/{made['id']}")
    assert not [chunk for chunk in answer.stream(65_536) if b"data:" in chunk], "it ends, and says nothing more"


def test_a_call_that_waits_ends_without_an_answer_once_its_token_is_revoked(office: Office) -> None:
    made = office.owner.ok("POST", "/tokens", {"name": "poll", "owner": "user:the-member"})
    caller, request = Caller(office.owner.url, made["token"]), office.request(MINE)
    with ThreadPoolExecutor() as threads:
        answer = threads.submit(caller, "GET", f"/requests/{request}?wait_s=60")
        waits = re.compile(rb"^fairpool_http_requests_under_way 2(\.0)?$", re.MULTILINE)  # it, and who asks for this
        wait_until(lambda: waits.search(office.owner("GET", "//metrics").body), what="the call to wait")
        office.owner.ok("DELETE", f"/tokens/{made['id']}")
        office.owner.ok("POST", f"/requests/{request}/release", {"reason": "a word that is not for them"})
        told = answer.result()
    assert (told.status, told.json["type"]) == (401, "unauthenticated"), told.body


def test_the_whole_history_holds_nothing_of_vaults_for_who_may_not_read_theirs(office: Office) -> None:
    entries = {role: office.callers[role.value].ok("GET", "/history?kind=vault")["items"] for role in Role}
    assert {role for role, found in entries.items() if found} == {Role.ADMIN, Role.OPERATOR}

"""Two workspaces on one server: each has everything of its own, and nothing of one is seen in the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet

from fairpool.wire.routes import API, ROUTES
from tests.integration.serving import Answer, Caller, begin, end, serving
from tests.waiting import wait_until

HEADER = "Fairpool-Workspace"
NOWHERE = "http://127.0.0.1:9/"


class In:
    """The installation's own token, in one workspace."""

    def __init__(self, owner: Caller, workspace: str) -> None:
        self.owner = owner
        self.workspace = workspace

    def __call__(self, method: str, path: str, body: object = None, **headers: str) -> Answer:
        return self.owner(method, path, body, headers={HEADER: self.workspace, **headers})

    def ok(self, method: str, path: str, body: object = None) -> Any:
        return self.owner.ok(method, path, body, headers={HEADER: self.workspace})


@dataclass
class Half:
    """One of two workspaces with the same names in both: who may call there, and the ids of all that there is."""

    master: In
    admin: Caller
    member: Caller
    ids: Mapping[str, str]


def filled(owner: Caller, workspace: str) -> Half:
    """A workspace with one of everything that an id leads to."""
    master = In(owner, workspace)
    ids = {}
    for name, role in (("alice", "admin"), ("bob", "member")):
        ids["user"] = master.ok("POST", "/users", {"name": name, "role": role})["id"]
    ids["team"] = master.ok("POST", "/teams", {"name": "vision", "members": ["bob"]})["id"]
    ids["service-account"] = master.ok("POST", "/service-accounts", {"name": "ci"})["id"]
    ids["pool"] = master.ok("POST", "/pools", {"name": "shared", "capacity": {"gpu": 1}})["id"]
    ids["policy"] = master.ok("POST", "/policies", {"pool": "shared", "subject": "team:vision"})["id"]
    ids["profile"] = master.ok("POST", "/profiles", {"name": "one", "demand": {"gpu": 1}, "pools": ["shared"]})["id"]
    ids["vault"] = master.ok("POST", "/vaults", {"name": "vision", "environment": {"A": {"value": workspace}}})["id"]
    ids["component"] = master.ok("POST", "/components", {"name": "box"})["id"]
    ids["stack"] = master.ok("POST", "/stacks", {"name": "mine", "orchestrator": "box"})["id"]
    hook = {"name": "chat", "url": NOWHERE, "events": ["request.expired"], "enabled": False}
    ids["webhook"] = master.ok("POST", "/webhooks", hook)["id"]
    callers = []
    for name in ("alice", "bob"):
        made = master.ok("POST", "/tokens", {"name": "laptop", "owner": f"user:{name}"})
        ids["token"] = made["id"]
        callers.append(Caller(owner.url, made["token"]))
    admin, member = callers
    asked = {"demand": {"gpu": 1}, "name": "train", "idempotency_key": "the same"}
    ids["request"] = member.ok("POST", "/requests", asked)["id"]
    ids["run"] = member.ok("POST", "/runs", {"name": "nightly"})["id"]
    ids["step"] = member.ok("POST", f"/runs/{ids['run']}/steps", {"name": "train"})["id"]
    return Half(master, admin, member, ids)


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    with pytest.MonkeyPatch.context() as surroundings:
        surroundings.setenv("FAIRPOOL_VAULT_KEY", Fernet.generate_key().decode())
        surroundings.setenv("FAIRPOOL_WEBHOOK_ALLOW_PRIVATE", "1")
        with serving(tmp_path_factory.mktemp("workspaces")) as owner:
            yield owner


@pytest.fixture(scope="module")
def halves(installation: Caller) -> tuple[Half, Half]:
    installation.ok("POST", "/workspaces", {"name": "research", "description": "the lab"})
    return filled(installation, "default"), filled(installation, "research")


# ---- nothing of the other ------------------------------------------------------------------------------------------

LISTS = sorted(
    name
    for name, route in ROUTES.items()
    if route.method == "GET" and name.endswith("_list") and name not in ("workspace_list", "schema_list")
)


@pytest.mark.parametrize("route", [*LISTS, "history"])
def test_no_list_shows_anything_of_the_other_workspace(halves: tuple[Half, Half], route: str) -> None:
    path = ROUTES[route].path + ("?view=all" if route == "request_list" else "")
    for here, there in (halves, halves[::-1]):
        answers = [here.admin("GET", path), here.member("GET", path), here.master("GET", path)]
        seen = [answer for answer in answers if answer.status == 200]
        assert seen, [answer.body for answer in answers]
        for answer in seen:
            told = answer.body.decode()
            assert not [name for name, known in there.ids.items() if known in told], (route, told)
    kind = route.removesuffix("_list").replace("_", "-")
    if kind in halves[0].ids:
        assert halves[0].ids[kind] in halves[0].admin("GET", path).body.decode()


WITH_AN_ID = sorted(
    name for name, route in ROUTES.items() if "{" in route.path and not name.startswith(("workspace_", "schema_"))
)
OF = {"lease_renew": "request", "node_update": "pool", "queue_get": "", "stack_activate": "stack", "vault_rotate": ""}
BODIES: Mapping[str, object] = {
    "node_update": {"state": "cordoned"},
    "run_update": {"status": "completed"},
    "step_update": {"status": "completed"},
    "step_create": {"name": "other"},
}


@pytest.mark.parametrize("route", [name for name in WITH_AN_ID if OF.get(name, "?")])
def test_an_id_of_the_other_workspace_means_nothing_here(halves: tuple[Half, Half], route: str) -> None:
    kind = OF.get(route) or route.rpartition("_")[0].replace("_", "-").removesuffix("-member")
    kind = "run" if route == "step_create" else kind
    for here, there in (halves, halves[::-1]):
        template = ROUTES[route]
        known = there.ids[kind]
        path = template.path.format(ref=known, id=known, node="n", user="bob")
        body = BODIES.get(route, {} if template.method in ("PATCH", "POST") else None)
        for caller in (here.admin, here.master):
            answer = caller(template.method, path, body)
            assert (answer.status, answer.json["type"]) == (404, "not-found"), (path, answer.body)
        own = here.ids[kind]
        if template.method == "GET":
            assert here.master("GET", template.path.format(ref=own, id=own)).status == 200


def test_what_the_others_do_is_no_event_here(installation: Caller, halves: tuple[Half, Half]) -> None:
    here, there = halves
    for half, other in ((here, there), (there, here)):
        other.master.ok("PATCH", "/pools/shared", {"description": f"changed next to {half.master.workspace}"})
        half.master.ok("PATCH", "/pools/shared", {"description": "mine"})
        answer = half.admin.pool.request(
            "GET",
            f"{installation.url}{API}/events?after=0",
            headers={"Authorization": f"Bearer {half.admin.token}"},
            preload_content=False,
        )
        seen = b""
        for chunk in answer.stream(1):
            seen += chunk
            if b'"mine"' in seen:
                break
        answer.close()
        assert half.ids["pool"].encode() in seen
        assert not [name for name, known in other.ids.items() if known.encode() in seen]


def test_which_other_workspaces_there_are_is_in_nobody_else_s_history(
    installation: Caller, halves: tuple[Half, Half]
) -> None:
    assert installation.ok("GET", "/history?kind=workspace")["items"]
    for half in halves:
        assert half.admin.ok("GET", "/history?kind=workspace")["items"] == []
        assert '"kind":"workspace"' not in half.admin("GET", "/history?limit=1000").body.decode()


def test_metrics_tell_of_the_callers_workspace_alone_and_the_installation_of_all(
    installation: Caller, halves: tuple[Half, Half]
) -> None:
    here, there = halves
    for half, other in ((here, there), (there, here)):
        told = half.admin("GET", "//metrics").body.decode()
        assert f'workspace="{half.master.workspace}"' in told
        assert f'workspace="{other.master.workspace}"' not in told
        assert half.master("GET", "//metrics").body.decode().count(f'workspace="{other.master.workspace}"') == 0
        for metric in ("fairpool_grants_total", "fairpool_http_requests_total", "fairpool_pool_capacity"):
            assert f"{metric}{{" in told, metric
    everything = installation("GET", "//metrics").body.decode()
    for workspace in ("default", "research"):
        for metric in ("fairpool_leading", "fairpool_pool_capacity"):
            lines = [line for line in everything.splitlines() if line.startswith(f"{metric}{{")]
            assert [line for line in lines if f'workspace="{workspace}"' in line and line.endswith(" 1.0")], lines


def test_both_hold_their_own_gpu_by_the_same_idempotency_key(halves: tuple[Half, Half]) -> None:
    for half in halves:
        assert half.member.ok("GET", f"/requests/{half.ids['request']}")["status"] == "allocated"
    assert halves[0].ids["request"] != halves[1].ids["request"]


def test_readiness_names_no_workspace_to_strangers(installation: Caller, halves: tuple[Half, Half]) -> None:
    stranger = Caller(installation.url, "nobody")
    answer = stranger("GET", "//readyz")
    assert answer.status == 200 and b"research" not in answer.body


# ---- naming one ----------------------------------------------------------------------------------------------------


def test_a_token_of_a_workspace_is_about_that_one_and_may_name_it(halves: tuple[Half, Half]) -> None:
    research = halves[1].admin
    assert research.ok("GET", "/whoami")["workspace"] == "research"
    assert research.ok("GET", "/whoami", headers={HEADER: "research"})["workspace"] == "research"


def test_a_token_of_a_workspace_opens_no_other(halves: tuple[Half, Half]) -> None:
    for named in ("default", "elsewhere", ""):
        answer = halves[1].admin("GET", "/whoami", headers={HEADER: named})
        assert (answer.status, answer.json["type"]) == (403, "forbidden")
        assert "research" in answer.json["detail"] and "--workspace" in answer.json["help"]


def test_the_installation_s_token_is_at_home_in_all_of_them(installation: Caller, halves: tuple[Half, Half]) -> None:
    assert installation.ok("GET", "/whoami")["workspace"] == "default"
    assert In(installation, "research").ok("GET", "/whoami")["workspace"] == "research"
    answer = In(installation, "resarch")("GET", "/pools")
    assert (answer.status, answer.json["type"]) == (404, "not-found")
    assert "fairpool workspace create" in answer.json["help"]


def test_workspaces_are_the_installation_s_to_make_and_delete(halves: tuple[Half, Half]) -> None:
    for half in halves:
        for method, path, body in (
            ("POST", "/workspaces", {"name": "mine"}),
            ("PATCH", "/workspaces/research", {"description": "ours"}),
            ("DELETE", "/workspaces/research", None),
        ):
            answer = half.admin(method, path, body)
            assert (answer.status, answer.json["type"]) == (403, "forbidden"), answer.body
            assert "token" in answer.json["help"] and "data folder" in answer.json["help"]
        listed = half.member.ok("GET", "/workspaces")["items"]
        assert [one["name"] for one in listed] == [half.master.workspace]
        other = halves[0] if half is halves[1] else halves[1]
        assert half.admin("GET", f"/workspaces/{other.master.workspace}").status == 404
        assert half.admin("GET", f"/workspaces/{half.master.workspace}").status == 200


def test_the_installation_sees_and_describes_all(installation: Caller, halves: tuple[Half, Half]) -> None:
    assert [one["name"] for one in installation.ok("GET", "/workspaces")["items"]] == ["default", "research"]
    answer = installation("PATCH", "/workspaces/research", {"description": "the new lab"}, headers={"If-Match": '"1"'})
    assert (answer.status, answer.json["description"], answer.json["version"]) == (200, "the new lab", 2)
    assert installation("POST", "/workspaces", {"name": "research"}).status == 409
    assert installation("POST", "/workspaces", {"name": "default"}).status == 409
    assert installation("POST", "/workspaces", {"name": "no/name"}).status == 422


# ---- the end of one ------------------------------------------------------------------------------------------------


def gone(owner: Caller, name: str) -> bool:
    return owner("GET", f"/workspaces/{name}").status == 404


def test_a_workspace_at_work_is_not_deleted(installation: Caller, halves: tuple[Half, Half]) -> None:
    answer = installation("DELETE", "/workspaces/research")
    assert (answer.status, answer.json["type"]) == (409, "in-use")
    assert answer.json["numbers"] == {"queued": 0, "active": 1, "runs": 1}
    assert installation.ok("GET", "/workspaces/research")["state"] == "open"


def test_the_workspace_default_stays(installation: Caller) -> None:
    answer = installation("DELETE", "/workspaces/default")
    assert (answer.status, answer.json["type"]) == (409, "conflict")


def test_a_deleted_workspace_is_gone_with_its_tokens_and_one_of_its_name_begins_empty(installation: Caller) -> None:
    installation.ok("POST", "/workspaces", {"name": "short"})
    short = In(installation, "short")
    short.ok("POST", "/users", {"name": "eve", "role": "admin"})
    token = short.ok("POST", "/tokens", {"name": "t", "owner": "user:eve"})["token"]
    eve = Caller(installation.url, token)
    eve.ok("POST", "/pools", {"name": "shared", "capacity": {"gpu": 4}})
    eve.ok("POST", "/requests", {"demand": {"gpu": 1}, "subjects": ["component:local"], "name": "r"})
    request = eve.ok("GET", "/requests")["items"][0]
    eve.ok("POST", f"/requests/{request['id']}/cancel")
    along = installation.ok("DELETE", "/workspaces/short?dry_run=true")
    assert (along["users"], along["pools"]) == (1, 1)
    assert installation.ok("GET", "/workspaces/short")["state"] == "open"
    installation.ok("DELETE", "/workspaces/short")
    wait_until(lambda: gone(installation, "short"), what="the workspace to go")
    assert eve("GET", "/whoami").status == 401
    assert short("GET", "/pools").status == 404
    told = [entry["what"] for entry in installation.ok("GET", "/history?kind=workspace&named=short")["items"]]
    assert sorted(told) == ["created", "deleted", "erased", "state changed"]
    installation.ok("POST", "/workspaces", {"name": "short"})
    for path in ("/users", "/pools", "/requests?view=all", "/tokens", "/runs"):
        assert short.ok("GET", path)["items"] == [], path
    counted = short("GET", "//metrics").body.decode()
    assert 'fairpool_decisions_total{workspace="short"}' in counted
    assert "fairpool_requests_submitted_total{" not in counted
    assert eve("GET", "/whoami").status == 401
    installation.ok("DELETE", "/workspaces/short")
    wait_until(lambda: gone(installation, "short"), what="the workspace to go")


def test_workspaces_come_back_with_the_server(tmp_path: Path) -> None:
    owner = begin(tmp_path)
    try:
        owner.ok("POST", "/workspaces", {"name": "research"})
        In(owner, "research").ok("POST", "/pools", {"name": "shared", "capacity": {"gpu": 1}})
        end(tmp_path)
        owner = begin(tmp_path)
        assert [one["name"] for one in In(owner, "research").ok("GET", "/pools")["items"]] == ["shared"]
        assert owner.ok("GET", "/pools")["items"] == []
    finally:
        end(tmp_path)

"""For every route a call with what is the caller's own and one with what is others', and how to see whether it was let.

`mine` and `theirs` are teams with a pool, a policy, a profile, a vault, requests and runs each; the callers are in
`mine`. What a call uses up is made anew for it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.integration.serving import Answer, Caller

MINE, THEIRS = "mine", "theirs"
NOWHERE = "http://127.0.0.1:9/"


@dataclass
class Office:
    """A server with two teams, and a caller for each role."""

    owner: Caller
    callers: dict[str, Caller]
    numbers: itertools.count[int] = field(default_factory=itertools.count)

    def new(self, word: str) -> str:
        """A name that nothing has yet."""
        return f"{word}{next(self.numbers)}"

    def request(self, team: str, **said: object) -> str:
        """A request that holds a GPU, of that team."""
        subjects = ["component:local", f"team:{team}"]
        body = {"demand": {"gpu": 1}, "subjects": subjects, "name": f"of-{team}", **said}
        return str(self.owner.ok("POST", "/requests", body)["id"])

    def run(self, team: str) -> str:
        """A run of that team."""
        return str(self.owner.ok("POST", "/runs", {"name": f"of-{team}", "team": team})["id"])

    def step(self, team: str) -> str:
        """A step of a run of that team."""
        return str(self.owner.ok("POST", f"/runs/{self.run(team)}/steps", {"name": "train"})["id"])

    def policy(self, team: str) -> str:
        """The policy of that team."""
        return str(self.owner.ok("GET", f"/policies?subject=team:{team}")["items"][0]["id"])

    def user(self, team: str, role: str) -> str:
        """Somebody: the caller, or one of the other team."""
        return f"the-{role}" if team == MINE else "stranger"


Probe = Callable[[Office, str, str], tuple[str, str, object]]
"""office, team, role → method, path, body."""

Let = Callable[[Office, str, str, Answer], bool]
"""office, team, role, answer → whether the caller was let do it, with all there is of it."""


def plainly(office: Office, team: str, role: str, answer: Answer) -> bool:
    return answer.status not in (401, 403, 404)


def listed(name: Callable[[Office, str, str], str], key: str = "name") -> Let:
    """Whether the answer's list has the thing."""

    def let(office: Office, team: str, role: str, answer: Answer) -> bool:
        return answer.status == 200 and name(office, team, role) in [item[key] for item in answer.json["items"]]

    return let


def _called(team: str) -> str:
    return f"of-{team}"


def _whole(office: Office, team: str, role: str, answer: Answer) -> bool:
    return answer.status == 200 and not answer.json["foreign"] and answer.json["name"] == _called(team)


def _whole_in_list(office: Office, team: str, role: str, answer: Answer) -> bool:
    return answer.status == 200 and _called(team) in [item["name"] for item in answer.json["items"]]


def _renewed(office: Office, team: str, role: str, answer: Answer) -> bool:
    return answer.status == 200 and not answer.json["missing"]


def _each_made(office: Office, team: str, role: str, answer: Answer) -> bool:
    return answer.status == 200 and answer.json["items"][0]["problem"] is None


def _remembered(office: Office, team: str, role: str, answer: Answer) -> bool:
    return answer.status == 200 and bool(answer.json["items"])


def call(method: str, path: str, body: object = None) -> Probe:
    """A call that is the same for everybody."""
    return lambda office, team, role: (method, path.format(team=team, role=role), body)


def made(method: str, path: str, make: Callable[[Office, str], str], body: object = None) -> Probe:
    """A call about a thing that is made for it."""
    return lambda office, team, role: (method, path.format(id=make(office, team)), body)


def fresh(path: str, word: str, **body: object) -> Probe:
    """A call that makes something, tried out."""
    return lambda office, team, role: ("POST", f"{path}?dry_run=true", {"name": office.new(word), **body})


def _ask(team: str) -> dict[str, Any]:
    return {"demand": {"gpu": 1}, "subjects": ["component:local", f"team:{team}"]}


def _bulk(office: Office, team: str, role: str) -> tuple[str, str, object]:
    return "POST", "/requests:bulk", {"requests": [_ask(team)]}


def _user(method: str, path: str, body: object = None) -> Probe:
    return lambda office, team, role: (method, path.format(user=office.user(team, role)), body)


def _token(office: Office, team: str, role: str) -> tuple[str, str, object]:
    return "POST", "/tokens", {"name": office.new("t"), "owner": f"user:{office.user(team, role)}"}


def _revoked(office: Office, team: str, role: str) -> tuple[str, str, object]:
    found = office.owner.ok("POST", *_token(office, team, role)[1:])
    return "DELETE", f"/tokens/{found['id']}", None


def _policy(method: str, path: str, body: object = None) -> Probe:
    return made(method, path, Office.policy, body)


def _environment(office: Office, team: str, role: str) -> tuple[str, str, object]:
    if team == THEIRS or role == "viewer":
        return "POST", f"/requests/{office.request(team)}/environment", None
    # Only to whoever made it, whatever else they may do.
    request = office.callers[role].ok("POST", "/requests", _ask(MINE))["id"]
    return "POST", f"/requests/{request}/environment", None


_PEOPLE_UPDATE: dict[str, object] = {"description": "x"}

PROBES: dict[str, tuple[Probe, Let]] = {
    "pool_list": (call("GET", "/pools"), listed(lambda office, team, role: team)),
    "pool_create": (fresh("/pools", "p", capacity={"gpu": 1}), plainly),
    "pool_get": (call("GET", "/pools/{team}"), plainly),
    "pool_update": (call("PATCH", "/pools/{team}?dry_run=true", {"description": "x"}), plainly),
    "pool_delete": (call("DELETE", "/pools/{team}?dry_run=true&on_work=drain"), plainly),
    "pool_history": (call("GET", "/pools/{team}/history"), plainly),
    "node_update": (call("PATCH", "/pools/{team}/nodes/{team}-1?dry_run=true", {"state": "cordoned"}), plainly),
    "policy_list": (call("GET", "/policies"), listed(lambda office, team, role: f"team:{team}", "subject")),
    "policy_create": (
        lambda office, team, role: (
            "POST",
            "/policies?dry_run=true",
            {"pool": team, "subject": f"team:{office.new('t')}"},
        ),
        plainly,
    ),
    "policy_get": (_policy("GET", "/policies/{id}"), plainly),
    "policy_update": (_policy("PATCH", "/policies/{id}?dry_run=true", {"priority": 1}), plainly),
    "policy_delete": (_policy("DELETE", "/policies/{id}?dry_run=true"), plainly),
    "policy_history": (_policy("GET", "/policies/{id}/history"), plainly),
    "profile_list": (call("GET", "/profiles"), listed(lambda office, team, role: f"one-{team}")),
    "profile_create": (
        lambda office, team, role: (
            "POST",
            "/profiles?dry_run=true",
            {"name": office.new("q"), "demand": {"gpu": 1}, "pools": [team]},
        ),
        plainly,
    ),
    "profile_get": (call("GET", "/profiles/one-{team}"), plainly),
    "profile_update": (call("PATCH", "/profiles/one-{team}?dry_run=true", {"description": "x"}), plainly),
    "profile_delete": (call("DELETE", "/profiles/one-{team}?dry_run=true"), plainly),
    "queue_list": (call("GET", "/queues"), listed(lambda office, team, role: f"{team}/one-{team}")),
    "queue_get": (call("GET", "/queues/{team}/one-{team}"), plainly),
    "vault_list": (call("GET", "/vaults"), listed(lambda office, team, role: team)),
    "vault_create": (
        lambda office, team, role: ("POST", "/vaults?dry_run=true", {"name": office.new("v")}),
        lambda office, team, role, answer: answer.status != 403,
    ),
    "vault_get": (call("GET", "/vaults/{team}"), plainly),
    "vault_update": (call("PATCH", "/vaults/{team}?dry_run=true", {"description": "x"}), plainly),
    "vault_delete": (call("DELETE", "/vaults/{team}?dry_run=true"), plainly),
    "vault_history": (call("GET", "/vaults/{team}/history"), plainly),
    "vault_rotate": (call("POST", "/vaults:rotate"), plainly),
    "component_list": (call("GET", "/components"), plainly),
    "component_create": (fresh("/components", "c"), plainly),
    "component_get": (call("GET", "/components/local"), plainly),
    "component_update": (call("PATCH", "/components/local?dry_run=true", {"description": "x"}), plainly),
    "component_delete": (call("DELETE", "/components/spare?dry_run=true"), plainly),
    "stack_list": (call("GET", "/stacks"), plainly),
    "stack_create": (fresh("/stacks", "s", orchestrator="local"), plainly),
    "stack_get": (call("GET", "/stacks/default"), plainly),
    "stack_update": (call("PATCH", "/stacks/default?dry_run=true", {"description": "x"}), plainly),
    "stack_delete": (call("DELETE", "/stacks/spare?dry_run=true"), plainly),
    "stack_activate": (call("POST", "/stacks/default/activate"), plainly),
    "plan": (call("POST", "/plan", {"documents": []}), plainly),
    "apply": (call("POST", "/apply", {"documents": []}), plainly),
    "schema_list": (call("GET", "/schemas"), plainly),
    "schema_get": (call("GET", "/schemas/pool"), plainly),
    "request_list": (call("GET", "/requests?limit=1000"), _whole_in_list),
    "request_create": (lambda office, team, role: ("POST", "/requests", _ask(team)), plainly),
    "request_bulk": (_bulk, _each_made),
    "request_check": (lambda office, team, role: ("POST", "/requests:check", _ask(team)), plainly),
    "request_get": (made("GET", "/requests/{id}", Office.request), _whole),
    "request_explain": (made("GET", "/requests/{id}/explain", Office.request), plainly),
    "request_environment": (_environment, plainly),
    "request_history": (made("GET", "/requests/{id}/history", Office.request), plainly),
    "request_cancel": (made("POST", "/requests/{id}/cancel", Office.request), plainly),
    "request_release": (made("POST", "/requests/{id}/release", Office.request), plainly),
    "lease_renew": (made("POST", "/requests/{id}/renew", Office.request), plainly),
    "lease_bulk": (
        lambda office, team, role: ("POST", "/requests:renew", {"requests": [office.request(team)]}),
        _renewed,
    ),
    "run_list": (call("GET", "/runs?limit=1000"), listed(lambda office, team, role: _called(team))),
    "run_create": (lambda office, team, role: ("POST", "/runs", {"name": "r", "team": team}), plainly),
    "run_get": (made("GET", "/runs/{id}", Office.run), plainly),
    "run_update": (made("PATCH", "/runs/{id}", Office.run, {"status": "running"}), plainly),
    "step_create": (made("POST", "/runs/{id}/steps", Office.run, {"name": "s"}), plainly),
    "step_get": (made("GET", "/steps/{id}", Office.step), plainly),
    "step_update": (made("PATCH", "/steps/{id}", Office.step, {"status": "running"}), plainly),
    "user_list": (call("GET", "/users"), listed(Office.user)),
    "user_create": (fresh("/users", "u"), plainly),
    "user_get": (_user("GET", "/users/{user}"), plainly),
    "user_update": (_user("PATCH", "/users/{user}?dry_run=true", _PEOPLE_UPDATE), plainly),
    "user_delete": (call("DELETE", "/users/stranger?dry_run=true"), plainly),
    "team_list": (call("GET", "/teams"), listed(lambda office, team, role: team)),
    "team_create": (fresh("/teams", "t"), plainly),
    "team_get": (call("GET", "/teams/{team}"), plainly),
    "team_update": (call("PATCH", "/teams/{team}?dry_run=true", _PEOPLE_UPDATE), plainly),
    "team_delete": (call("DELETE", "/teams/{team}?dry_run=true"), plainly),
    "team_member_add": (call("PUT", "/teams/{team}/members/stranger?dry_run=true"), plainly),
    "team_member_remove": (call("DELETE", "/teams/{team}/members/stranger?dry_run=true"), plainly),
    "service_account_list": (call("GET", "/service-accounts"), plainly),
    "service_account_create": (fresh("/service-accounts", "a"), plainly),
    "service_account_get": (call("GET", "/service-accounts/bot-of-{team}"), plainly),
    "service_account_update": (
        call("PATCH", "/service-accounts/bot-of-{team}?dry_run=true", _PEOPLE_UPDATE),
        plainly,
    ),
    "service_account_delete": (call("DELETE", "/service-accounts/bot-of-{team}?dry_run=true"), plainly),
    "token_list": (
        call("GET", "/tokens"),
        lambda office, team, role, answer: (
            f"user:{office.user(team, role)}" in [token["owner"] for token in answer.json.get("items", [])]
        ),
    ),
    "token_create": (_token, plainly),
    "token_revoke": (_revoked, plainly),
    # `mine` and `theirs` are of one workspace; the other one has the name of the other team.
    "workspace_list": (
        call("GET", "/workspaces"),
        listed(lambda office, team, role: "default" if team == MINE else THEIRS),
    ),
    "workspace_create": (fresh("/workspaces", "w"), plainly),
    "workspace_get": (
        lambda office, team, role: ("GET", f"/workspaces/{'default' if team == MINE else THEIRS}", None),
        plainly,
    ),
    "workspace_update": (call("PATCH", "/workspaces/theirs?dry_run=true", {"description": "x"}), plainly),
    "workspace_delete": (call("DELETE", "/workspaces/theirs?dry_run=true"), plainly),
    "webhook_list": (call("GET", "/webhooks"), listed(lambda office, team, role: team)),
    "webhook_create": (fresh("/webhooks", "w", url=NOWHERE, events=["request.granted"]), plainly),
    "webhook_get": (call("GET", "/webhooks/{team}"), plainly),
    "webhook_update": (call("PATCH", "/webhooks/{team}?dry_run=true", {"description": "x"}), plainly),
    "webhook_delete": (call("DELETE", "/webhooks/{team}?dry_run=true"), plainly),
    "webhook_secret": (call("POST", "/webhooks/{team}/secret"), plainly),
    "webhook_test": (call("POST", "/webhooks/{team}/test"), plainly),
    "history": (
        lambda office, team, role: ("GET", f"/history?kind=request&object={office.request(team)}", None),
        _remembered,
    ),
    "settings_get": (call("GET", "/settings"), plainly),
    "settings_update": (call("PATCH", "/settings", {}), plainly),
    "whoami": (call("GET", "/whoami"), plainly),
    "server_info": (call("GET", "/server"), plainly),
    "openapi": (call("GET", "/openapi.json"), plainly),
    "metrics": (call("GET", "//metrics"), plainly),
}
"""Every route that lets nobody in without a token, but for `events`, which has a test of its own, and `sign_out`."""

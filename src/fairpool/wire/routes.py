"""Every route of API v1 by name: the one list that the server serves and the client calls.

`{ref}` in a path takes a name, an id or a unique id prefix; in `{id}` only an id or a prefix of one makes sense.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final
from urllib.parse import quote

API: Final = "/api/v1"
WORKSPACE_HEADER: Final = "Fairpool-Workspace"
"""Names the workspace that a call is about. A token of a workspace needs none: it is about that one."""


@dataclass(frozen=True, slots=True)
class Route:
    """A method and a path template below the API's root (or, with `root`, below the server's).

    query: the query parameters that it takes; any other is refused. What each means is in `QUERY`.
    open_query: others are let pass: somebody else writes the address, and adds to it what they like.
    """

    method: str
    path: str
    query: tuple[str, ...] = ()
    root: bool = False
    open_query: bool = False

    @property
    def template(self) -> str:
        """The whole path, with its parameters in braces."""
        return self.path if self.root else API + self.path

    def url(self, **parameters: str) -> str:
        """The whole path with its parameters filled in and escaped."""
        return self.template.format(**{name: quote(value, safe="") for name, value in parameters.items()})


@dataclass(frozen=True, slots=True)
class Parameter:
    """A query parameter: its JSON schema type, what it means, and the words it may be where they are a closed set.

    several: it may be given several times. bounds: what else a JSON schema says of it.
    """

    kind: str
    meaning: str
    words: tuple[str, ...] = ()
    several: bool = False
    bounds: Mapping[str, int | str] = field(default_factory=dict)


QUERY: Final = MappingProxyType(
    {
        "limit": Parameter(
            "integer",
            "Items in a page, from 1 to 1000; 100 where it is left out.",
            bounds={"minimum": 1, "maximum": 1000},
        ),
        "cursor": Parameter("string", "The `next_cursor` of the page before.", bounds={"pattern": r"^\d{1,18}$"}),
        "dry_run": Parameter("boolean", "Check and answer as if done, and change nothing."),
        "wait_s": Parameter(
            "number",
            "Wait up to so many seconds (at most 60) for a change before answering. After a submit: until the request "
            "is no longer queued. On a request: until its version is above `after_version` or, without that, until its "
            "status is another one. A request that is final answers at once.",
            bounds={"minimum": 0},
        ),
        "after_version": Parameter(
            "integer",
            "The version that the caller knows already; see `wait_s`.",
            bounds={"minimum": 0, "maximum": 10**9},
        ),
        "pool": Parameter("string", "Only what concerns this pool (name, id or unique id prefix)."),
        "subject": Parameter("string", "Only what concerns this subject; `component:` may be left off."),
        "status": Parameter("string", "Only requests in this status; several are separated by commas."),
        "view": Parameter(
            "string",
            "Which requests: waiting, holding something, either (`live`), or finished ones too.",
            ("queued", "active", "live", "all"),
        ),
        "profile": Parameter("string", "Only what concerns this profile."),
        "order": Parameter("string", "Which come first, by when they were made; `newest`.", ("newest", "oldest")),
        "name": Parameter("string", "Only requests of exactly this name."),
        "run": Parameter("string", "Only what belongs to this run."),
        "label": Parameter(
            "string", "Only what carries this label, written `key=value`; may be given several times.", several=True
        ),
        "owner": Parameter("string", "Only tokens of this user or service account (`user:alice`)."),
        "kind": Parameter("string", "Only this kind of thing (`request`, `pool`, `policy`, …)."),
        "object": Parameter("string", "Only this object, by id."),
        "named": Parameter("string", "Only what has ever gone by this name, under its other names too."),
        "rules": Parameter("boolean", "Only of rules and rights: not of requests, runs and steps."),
        "actor": Parameter("string", "Only what this one did (`user:alice`)."),
        "since": Parameter("string", "Only from this moment on, such as `2026-11-21T08:00:00Z`."),
        "until": Parameter("string", "Only before this moment."),
        "at": Parameter("string", "Everything as it was at this moment of the past, such as `2026-11-21T08:00:00Z`."),
        "after": Parameter(
            "integer", "Only entries with a higher id than this.", bounds={"minimum": 0, "maximum": 10**17}
        ),
        "port": Parameter(
            "integer",
            "The port of its own machine on which a program waits for the browser.",
            bounds={"minimum": 1024, "maximum": 65_535},
        ),
        "state": Parameter("string", "What comes back unchanged, so that whoever waits knows their own sign-in."),
        "challenge": Parameter("string", "The challenge to the verifier of whoever signs in (RFC 7636, S256)."),
        "code": Parameter("string", "The provider's code."),
        "error": Parameter("string", "Why the provider sends no code."),
        "on_work": Parameter(
            "string",
            "What happens to work that waits or runs there: `refuse` to delete while there is any, `drain` (delete "
            "when the last has ended), `let-go` (queued requests are rejected, running work ends unaccounted).",
            ("refuse", "drain", "let-go"),
        ),
    }
)
"""What each query parameter means; one meaning on every route."""

_PAGED = ("limit", "cursor")

ROUTES: Final = MappingProxyType(
    {
        "pool_list": Route("GET", "/pools", ("at", *_PAGED)),
        "pool_create": Route("POST", "/pools", ("dry_run",)),
        "pool_get": Route("GET", "/pools/{ref}", ("at",)),
        "pool_update": Route("PATCH", "/pools/{ref}", ("dry_run",)),
        "pool_delete": Route("DELETE", "/pools/{ref}", ("on_work", "dry_run")),
        "pool_history": Route("GET", "/pools/{ref}/history", _PAGED),
        "node_update": Route("PATCH", "/pools/{ref}/nodes/{node}", ("dry_run",)),
        "policy_list": Route("GET", "/policies", ("pool", "subject", "at", *_PAGED)),
        "policy_create": Route("POST", "/policies", ("dry_run",)),
        "policy_get": Route("GET", "/policies/{id}", ("at",)),
        "policy_update": Route("PATCH", "/policies/{id}", ("dry_run",)),
        "policy_delete": Route("DELETE", "/policies/{id}", ("dry_run",)),
        "policy_history": Route("GET", "/policies/{id}/history", _PAGED),
        "profile_list": Route("GET", "/profiles", ("at", *_PAGED)),
        "profile_create": Route("POST", "/profiles", ("dry_run",)),
        "profile_get": Route("GET", "/profiles/{ref}", ("at",)),
        "profile_update": Route("PATCH", "/profiles/{ref}", ("dry_run",)),
        "profile_delete": Route("DELETE", "/profiles/{ref}", ("dry_run",)),
        "queue_list": Route("GET", "/queues", ("subject", "profile", *_PAGED)),
        "queue_get": Route("GET", "/queues/{owner}/{profile}"),
        "vault_list": Route("GET", "/vaults", _PAGED),
        "vault_create": Route("POST", "/vaults", ("dry_run",)),
        "vault_get": Route("GET", "/vaults/{ref}"),
        "vault_update": Route("PATCH", "/vaults/{ref}", ("dry_run",)),
        "vault_delete": Route("DELETE", "/vaults/{ref}", ("dry_run",)),
        "vault_history": Route("GET", "/vaults/{ref}/history", _PAGED),
        "vault_rotate": Route("POST", "/vaults:rotate"),
        "component_list": Route("GET", "/components", _PAGED),
        "component_create": Route("POST", "/components", ("dry_run",)),
        "component_get": Route("GET", "/components/{ref}"),
        "component_update": Route("PATCH", "/components/{ref}", ("dry_run",)),
        "component_delete": Route("DELETE", "/components/{ref}", ("dry_run",)),
        "stack_list": Route("GET", "/stacks", _PAGED),
        "stack_create": Route("POST", "/stacks", ("dry_run",)),
        "stack_get": Route("GET", "/stacks/{ref}"),
        "stack_update": Route("PATCH", "/stacks/{ref}", ("dry_run",)),
        "stack_delete": Route("DELETE", "/stacks/{ref}", ("dry_run",)),
        "stack_activate": Route("POST", "/stacks/{ref}/activate"),
        "plan": Route("POST", "/plan"),
        "apply": Route("POST", "/apply"),
        "schema_list": Route("GET", "/schemas"),
        "schema_get": Route("GET", "/schemas/{kind}"),
        "request_list": Route(
            "GET",
            "/requests",
            ("view", "status", "pool", "subject", "profile", "name", "run", "label", "order", "at", *_PAGED),
        ),
        "request_create": Route("POST", "/requests", ("wait_s", "dry_run")),
        "request_bulk": Route("POST", "/requests:bulk"),
        "request_check": Route("POST", "/requests:check"),
        "request_get": Route("GET", "/requests/{id}", ("wait_s", "after_version")),
        "request_explain": Route("GET", "/requests/{id}/explain"),
        "request_environment": Route("POST", "/requests/{id}/environment"),
        "request_history": Route("GET", "/requests/{id}/history", _PAGED),
        "request_cancel": Route("POST", "/requests/{id}/cancel"),
        "request_release": Route("POST", "/requests/{id}/release"),
        "lease_renew": Route("POST", "/requests/{id}/renew"),
        "lease_bulk": Route("POST", "/requests:renew"),
        "run_list": Route("GET", "/runs", ("label", *_PAGED)),
        "run_create": Route("POST", "/runs"),
        "run_get": Route("GET", "/runs/{ref}"),
        "run_update": Route("PATCH", "/runs/{ref}"),
        "step_create": Route("POST", "/runs/{ref}/steps"),
        "step_get": Route("GET", "/steps/{id}"),
        "step_update": Route("PATCH", "/steps/{id}"),
        "user_list": Route("GET", "/users", ("at", *_PAGED)),
        "user_create": Route("POST", "/users", ("dry_run",)),
        "user_get": Route("GET", "/users/{ref}", ("at",)),
        "user_update": Route("PATCH", "/users/{ref}", ("dry_run",)),
        "user_delete": Route("DELETE", "/users/{ref}", ("dry_run",)),
        "team_list": Route("GET", "/teams", ("at", *_PAGED)),
        "team_create": Route("POST", "/teams", ("dry_run",)),
        "team_get": Route("GET", "/teams/{ref}", ("at",)),
        "team_update": Route("PATCH", "/teams/{ref}", ("dry_run",)),
        "team_delete": Route("DELETE", "/teams/{ref}", ("dry_run",)),
        "team_member_add": Route("PUT", "/teams/{ref}/members/{user}", ("dry_run",)),
        "team_member_remove": Route("DELETE", "/teams/{ref}/members/{user}", ("dry_run",)),
        "service_account_list": Route("GET", "/service-accounts", ("at", *_PAGED)),
        "service_account_create": Route("POST", "/service-accounts", ("dry_run",)),
        "service_account_get": Route("GET", "/service-accounts/{ref}", ("at",)),
        "service_account_update": Route("PATCH", "/service-accounts/{ref}", ("dry_run",)),
        "service_account_delete": Route("DELETE", "/service-accounts/{ref}", ("dry_run",)),
        "token_list": Route("GET", "/tokens", ("owner", *_PAGED)),
        "token_create": Route("POST", "/tokens"),
        "token_revoke": Route("DELETE", "/tokens/{ref}"),
        "workspace_list": Route("GET", "/workspaces", _PAGED),
        "workspace_create": Route("POST", "/workspaces", ("dry_run",)),
        "workspace_get": Route("GET", "/workspaces/{ref}"),
        "workspace_update": Route("PATCH", "/workspaces/{ref}", ("dry_run",)),
        "workspace_delete": Route("DELETE", "/workspaces/{ref}", ("dry_run",)),
        "webhook_list": Route("GET", "/webhooks", _PAGED),
        "webhook_create": Route("POST", "/webhooks", ("dry_run",)),
        "webhook_get": Route("GET", "/webhooks/{ref}"),
        "webhook_update": Route("PATCH", "/webhooks/{ref}", ("dry_run",)),
        "webhook_delete": Route("DELETE", "/webhooks/{ref}", ("dry_run",)),
        "webhook_secret": Route("POST", "/webhooks/{ref}/secret"),
        "webhook_test": Route("POST", "/webhooks/{ref}/test"),
        "history": Route(
            "GET", "/history", ("kind", "object", "named", "rules", "actor", "since", "until", "after", *_PAGED)
        ),
        "events": Route("GET", "/events", ("kind", "object", "run", "after")),
        "settings_get": Route("GET", "/settings"),
        "settings_update": Route("PATCH", "/settings"),
        "sign_in_options": Route("GET", "/sign-in"),
        "sign_in_begin": Route("GET", "/sign-in/begin", ("port", "state", "challenge")),
        "sign_in_callback": Route("GET", "/login/callback", ("state", "code", "error"), root=True, open_query=True),
        "sign_in_device": Route("POST", "/sign-in/device"),
        "sign_in_poll": Route("POST", "/sign-in/poll"),
        "sign_in_exchange": Route("POST", "/sign-in/exchange"),
        "sign_out": Route("POST", "/sign-out"),
        "whoami": Route("GET", "/whoami"),
        "server_info": Route("GET", "/server"),
        "openapi": Route("GET", "/openapi.json"),
        "health": Route("GET", "/healthz", root=True),
        "ready": Route("GET", "/readyz", root=True),
        "metrics": Route("GET", "/metrics", root=True),
    }
)

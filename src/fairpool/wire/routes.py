"""Every route of API v1 by name: the one list that the server serves and the client calls.

`{ref}` in a path takes a name, an id or a unique id prefix; in `{id}` only an id or a prefix of one makes sense.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final
from urllib.parse import quote

API: Final = "/api/v1"


@dataclass(frozen=True, slots=True)
class Route:
    """A method and a path template below the API's root (or, with `root`, below the server's)."""

    method: str
    path: str
    root: bool = False

    @property
    def template(self) -> str:
        """The whole path, with its parameters in braces."""
        return self.path if self.root else API + self.path

    def url(self, **parameters: str) -> str:
        """The whole path with its parameters filled in and escaped."""
        return self.template.format(**{name: quote(value, safe="") for name, value in parameters.items()})


ROUTES: Final = MappingProxyType(
    {
        "pool_list": Route("GET", "/pools"),
        "pool_create": Route("POST", "/pools"),
        "pool_get": Route("GET", "/pools/{ref}"),
        "pool_update": Route("PATCH", "/pools/{ref}"),
        "pool_delete": Route("DELETE", "/pools/{ref}"),
        "pool_history": Route("GET", "/pools/{ref}/history"),
        "node_update": Route("PATCH", "/pools/{ref}/nodes/{node}"),
        "policy_list": Route("GET", "/policies"),
        "policy_create": Route("POST", "/policies"),
        "policy_get": Route("GET", "/policies/{id}"),
        "policy_update": Route("PATCH", "/policies/{id}"),
        "policy_delete": Route("DELETE", "/policies/{id}"),
        "policy_history": Route("GET", "/policies/{id}/history"),
        "profile_list": Route("GET", "/profiles"),
        "profile_create": Route("POST", "/profiles"),
        "profile_get": Route("GET", "/profiles/{ref}"),
        "profile_update": Route("PATCH", "/profiles/{ref}"),
        "profile_delete": Route("DELETE", "/profiles/{ref}"),
        "component_list": Route("GET", "/components"),
        "component_create": Route("POST", "/components"),
        "component_get": Route("GET", "/components/{ref}"),
        "component_update": Route("PATCH", "/components/{ref}"),
        "component_delete": Route("DELETE", "/components/{ref}"),
        "stack_list": Route("GET", "/stacks"),
        "stack_create": Route("POST", "/stacks"),
        "stack_get": Route("GET", "/stacks/{ref}"),
        "stack_update": Route("PATCH", "/stacks/{ref}"),
        "stack_delete": Route("DELETE", "/stacks/{ref}"),
        "stack_activate": Route("POST", "/stacks/{ref}/activate"),
        "request_list": Route("GET", "/requests"),
        "request_create": Route("POST", "/requests"),
        "request_bulk": Route("POST", "/requests:bulk"),
        "request_check": Route("POST", "/requests:check"),
        "request_get": Route("GET", "/requests/{id}"),
        "request_explain": Route("GET", "/requests/{id}/explain"),
        "request_history": Route("GET", "/requests/{id}/history"),
        "request_cancel": Route("POST", "/requests/{id}/cancel"),
        "request_release": Route("POST", "/requests/{id}/release"),
        "lease_renew": Route("POST", "/requests/{id}/renew"),
        "lease_bulk": Route("POST", "/requests:renew"),
        "run_list": Route("GET", "/runs"),
        "run_create": Route("POST", "/runs"),
        "run_get": Route("GET", "/runs/{ref}"),
        "run_update": Route("PATCH", "/runs/{ref}"),
        "step_create": Route("POST", "/runs/{ref}/steps"),
        "step_get": Route("GET", "/steps/{id}"),
        "step_update": Route("PATCH", "/steps/{id}"),
        "history": Route("GET", "/history"),
        "events": Route("GET", "/events"),
        "settings_get": Route("GET", "/settings"),
        "settings_update": Route("PATCH", "/settings"),
        "server_info": Route("GET", "/server"),
        "openapi": Route("GET", "/openapi.json"),
        "health": Route("GET", "/healthz", root=True),
        "ready": Route("GET", "/readyz", root=True),
        "metrics": Route("GET", "/metrics", root=True),
    }
)

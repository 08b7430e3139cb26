"""The ASGI application: the endpoint table on the routes of API v1, behind the gate."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response
from starlette.routing import Route as PathRoute
from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope, Send

from fairpool.app.authz import Principal, Right
from fairpool.app.errors import Ambiguous, NotFound, NotLeading
from fairpool.app.rights import OF_INSTALLATION, right_of_caller, roles_for
from fairpool.app.store_errors import StaleLeader
from fairpool.server.calls import Call
from fairpool.server.concerns import discreet
from fairpool.server.endpoints import Endpoint, body_limit
from fairpool.server.failures import not_found
from fairpool.server.gate import Gate
from fairpool.server.lookups import reading
from fairpool.server.problems import Refused
from fairpool.server.routes import ENDPOINTS
from fairpool.server.services import Services
from fairpool.server.workspaces import Workspace
from fairpool.wire.model import NUL
from fairpool.wire.problems import Slug
from fairpool.wire.reading import nearest, shown
from fairpool.wire.routes import API, ROUTES

__all__ = ["create_app"]


def create_app(services: Services, endpoints: Mapping[str, Endpoint] = ENDPOINTS) -> ASGIApp:
    """The application over these services."""
    router = _router(services, endpoints)
    return Gate(
        router,
        identities=services.identities,
        hosts=services.hosts,
        metrics=services.metrics,
        doorkeeper=services.doorkeeper,
        vouching=services.forwarding.vouching,
    )


def _router(services: Services, endpoints: Mapping[str, Endpoint]) -> ASGIApp:
    by_path: dict[str, dict[str, str]] = {}
    # What is called most is looked for first: the router tries one path after the other.
    for name in sorted(endpoints, key=lambda name: not name.startswith(("request_", "lease_"))):
        by_path.setdefault(ROUTES[name].template, {})[ROUTES[name].method] = name
    paths = [PathRoute(path, _ByMethod(path, names, services, endpoints)) for path, names in by_path.items()]
    router = Router(paths, redirect_slashes=False, default=_NoRoute(tuple(by_path)))
    return _Paths({path.path: path.app for path in paths if not path.param_convertors}, router)


class _Paths:
    """Finds the path. plain: those that name no object, which need no comparing with one pattern after the other."""

    def __init__(self, plain: Mapping[str, ASGIApp], others: ASGIApp) -> None:
        self._plain = plain
        self._others = others

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = self._plain.get(scope["path"]) if scope["type"] == "http" else None
        await (found or self._others)(scope, receive, send)


class _ByMethod:
    """One path: picks the endpoint by method."""

    def __init__(
        self, path: str, names: Mapping[str, str], services: Services, endpoints: Mapping[str, Endpoint]
    ) -> None:
        self._path = path
        self._services = services
        self._endpoints = {method: (name, endpoints[name]) for method, name in names.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["fairpool.route"] = self._path
        if NUL in scope["path"]:  # no name holds it, and not every database can even be asked for it
            raise Refused(
                Slug.NO_ROUTE, f"there is no {shown(scope['path'])}", guidance="no name holds the character NUL"
            )
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        found = self._endpoints.get(method)
        if found is None:
            allowed = ", ".join(sorted(self._endpoints))
            raise Refused(
                Slug.NO_METHOD,
                f"{self._path} does not take {shown(scope['method'])}",
                guidance=f"it takes {allowed}",
                headers={"Allow": allowed},
            )
        name, endpoint = found
        principal = scope["fairpool.principal"]
        right = _right(name, endpoint, principal)
        workspace = await _workspace(self._services, name, endpoint, principal)
        scope["fairpool.workspace"] = workspace.name
        call = Call(
            scope,
            receive,
            services=self._services,
            workspace=workspace,
            route=ROUTES[name],
            right=right,
            body_limit=body_limit(endpoint, self._services.body_limit_bytes),
        )
        call.check_query()
        response = await _answer(call, endpoint)
        await response(scope, receive, send)


def _right(route: str, endpoint: Endpoint, principal: Principal | None) -> Right:
    """How far the caller may use the route. Raises Refused where not at all."""
    if principal is None:
        return Right.NO  # one of the few that anybody may call: there is nothing to be within reach
    right = right_of_caller(route, principal)
    if right is Right.NO and route in OF_INSTALLATION:
        raise Refused(
            Slug.FORBIDDEN,
            f"the installation's own token alone covers this, not the role {principal.role}: {endpoint.summary}",
            guidance="whoever runs the servers has it, in the file 'token' of a server's data folder (fairpool doctor "
            "shows where, over there); --token or FAIRPOOL_TOKEN shows it",
            numbers={"role": principal.role.value, "roles": []},
        )
    if right is Right.NO:
        able = " or ".join(roles_for(route))
        raise Refused(
            Slug.FORBIDDEN,
            f"the role {principal.role} does not cover this: {endpoint.summary}",
            guidance=f"the role {able} does; an admin gives roles with 'fairpool user update NAME --role ROLE'",
            numbers={"role": principal.role.value, "roles": [role.value for role in roles_for(route)]},
        )
    return right


async def _workspace(services: Services, route: str, endpoint: Endpoint, principal: Principal | None) -> Workspace:
    """The workspace that a call is about: the caller's; where nobody is one yet, the one that they sign in to."""
    if endpoint.of_installation:
        return services.workspaces.default
    if principal is not None:
        return await services.workspaces.of(principal.workspace)
    if services.sign_ins is not None and route.startswith("sign_in_"):
        return await services.workspaces.of(services.sign_ins.settings.workspace)
    return services.workspaces.default


async def _answer(call: Call, endpoint: Endpoint) -> Response:
    """What this server answers, or the one that decides where the call needs that."""
    if not endpoint.is_local and not call.workspace.loop.is_leading:
        return await _forwarded(call)
    try:
        return await endpoint.handler(call)
    except (NotFound, Ambiguous) as error:
        told = await _discreet(call, error)
        raise (not_found(told, call.field_of(told.ref)) if isinstance(told, NotFound) else told) from None
    except (NotLeading, StaleLeader):
        # It has just lost the leadership. Nothing was changed: the next one can do it all.
        if endpoint.is_local:
            raise
        return await _forwarded(call)


async def _discreet(call: Call, error: NotFound | Ambiguous) -> NotFound | Ambiguous:
    """The same refusal, without names that are not for the caller."""
    if call.right is not Right.OWN:
        return error
    return await reading(call, lambda reader: discreet(reader, error, call.reach))


async def _forwarded(call: Call) -> Response:
    """What the server answers that decides."""
    workspace, body = call.workspace, await call.payload()
    return await call.services.forwarding.forward(
        call.scope,
        body,
        workspace=workspace.name,
        leader=workspace.loop.leader_address,
        wait_s=call.wait_s if "wait_s" in call.route.query else 0,
    )


class _NoRoute:
    """Answers calls of paths that do not exist."""

    def __init__(self, paths: tuple[str, ...]) -> None:
        self._paths = paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        meant = nearest(path, self._paths)
        raise Refused(
            Slug.NO_ROUTE,
            f"there is no {shown(path)}",
            guidance=(f"did you mean {meant}? " if meant else "") + f"{API}/openapi.json lists all routes",
        )

"""What every call passes on its way in and out: its id, the host's name, the token, failures as problems, counts."""

from __future__ import annotations

import logging

from starlette.types import ASGIApp, Receive, Scope, Send

from fairpool.app.authz import Principal
from fairpool.app.store_errors import StoreUnavailable
from fairpool.server.access_log import AccessLog
from fairpool.server.failures import refusal_of, unavailable
from fairpool.server.identities import Identities, in_workspace
from fairpool.server.limits import Doorkeeper
from fairpool.server.logs import REQUEST_ID, about
from fairpool.server.metrics import Metrics
from fairpool.server.passage import Passage
from fairpool.server.problems import Refused, respond
from fairpool.server.vouching import Vouching
from fairpool.wire.problems import Slug
from fairpool.wire.reading import quoted
from fairpool.wire.routes import ROUTES, WORKSPACE_HEADER

log = logging.getLogger(__name__)

OPEN = ("health", "ready", *(name for name in ROUTES if name.startswith("sign_in_")))
OPEN_PATHS = frozenset(ROUTES[name].template for name in OPEN)
"""Paths that answer without a token: that the process lives and can serve is no secret; signing in ends with one."""

_WORKSPACE = WORKSPACE_HEADER.lower().encode()

LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})
"""Names by which a browser page cannot reach a loopback server through a name of its own (DNS rebinding)."""


class Gate:
    """The outermost layer of the server.

    hosts: names by which this server may be addressed; empty lets any through.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        identities: Identities,
        hosts: frozenset[str],
        metrics: Metrics,
        doorkeeper: Doorkeeper,
        vouching: Vouching,
    ) -> None:
        self._app = app
        self._identities = identities
        self._hosts = hosts
        self._metrics = metrics
        self._doorkeeper = doorkeeper
        self._vouching = vouching
        self._log = AccessLog()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        self._metrics.begin()
        passage = Passage(scope, send)
        REQUEST_ID.set(passage.id)  # each call has a context of its own
        scope["client"] = self._vouching.caller(scope) or scope.get("client")
        try:
            await self._let_in(scope)
            await self._app(scope, receive, passage.send)
        except Exception as error:
            refused = _as_refused(error, scope, passage.id)
            if passage.status:
                raise  # too late to say anything else: the connection breaks, which the client sees
            scope["fairpool.problem"] = refused.problem.type
            await respond(refused)(scope, receive, passage.send)
        finally:
            took_s = passage.took_s()
            self._metrics.end(scope, passage.status, took_s)
            self._log.note(scope, passage.status, took_s)

    async def _let_in(self, scope: Scope) -> None:
        """Find out who calls, and see that it is not too often: before anything of the body is read."""
        try:
            principal = scope["fairpool.principal"] = await self._admit(scope)
        except Refused:
            await self._doorkeeper.let_in(scope, None)
            raise
        await self._doorkeeper.let_in(scope, principal)

    async def _admit(self, scope: Scope) -> Principal | None:
        """Who calls; None where anybody may."""
        said: dict[bytes, bytes] = {}
        for name, value in scope["headers"]:
            # Of two that differ, what is in front of the server may believe the other one: neither counts.
            said[name] = b"" if said.get(name, value) != value else value
        self._check_host(said.get(b"host", b"").decode("latin-1"))
        if scope["path"] in OPEN_PATHS:
            return None
        named = said.get(_WORKSPACE)
        principal = await self._identities.of(said.get(b"authorization", b""))
        return in_workspace(principal, None if named is None else named.decode("latin-1"))

    def _check_host(self, host: str) -> None:
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        if self._hosts and name.lower() not in self._hosts:
            raise Refused(
                Slug.WRONG_HOST,
                f"this server does not go by the name {quoted(host)}",
                guidance="call it by one of: " + ", ".join(sorted(self._hosts)),
            )


def _as_refused(error: Exception, scope: Scope, incident: str) -> Refused:
    known = refusal_of(error)
    if known is not None:
        if known.problem.status >= 500:
            log.warning("not served: %s", known.problem.detail, extra=about(route=scope.get("fairpool.route")))
        who: Principal | None = scope.get("fairpool.principal")
        if isinstance(error, StoreUnavailable) and (who is None or who.subject is not None):
            # Where it is, and what it says, is for whoever runs the server.
            return unavailable("the database does not answer; the server's log says more")
        return known
    log.error("incident %s", incident, exc_info=error, extra=about(route=scope.get("fairpool.route")))
    return Refused(
        Slug.INTERNAL,
        f"an error of the server's own; its log has it as incident {incident}",
        guidance="report it with the incident's entry in the log (fairpool doctor shows where the log is)",
        instance=f"urn:fairpool:incident:{incident}",
    )

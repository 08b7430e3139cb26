"""One call as a handler sees it: its query, headers and body, read strictly."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.types import Receive, Scope

from fairpool.app.authz import Principal, Reach, Right
from fairpool.app.rights import right_of_caller
from fairpool.core.ids import SECOND, Instant
from fairpool.server.identities import in_workspace
from fairpool.server.passage import BEGAN, WAITED, header
from fairpool.server.problems import Refused
from fairpool.server.sent_bodies import SentBody
from fairpool.wire.model import NUL
from fairpool.wire.pages import DEFAULT_PAGE, MAX_PAGE
from fairpool.wire.problems import FieldProblem, Slug
from fairpool.wire.reading import InvalidBody, nearest, quoted, read, shown, unkept
from fairpool.wire.routes import QUERY, ROUTES, WORKSPACE_HEADER, Route

if TYPE_CHECKING:
    from fairpool.server.services import Services
    from fairpool.server.workspaces import Workspace

Model = TypeVar("Model", bound=BaseModel)

MAX_WAIT_S = 60.0
"""The longest that one call waits for a change; a client that wants to wait longer asks again."""

MAX_KEY_LENGTH = 200  # of an idempotency key; a UUID has 36
_NUL = rb"\u0000"
_NO_QUERY = QueryParams()
_WORKSPACE = WORKSPACE_HEADER.lower().encode()
_ETAG = re.compile(r'\s*(?:W/)?"(\d{1,18})"\s*')


class Call:
    """What a handler works with."""

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        *,
        services: Services,
        workspace: Workspace,
        route: Route,
        right: Right = Right.ALL,
        body_limit: int,
    ) -> None:
        self._request = Request(scope, receive)
        self._query = self._request.query_params if scope.get("query_string") else _NO_QUERY
        self._body = SentBody(self._request, limit=body_limit, lane=services.large_bodies)
        self.services = services
        self.workspace = workspace
        self.route = route
        self.right = right
        self.path: dict[str, str] = scope.get("path_params", {})
        self._sent: object = None

    @property
    def scope(self) -> Scope:
        """The call as it came over the connection."""
        return self._request.scope

    @property
    def principal(self) -> Principal:
        """Who calls. Only for routes that let nobody in without a token."""
        principal = self._request.scope["fairpool.principal"]
        assert isinstance(principal, Principal), "the gate lets nobody else through"
        return principal

    @property
    def reach(self) -> Reach:
        """What the caller may use this route with: everything, or what is theirs."""
        return Reach(principal=self.principal, right=self.right)

    async def reach_now(self) -> Reach:
        """As `reach`, for a call that lasts: its token may have been revoked meanwhile, its owner have another role or
        be in other teams. Raises Refused."""
        authorization = (header(self.scope, b"authorization") or "").encode("latin-1")
        principal = in_workspace(await self.services.identities.of(authorization), self.workspace_named)
        name = next(name for name, route in ROUTES.items() if route is self.route)
        right = right_of_caller(name, principal)
        if right is Right.NO:
            raise Refused(Slug.FORBIDDEN, f"the role {principal.role} does not cover this any more")
        return Reach(principal=principal, right=right)

    @property
    def workspace_named(self) -> str | None:
        """The workspace that the caller names; None for their own."""
        return header(self.scope, _WORKSPACE)

    @property
    def source(self) -> str:
        """From where the call comes, for the history: the address, and which token."""
        client = self.scope.get("client")
        address = str(client[0]) if client else ""
        principal = self.scope["fairpool.principal"]
        name = principal.token_name if principal is not None else ""  # nobody yet: an open route
        if not name:
            return address
        return f"{address}, token {name}" if address else f"token {name}"

    @property
    def cookies(self) -> dict[str, str]:
        """The cookies that a browser sent."""
        return self._request.cookies

    def check_query(self) -> None:
        """Refuse query parameters that this route does not take, or takes once and got twice."""
        given = self._query
        for name in given:
            if name not in self.route.query:
                if self.route.open_query:
                    continue  # a provider's own words, which nobody keeps
                meant = nearest(name, self.route.query)
                known = ", ".join(self.route.query) or "none"
                hint = f": did you mean {meant!r}?" if meant else ""
                raise invalid(name, f"unknown query parameter {quoted(name)}{hint}", value=name, possible=known)
            values = given.getlist(name)
            if len(values) > 1 and not QUERY[name].several:
                raise invalid(name, f"given {len(values)} times", value=", ".join(values), possible="one value")
            if any(NUL in value for value in values):
                raise invalid(name, "holds the character NUL", value=values[0], possible="text without it")
            words = QUERY[name].words
            if words and given[name] not in words:
                raise invalid(name, f"{quoted(given[name])} is not one of them", value=given[name], words=words)

    def text(self, name: str) -> str | None:
        """A query parameter as text, or None where it is not given."""
        return None if self._query is _NO_QUERY else self._query.get(name)

    def texts(self, name: str) -> list[str]:
        """All values of a query parameter that may be given several times."""
        return self._query.getlist(name)

    def flag(self, name: str) -> bool:
        """A query parameter as yes or no."""
        value = self.text(name)
        if value not in (None, "", "true", "false", "1", "0"):
            raise invalid(name, f"{quoted(value)} is neither true nor false", value=value, words=("true", "false"))
        return value in ("", "true", "1")

    def whole(self, name: str, *, low: int, high: int) -> int | None:
        """A query parameter as a whole number within bounds."""
        value = self.text(name)
        if value is None:
            return None
        if not re.fullmatch(r"\d{1,18}", value, re.ASCII) or not low <= int(value) <= high:
            raise invalid(name, f"{quoted(value)} is not possible", value=value, possible=f"{low} to {high}")
        return int(value)

    def moment(self, name: str) -> Instant | None:
        """A query parameter as a moment; None where it is not given."""
        value = self.text(name)
        if value is None:
            return None
        try:
            found = datetime.fromisoformat(value)
            if found.tzinfo is None:
                raise ValueError("no zone")
            return Instant(round(found.timestamp() * SECOND))
        except (ValueError, OverflowError):
            possible = "a time with its zone, such as 2026-11-21T08:00:00Z"
            raise invalid(name, f"{quoted(value)} is no moment", value=value, possible=possible) from None

    @property
    def at(self) -> Instant | None:
        """The past moment that the caller asks about; None for now. Raises Refused for one that lies ahead."""
        at = self.moment("at")
        if at is not None and at > self.services.clock.now():
            raise invalid("at", "it lies ahead", value=self.text("at"), possible="a moment of the past")
        return at

    @property
    def page_size(self) -> int:
        """How many items the caller wants in a page."""
        return self.whole("limit", low=1, high=MAX_PAGE) or DEFAULT_PAGE

    @property
    def wait_s(self) -> float:
        """How long the caller wants to wait for a change, in seconds; 0 for not at all."""
        value = self.text("wait_s")
        if value is None:
            return 0.0
        try:
            seconds = float(value)
        except ValueError:
            seconds = math.nan
        if not 0 <= seconds < math.inf:
            raise invalid("wait_s", f"{quoted(value)} is not possible", value=value, possible=f"0 to {MAX_WAIT_S:g}")
        return min(seconds, MAX_WAIT_S)

    @property
    def dry_run(self) -> bool:
        """Whether the caller only wants to know what would happen."""
        return self.flag("dry_run")

    @property
    def last_event_id(self) -> int | None:
        """The id of the last event that the caller saw, by header or by `after`."""
        value = header(self.scope, b"last-event-id")
        if value is None:
            return self.whole("after", low=0, high=10**18)
        if not re.fullmatch(r"\d{1,18}", value.strip(), re.ASCII):
            raise invalid("Last-Event-ID", f"{quoted(value)} is no event id", value=value, possible="a whole number")
        return int(value)

    @property
    def expected_version(self) -> int | None:
        """The version that ``If-Match`` names, or None where any will do."""
        value = header(self.scope, b"if-match")
        if value is None or value.strip() == "*":
            return None
        match = _ETAG.fullmatch(value)
        if match is None:
            possible = 'an ETag as this server gives it ("7"), or *'
            raise invalid("If-Match", f"{quoted(value)} is no version", value=value, possible=possible)
        return int(match[1])

    @property
    def idempotency_key(self) -> str | None:
        """The ``Idempotency-Key`` of a creation."""
        value = header(self.scope, b"idempotency-key")
        if value is not None and not 1 <= len(value) <= MAX_KEY_LENGTH:
            possible = f"1 to {MAX_KEY_LENGTH} characters"
            raise invalid("Idempotency-Key", f"it has {len(value)} characters", value=value, possible=possible)
        return value

    def field_of(self, ref: str) -> str:
        """Where the caller named `ref`, in the body or the query; "" for nowhere, or in the path."""
        asked = [name for name, value in self._query.multi_items() if value == ref]
        return next(_places(self._sent, ref), None) or (asked[0] if asked else "")

    async def body(self, model: type[Model], *, optional: bool = False) -> Model:
        """The body as a `model`. optional: an empty body stands for one without any fields."""
        if optional and not await self._body.whole():
            return read(model, {})
        try:
            self._sent, found = await self._body.read(lambda sent: read(model, sent))
        except InvalidBody as error:
            raise invalid_fields(list(error.problems)) from None
        # JSON has this character escaped or not at all. What may hold it is replaced in the model already.
        problems = unkept(found) if _NUL in await self._body.whole() else []
        if problems:
            raise invalid_fields(problems)
        return found

    async def payload(self) -> bytes:
        """The body as it came; read once. Raises Refused for one that is too large, or takes too long."""
        return await self._body.whole()

    @property
    def age_s(self) -> float:
        """How long ago the call arrived, in seconds."""
        return time.perf_counter() - float(self._request.scope[BEGAN])

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Within the block the call waits because its caller asked it to. Raises Refused where too many do."""
        leave = self.services.doorkeeper.begin_wait(self.principal)
        try:
            yield
        finally:
            leave()

    def waited(self, seconds: float) -> None:
        """The call has waited because its caller asked it to: no cost of the server's."""
        self._request.scope[WAITED] = self._request.scope.get(WAITED, 0.0) + seconds

    async def disconnected(self) -> bool:
        """Whether the caller has hung up."""
        return await self._request.is_disconnected()


def _places(sent: object, ref: str) -> Iterator[str]:
    """The dotted paths at which `ref` stands, by itself or after the kind of a subject (``component:REF``)."""
    inner = sent.items() if isinstance(sent, dict) else enumerate(sent) if isinstance(sent, list) else ()
    for key, value in inner:
        if isinstance(value, str):
            if value == ref or value.endswith(f":{ref}"):
                yield str(key)
        else:
            yield from (f"{key}.{place}" for place in _places(value, ref))


def invalid(field: str, message: str, *, value: str | None, possible: str = "", words: tuple[str, ...] = ()) -> Refused:
    """A refusal of one field."""
    possible = possible or ", ".join(words)
    problem = FieldProblem(field=field, message=message, value=shown(value or ""), possible=possible)
    return invalid_fields([problem])


def invalid_fields(problems: list[FieldProblem]) -> Refused:
    """A refusal of the fields given; its detail says the first few in one line."""
    told = "; ".join(_told(problem) for problem in problems[:3])
    more = f"; and {len(problems) - 3} more" if len(problems) > 3 else ""
    return Refused(Slug.INVALID, told + more, errors=problems)


def _told(problem: FieldProblem) -> str:
    where = f"{problem.field}: " if problem.field else ""
    possible = f" (possible: {problem.possible})" if problem.possible else ""
    return f"{where}{problem.message}{possible}"

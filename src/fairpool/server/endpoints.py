"""What an endpoint is: a handler for one route of the table, with the models that it reads and answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel
from starlette.responses import Response

from fairpool.server.calls import Call
from fairpool.wire.problems import Slug

SMALL_BODY: Final = 2**20
"""Bytes of a body that speaks of one thing: a pool of thousands of nodes."""

OPEN_BODY: Final = 2**14
"""Bytes of a body that anybody may send."""

Handler = Callable[[Call], Awaitable[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A handler with what the OpenAPI document says of it.

    body, answer: the models of the body that it reads and of what it answers; None for none, or for no JSON.
    headers: the request headers that mean something to it. is_open: whether it answers without a token.
    also: other statuses under which it answers with a model of its own instead of a problem.
    is_large: whether its body may be as large as the server's settings allow; else it is of one thing, and small.
    is_local: whether it needs the database at most, and not the scheduler: every server answers by itself.
    of_installation: whether it is about the installation as a whole, whatever workspace the caller names.
    problems: what it can answer with besides those problems that its shape says. pages: statuses under which it answers
        with a page for people.
    """

    handler: Handler
    summary: str
    answer: type[BaseModel] | None = None
    body: type[BaseModel] | None = None
    body_optional: bool = False
    status: int = 200
    headers: tuple[str, ...] = ()
    media_type: str = "application/json"
    is_open: bool = False
    also: tuple[tuple[int, type[BaseModel]], ...] = ()
    is_local: bool = False
    is_large: bool = False
    of_installation: bool = False
    problems: tuple[Slug, ...] = ()
    pages: tuple[int, ...] = ()


def body_limit(endpoint: Endpoint, largest: int) -> int:
    """How many bytes of a body are read. largest: by the server's settings."""
    return min(largest, largest if endpoint.is_large else OPEN_BODY if endpoint.is_open else SMALL_BODY)


def present(view: BaseModel, *, status: int = 200, version: int | None = None, location: str | None = None) -> Response:
    """The answer that carries `view`; `version` becomes its ETag, `location` says where it now is."""
    headers = []
    if version is not None:
        headers.append((b"etag", b'"%d"' % version))
    if location is not None:
        headers.append((b"location", location.encode("latin-1")))
    return _Presented(view.model_dump_json().encode(), status, headers)


class _Presented(Response):
    """JSON with its headers as they leave: one call in two makes one, and Starlette's way costs three times as much."""

    def __init__(self, body: bytes, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self.body = body
        self.status_code = status
        self.background = None
        headers.append((b"content-length", b"%d" % len(body)))
        headers.append((b"content-type", b"application/json"))
        self.raw_headers = headers

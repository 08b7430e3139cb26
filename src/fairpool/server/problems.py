"""The one table of what a caller can be told: slug, HTTP status, title; and the refusal that carries it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from pydantic import JsonValue
from starlette.responses import Response

from fairpool.wire.problems import MEDIA_TYPE, FieldProblem, Problem, Slug

TABLE: Final = MappingProxyType(
    {
        Slug.MALFORMED: (400, "The body is not JSON"),
        Slug.INVALID: (422, "The input is not valid"),
        Slug.RULES: (422, "Pools and policies would contradict each other"),
        Slug.NOT_FOUND: (404, "There is no such thing"),
        Slug.AMBIGUOUS: (409, "The name means several things"),
        Slug.EXISTS: (409, "It exists already"),
        Slug.CONFLICT: (409, "The state of things does not allow it"),
        Slug.ILLEGAL: (409, "The status does not allow it"),
        Slug.IN_USE: (409, "It is in use"),
        Slug.STALE: (412, "It has changed in the meantime"),
        Slug.KEY_REUSED: (409, "The idempotency key belongs to another request"),
        Slug.UNAUTHENTICATED: (401, "The token is missing or not known"),
        Slug.FORBIDDEN: (403, "Not allowed"),
        Slug.SIGN_IN: (403, "The sign-in did not come about"),
        Slug.PROVIDER: (503, "The identity provider cannot be used now"),
        Slug.WRONG_HOST: (421, "This server does not go by that name"),
        Slug.NO_ROUTE: (404, "There is no such route"),
        Slug.NO_METHOD: (405, "The route does not take this method"),
        Slug.TOO_LARGE: (413, "The body is too large"),
        Slug.MEDIA: (415, "The body is of a type that is not read here"),
        Slug.TOO_MANY: (429, "Too many calls"),
        Slug.QUEUE_FULL: (409, "The caller has as many requests in the queue as it may"),
        Slug.UNAVAILABLE: (503, "The server cannot serve this now"),
        Slug.NOT_LEADING: (503, "No server decides at the moment"),
        Slug.OVERLOADED: (503, "The server has too much to do"),
        Slug.DISK_FULL: (507, "The disk is full"),
        Slug.INTERNAL: (500, "Something went wrong in the server"),
    }
)
"""Slug to HTTP status and title. The exit code of each is in `fairpool.wire.problems.EXIT_CODES`."""


class Refused(Exception):
    """A call that is answered with a problem document.

    headers: beyond those of the problem itself (``Retry-After``, ``Allow``).
    """

    def __init__(
        self,
        slug: Slug,
        detail: str,
        *,
        guidance: str = "",
        instance: str | None = None,
        errors: Sequence[FieldProblem] = (),
        candidates: Sequence[str] = (),
        numbers: Mapping[str, JsonValue] = MappingProxyType({}),
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        super().__init__(detail)
        status, title = TABLE[slug]
        self.headers = dict(headers)
        self.problem = Problem(
            type=slug.value,
            title=title,
            status=status,
            detail=detail,
            help=guidance,
            instance=instance,
            errors=list(errors),
            candidates=list(candidates),
            numbers=dict(numbers),
        )


def respond(refused: Refused) -> Response:
    """The problem document as a response; members that say nothing are left out."""
    return Response(
        refused.problem.model_dump_json(exclude_defaults=True),
        status_code=refused.problem.status,
        headers=refused.headers,
        media_type=MEDIA_TYPE,
    )

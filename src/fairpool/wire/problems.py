"""Problem documents (RFC 9457): the closed set of slugs, and the exit code that a command line makes of each."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Final

from pydantic import Field, JsonValue

from fairpool.wire.model import View

MEDIA_TYPE: Final = "application/problem+json"


class Slug(StrEnum):
    """What went wrong, for programs. Stays the same through all versions of the API."""

    MALFORMED = "malformed-body"
    INVALID = "invalid-input"
    RULES = "invalid-rules"
    NOT_FOUND = "not-found"
    AMBIGUOUS = "ambiguous-name"
    EXISTS = "already-exists"
    CONFLICT = "conflict"
    ILLEGAL = "illegal-transition"
    IN_USE = "in-use"
    STALE = "stale"
    KEY_REUSED = "idempotency-key-reused"
    UNAUTHENTICATED = "unauthenticated"
    FORBIDDEN = "forbidden"
    SIGN_IN = "sign-in-failed"
    PROVIDER = "provider-unavailable"
    WRONG_HOST = "wrong-host"
    NO_ROUTE = "unknown-route"
    NO_METHOD = "method-not-allowed"
    TOO_LARGE = "body-too-large"
    MEDIA = "unsupported-media-type"
    TOO_MANY = "too-many-calls"
    QUEUE_FULL = "queue-limit"
    UNAVAILABLE = "unavailable"
    NOT_LEADING = "not-leading"
    OVERLOADED = "overloaded"
    DISK_FULL = "disk-full"
    INTERNAL = "internal-error"


class Exit(IntEnum):
    """Exit codes of the command line."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    NOT_ALLOWED = 4
    CONFLICT = 5
    REJECTED = 6
    TIMED_OUT = 7
    UNREACHABLE = 8
    INTERRUPTED = 130


EXIT_CODES: Final = MappingProxyType(
    {
        Slug.MALFORMED: Exit.USAGE,
        Slug.INVALID: Exit.USAGE,
        Slug.RULES: Exit.USAGE,
        Slug.NOT_FOUND: Exit.NOT_FOUND,
        Slug.AMBIGUOUS: Exit.USAGE,
        Slug.EXISTS: Exit.CONFLICT,
        Slug.CONFLICT: Exit.CONFLICT,
        Slug.ILLEGAL: Exit.CONFLICT,
        Slug.IN_USE: Exit.CONFLICT,
        Slug.STALE: Exit.CONFLICT,
        Slug.KEY_REUSED: Exit.CONFLICT,
        Slug.UNAUTHENTICATED: Exit.NOT_ALLOWED,
        Slug.FORBIDDEN: Exit.NOT_ALLOWED,
        Slug.SIGN_IN: Exit.NOT_ALLOWED,
        Slug.PROVIDER: Exit.UNREACHABLE,
        Slug.WRONG_HOST: Exit.NOT_ALLOWED,
        Slug.NO_ROUTE: Exit.FAILED,
        Slug.NO_METHOD: Exit.FAILED,
        Slug.TOO_LARGE: Exit.USAGE,
        Slug.MEDIA: Exit.USAGE,
        Slug.TOO_MANY: Exit.UNREACHABLE,
        Slug.QUEUE_FULL: Exit.CONFLICT,
        Slug.UNAVAILABLE: Exit.UNREACHABLE,
        Slug.NOT_LEADING: Exit.UNREACHABLE,
        Slug.OVERLOADED: Exit.UNREACHABLE,
        Slug.DISK_FULL: Exit.FAILED,
        Slug.INTERNAL: Exit.FAILED,
    }
)
"""Slug to exit code; a slug that a client does not know is `Exit.FAILED`."""


def exit_code(slug: str) -> Exit:
    """The exit code for a problem of that type."""
    try:
        return EXIT_CODES[Slug(slug)]
    except ValueError:
        return Exit.FAILED


class FieldProblem(View):
    """One field that is wrong. field: its dotted path (``limit.gpu``); possible: what would be accepted, in words."""

    field: str
    message: str
    value: str = ""
    possible: str = ""


class Problem(View):
    """What went wrong, for people and programs.

    type: the slug. detail: what was asked and what is possible. help: what to do or run next.
    instance: an incident id, which the server's log has too. candidates: what an ambiguous name could mean.
    numbers: the numbers that decided (``limit``, ``size``, ``version``).
    """

    type: str
    title: str = ""
    status: int
    detail: str = ""
    help: str = ""
    instance: str | None = None
    errors: list[FieldProblem] = Field(default_factory=list)
    candidates: list[str] = Field(default_factory=list)
    numbers: dict[str, JsonValue] = Field(default_factory=dict)

"""Which problems a route can answer with: what its shape says of it, so that no route forgets one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from fairpool.wire.problems import Slug
from fairpool.wire.routes import Route

if TYPE_CHECKING:
    from fairpool.server.endpoints import Endpoint

_NAMING: Final = frozenset({"pool", "run", "profile", "owner", "subject"})
"""Query parameters that name something, which may not be there or be several things."""

_REFUSED_AT_THE_DOOR: Final = (Slug.UNAUTHENTICATED, Slug.FORBIDDEN, Slug.TOO_MANY)
_OF_A_WORKSPACE: Final = (Slug.NOT_FOUND, Slug.CONFLICT)
"""The one that is named is not there, or is being deleted."""

_OF_A_BODY: Final = (Slug.MALFORMED, Slug.TOO_LARGE, Slug.MEDIA)
_OF_A_NAME: Final = (Slug.NOT_FOUND, Slug.AMBIGUOUS)
_OF_A_CHANGE: Final = (
    Slug.RULES,
    Slug.EXISTS,
    Slug.CONFLICT,
    Slug.ILLEGAL,
    Slug.IN_USE,
    Slug.KEY_REUSED,
    Slug.QUEUE_FULL,
    Slug.DISK_FULL,
)
_ALWAYS: Final = (
    Slug.INVALID,  # a query parameter that the route does not take
    Slug.WRONG_HOST,
    Slug.UNAVAILABLE,
    Slug.NOT_LEADING,
    Slug.OVERLOADED,
    Slug.INTERNAL,
)


def problems_of(route: Route, endpoint: Endpoint) -> tuple[Slug, ...]:
    """The slugs that the route can answer with, in the order of the table."""
    found = set(_slugs(route, endpoint))
    return tuple(slug for slug in Slug if slug in found)


def _slugs(route: Route, endpoint: Endpoint) -> Iterator[Slug]:
    yield from _ALWAYS
    yield from endpoint.problems
    names = re.findall(r"\{(\w+)\}", route.path)
    changes = route.method != "GET"
    if not endpoint.is_open:
        yield from _REFUSED_AT_THE_DOOR
    if not endpoint.of_installation:
        yield from _OF_A_WORKSPACE
    if endpoint.body is not None:
        yield from _OF_A_BODY
    if names or endpoint.body is not None or _NAMING & set(route.query):
        yield from _OF_A_NAME
    if names:
        yield Slug.NO_ROUTE  # a name with a slash in it is another path
        yield Slug.NO_METHOD
    if changes:
        yield from _OF_A_CHANGE
    if "If-Match" in endpoint.headers:
        yield Slug.STALE

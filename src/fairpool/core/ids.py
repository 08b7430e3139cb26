"""One identifier type per kind of thing, so that the type checker tells them apart. Times are here too."""

from __future__ import annotations

import re
from typing import NewType

from fairpool.core.errors import InvalidName

PoolId = NewType("PoolId", str)
PolicyId = NewType("PolicyId", str)
ProfileId = NewType("ProfileId", str)
RequestId = NewType("RequestId", str)

Instant = NewType("Instant", int)
"""A moment: microseconds since 1970-01-01 UTC. Exact, so that decisions never compare floats."""

SECOND = 1_000_000
"""Microseconds in a second."""

MAX_NAME_LENGTH = 63  # what Kubernetes allows for a label value, so that names can travel there unchanged
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._@+-]*[A-Za-z0-9])?")
_KEY = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?")


def seconds(amount: int | float) -> int:
    """A length of time in microseconds, from seconds; rounds to the nearest microsecond."""
    return round(amount * SECOND)


def check_name(name: str, *, what: str) -> str:
    """`name` itself when it may name a `what` (pool, team, stack, …).

    Raises InvalidName: names have 1 to 63 of the letters, digits and ``. _ - @ +``, and begin and end with a letter
    or digit, so that no name can hide a control character or be taken for an option.
    """
    return _checked(name, what, _NAME, "letters, digits and . _ - @ +")


def check_key(key: str) -> str:
    """`key` itself when it may be a resource key: as a name, and ``/`` besides (``license/matlab``)."""
    return _checked(key, "resource key", _KEY, "letters, digits and . _ - /")


def _checked(text: str, what: str, pattern: re.Pattern[str], letters: str) -> str:
    if not text:
        raise InvalidName(f"a {what} may not be empty", value=text, possible=f"1 to {MAX_NAME_LENGTH} characters")
    if len(text) > MAX_NAME_LENGTH:
        shown = text[:MAX_NAME_LENGTH] + "…"
        raise InvalidName(
            f"{what} {shown!r} has {len(text)} characters",
            value=text,
            possible=f"1 to {MAX_NAME_LENGTH} characters",
        )
    if not pattern.fullmatch(text):
        raise InvalidName(
            f"{what} {text!r} holds characters that it may not",
            value=text,
            possible=f"{letters}; a letter or digit at both ends",
        )
    return text

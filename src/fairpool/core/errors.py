"""The core's errors, split by who must act.

CoreError
├── InvalidInput          the caller asked for something that cannot be: mend the input
│   ├── InvalidAmount     an amount is negative, too precise, too large or not a number
│   ├── InvalidName       a key or a name is empty, too long or holds odd characters
│   └── InvalidRules      pools and policies contradict each other (S5, S9, S11, S13)
├── UnknownObject         the thing named is not in this world
└── IllegalTransition     the request's status does not allow this event (section 9)

A refusal of a request is not an error: it is a `Reason` (see reasons.py).
"""

from __future__ import annotations


class CoreError(Exception):
    """Base of everything that the core raises on purpose."""


class InvalidInput(CoreError, ValueError):
    """Input that cannot be.

    field: where it stands, as a dotted path ("limit.gpu").
    value: what was found there, as text.
    possible: what would be accepted, in words.
    """

    def __init__(self, message: str, *, field: str = "", value: str = "", possible: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.value = value
        self.possible = possible

    def at(self, field: str) -> InvalidInput:
        """The same error with `field` put before its path, for callers that know the surroundings."""
        path = f"{field}.{self.field}" if self.field else field
        return type(self)(self.message, field=path, value=self.value, possible=self.possible)


class InvalidAmount(InvalidInput):
    """An amount is negative, has more than three fractional digits, exceeds 10^15 or is not a number."""


class InvalidName(InvalidInput):
    """A resource key or an object's name is empty, too long or holds characters that it may not."""


class InvalidRules(InvalidInput):
    """Pools and policies contradict each other, e.g. reserved over limit (S11)."""


class UnknownObject(CoreError, LookupError):
    """A pool, policy, profile or request that this world does not have."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"no {kind} {name!r}")
        self.kind = kind
        self.name = name


class IllegalTransition(CoreError):
    """The request is in a status in which this event cannot happen (the table in lifecycle.py)."""

    def __init__(self, request_id: str, status: str, event: str) -> None:
        super().__init__(f"request {request_id!r} is {status}: it cannot be {event}")
        self.request_id = request_id
        self.status = status
        self.event = event

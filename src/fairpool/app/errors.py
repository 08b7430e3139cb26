"""What a use case refuses, split by who must act. Errors of the core and of the store pass through unchanged.

AppError
├── NotFound            nothing goes by that name or id
├── Ambiguous           an id prefix means several things: name one of the candidates
├── Exists              there is one already
├── Conflict            the state of things does not allow it
│   ├── InUse           work waits or runs there: say what is to become of it (S10)
│   ├── NoVaultKey      the server has no key for secrets, so that it can keep none
│   ├── CannotOpen      a secret was sealed with a key that the server does not have
│   ├── QueueFull       the caller has as many requests in the queue as it may
│   └── KeyReused       the idempotency key was used for something else (S36)
├── Stale               it has changed since the caller last read it
├── NotAllowed          the caller may not
└── Busy                the server cannot take this now: try again
    ├── Overloaded      too much is waiting to be decided
    └── NotLeading      this process is not the scheduler (any more)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_SAID = 200
"""Letters of a name that a refusal repeats: longer ones are none."""


class AppError(Exception):
    """Base of everything that a use case refuses on purpose. message: for people."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class NotFound(AppError):
    """Nothing goes by that name or id. candidates: names that are near. why: why there is none, where that is known."""

    def __init__(self, kind: str, ref: str, *, candidates: Sequence[str] = (), why: str = "") -> None:
        said = ref if len(ref) <= _SAID else ref[:_SAID] + "…"
        super().__init__(f"no {kind} {said!r}" + (f": {why}" if why else ""))
        self.kind = kind
        self.ref = ref
        self.candidates = tuple(candidates)


class Ambiguous(AppError):
    """An id prefix means several things."""

    def __init__(self, kind: str, ref: str, *, candidates: Sequence[str]) -> None:
        super().__init__(f"{ref!r} means more than one {kind}")
        self.kind = kind
        self.ref = ref
        self.candidates = tuple(candidates)


class Exists(AppError):
    """There is one already."""

    def __init__(self, kind: str, name: str, *, hint: str = "") -> None:
        super().__init__(f"{kind} {name!r} exists already{': ' + hint if hint else ''}")
        self.kind = kind
        self.name = name


class Conflict(AppError):
    """The state of things does not allow it."""


class InUse(Conflict):
    """Work waits or runs there. queued, active: which requests; dependents: what else points to it. counts: how many
    there are, where they are not named."""

    def __init__(
        self,
        message: str,
        *,
        queued: Sequence[str] = (),
        active: Sequence[str] = (),
        dependents: Sequence[str] = (),
        counts: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(message)
        self.queued = tuple(queued)
        self.active = tuple(active)
        self.dependents = tuple(dependents)
        self.counts = counts


class NoVaultKey(Conflict):
    """The server has no key for secrets."""

    def __init__(self) -> None:
        super().__init__(
            "this server has no key to keep secrets with: set FAIRPOOL_VAULT_KEY where it runs and start it again "
            "('fairpool vault key' prints a new key)"
        )


class CannotOpen(Conflict):
    """A secret was sealed with a key that the server does not have."""

    def __init__(self) -> None:
        super().__init__(
            "a secret was sealed with a key that this server does not have: FAIRPOOL_VAULT_KEY must hold that key too "
            "(several are separated by commas), or the secret must be set again"
        )


class QueueFull(Conflict):
    """The caller has as many requests in the queue as it may. queued: how many; most: how many it may."""

    def __init__(self, who: str, *, queued: int, most: int) -> None:
        super().__init__(f"{who} has {queued} requests in the queue; at most {most} may wait")
        self.queued = queued
        self.most = most


class KeyReused(Conflict):
    """The idempotency key was used for something else."""

    def __init__(self, key: str) -> None:
        super().__init__(f"idempotency key {key!r} was used for a request that asks for something else")
        self.key = key


class Stale(AppError):
    """It has changed since the caller last read it."""

    def __init__(self, kind: str, name: str, *, expected: int, actual: int) -> None:
        super().__init__(f"{kind} {name!r} is at version {actual}, not {expected}: read it again")
        self.expected = expected
        self.actual = actual


class NotAllowed(AppError):
    """The caller may not do this."""


class Busy(AppError):
    """The server cannot take this now; the same call may succeed in a moment."""


class Overloaded(Busy):
    """Too much is waiting to be decided."""


class NotLeading(Busy):
    """This process is not the scheduler, or has just ceased to be."""

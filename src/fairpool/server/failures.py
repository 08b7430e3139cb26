"""From the errors of core, app and store to what a caller is told."""

from __future__ import annotations

import errno
from collections.abc import Callable
from types import MappingProxyType
from typing import Final

from pydantic import JsonValue

from fairpool.app.errors import (
    Ambiguous,
    AppError,
    Busy,
    Conflict,
    Exists,
    InUse,
    KeyReused,
    NotAllowed,
    NotFound,
    NotLeading,
    Overloaded,
    QueueFull,
    Stale,
)
from fairpool.app.store_errors import (
    KeyUsed,
    MissingReference,
    NameTaken,
    NodeTaken,
    PolicyExists,
    StaleLeader,
    StoreFull,
    StoreUnavailable,
    StoreUnusable,
)
from fairpool.core.errors import IllegalTransition, InvalidInput, InvalidRules, UnknownObject
from fairpool.server.oidc.errors import ProviderDown, SignInFailed
from fairpool.server.problems import Refused
from fairpool.wire.problems import FieldProblem, Slug
from fairpool.wire.reading import printable, shown

_FIELD: Final = 300
"""Letters of a path that a refusal repeats: what a key begins with says which one it is."""


def refusal_of(error: Exception) -> Refused | None:
    """What a caller is told about `error`, or None where it is a bug."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, AppError):
        return of_app(error)
    for kind, tell in _TELL:
        if isinstance(error, kind):
            return tell(error)
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return disk_full()
    return None


def _told(slug: Slug, guidance: str = "") -> Callable[[Exception], Refused]:
    return lambda error: Refused(slug, str(error), guidance=guidance)


def _unknown(error: Exception) -> Refused:
    kind = getattr(error, "kind", "")
    return Refused(Slug.NOT_FOUND, str(error), guidance=f"fairpool {kind} list shows what there is" if kind else "")


def _illegal(error: Exception) -> Refused:
    assert isinstance(error, IllegalTransition)
    return Refused(Slug.ILLEGAL, str(error), numbers={"status": error.status})


def not_found(error: NotFound, field: str = "") -> Refused:
    """That nothing goes by that name. field: where the name stands in what was sent."""
    near = f"did you mean {' or '.join(map(repr, error.candidates))}? " if error.candidates else ""
    problem = FieldProblem(
        field=field, message=str(error), value=shown(error.ref), possible=", ".join(error.candidates)
    )
    look = _LISTED.get(error.kind, f"fairpool {error.kind} list shows what there is")
    return Refused(Slug.NOT_FOUND, str(error), guidance=near + look, errors=[problem] if field else [])


_LISTED: Final = MappingProxyType(
    {
        "run": "fairpool runs list shows what there is",
        "step": "fairpool runs describe RUN shows the steps of a run",
        "node": "fairpool node list shows what there is",
    }
)
"""Where to look for what has no list of its own, or one of another name."""


def _exists(error: Exists) -> Refused:
    field = "subject" if error.kind == "policy" else "name"
    possible = f"a {field} that has no {error.kind} yet"
    problem = FieldProblem(field=field, message=str(error), value=shown(error.name), possible=possible)
    return Refused(Slug.EXISTS, str(error), errors=[problem])


def _ambiguous(error: Ambiguous) -> Refused:
    told = f"{error.message}: {', '.join(error.candidates)}"
    return Refused(Slug.AMBIGUOUS, told, guidance="name one of them", candidates=error.candidates)


def _in_use(error: InUse) -> Refused:
    numbers: dict[str, JsonValue] = {
        "queued": list(error.queued),
        "active": list(error.active),
        "dependents": list(error.dependents),
    }
    return Refused(Slug.IN_USE, str(error), numbers=numbers if error.counts is None else dict(error.counts))


def _conflict(error: Conflict) -> Refused:
    if isinstance(error, KeyReused):
        return Refused(Slug.KEY_REUSED, str(error), guidance="draw a new key for what is new")
    if isinstance(error, QueueFull):
        numbers: dict[str, JsonValue] = {"queued": error.queued, "limit": error.most}
        guidance = "cancel what is not needed any more, or wait until some have started"
        return Refused(Slug.QUEUE_FULL, str(error), guidance=guidance, numbers=numbers)
    return Refused(Slug.CONFLICT, str(error))


def _stale(error: Stale) -> Refused:
    numbers: dict[str, JsonValue] = {"expected": error.expected, "actual": error.actual}
    return Refused(Slug.STALE, str(error), numbers=numbers, headers={"ETag": f'"{error.actual}"'})


def of_app(error: AppError) -> Refused:
    """What a caller is told about a use case's refusal."""
    match error:
        case NotFound():
            return not_found(error)
        case Ambiguous():
            return _ambiguous(error)
        case Exists():
            return _exists(error)
        case InUse():
            return _in_use(error)
        case Conflict():
            return _conflict(error)
        case Stale():
            return _stale(error)
        case NotAllowed():
            return Refused(Slug.FORBIDDEN, str(error))
        case Overloaded():
            return Refused(Slug.OVERLOADED, str(error), headers={"Retry-After": "1"})
        case NotLeading():
            return not_leading(str(error))
        case Busy():
            return unavailable(str(error))
    raise AssertionError(f"an AppError that has no problem: {type(error).__name__}")


def _rules(error: Exception) -> Refused:
    assert isinstance(error, InvalidInput)
    return _field(Slug.RULES, error)


def _input(error: Exception) -> Refused:
    assert isinstance(error, InvalidInput)
    return _field(Slug.INVALID, error)


def disk_full() -> Refused:
    """That the store cannot write for want of room."""
    return Refused(
        Slug.DISK_FULL,
        "the disk of the server's database is full: nothing is changed until there is room",
        guidance="make room on it; the server goes on by itself (fairpool doctor shows where it is)",
        headers={"Retry-After": "5"},
    )


def unavailable(detail: str, *, retry_after_s: int = 1) -> Refused:
    """That the server cannot serve now, and will later."""
    return Refused(Slug.UNAVAILABLE, detail, headers={"Retry-After": str(retry_after_s)})


def not_leading(detail: str) -> Refused:
    """That no server that decides could be asked. The same call may be made again: if it was done after all, an
    idempotency key tells."""
    guidance = "ask again in a moment: another server takes over within seconds"
    return Refused(Slug.NOT_LEADING, detail, guidance=guidance, headers={"Retry-After": "1"})


def _field(slug: Slug, error: InvalidInput) -> Refused:
    value = shown(error.value)
    field = printable(error.field[:_FIELD])
    problem = FieldProblem(field=field, message=error.message, value=value, possible=error.possible)
    where = f"{field}: " if field else ""
    possible = f" (possible: {error.possible})" if error.possible else ""
    return Refused(slug, f"{where}{error.message}{possible}", errors=[problem])


def _sign_in(error: Exception) -> Refused:
    assert isinstance(error, SignInFailed)
    return Refused(Slug.SIGN_IN, error.message, guidance="fairpool login begins again", numbers={"code": error.code})


def _provider(error: Exception) -> Refused:
    assert isinstance(error, ProviderDown)
    return Refused(
        Slug.PROVIDER,
        f"the identity provider cannot be used: {error.message}",
        guidance="whoever has a token already goes on as before; fairpool login --token needs no provider",
        headers={"Retry-After": "5"},
    )


_TELL: Final[tuple[tuple[type[Exception], Callable[[Exception], Refused]], ...]] = (
    (SignInFailed, _sign_in),
    (ProviderDown, _provider),
    (InvalidRules, _rules),
    (InvalidInput, _input),
    (UnknownObject, _unknown),
    (IllegalTransition, _illegal),
    (StoreFull, lambda error: disk_full()),
    (StoreUnavailable, lambda error: unavailable(str(error))),
    (StoreUnusable, lambda error: unavailable(str(error))),
    (StaleLeader, lambda error: not_leading("another server has become the scheduler; nothing was changed")),
    (NameTaken, _told(Slug.EXISTS)),
    (PolicyExists, _told(Slug.EXISTS, "one policy per subject and pool: update that one")),
    (NodeTaken, _told(Slug.CONFLICT)),
    (MissingReference, _told(Slug.CONFLICT)),
    (KeyUsed, _told(Slug.KEY_REUSED)),
)
"""Error to what is said of it; the first that matches. What is not here is a bug: `InvariantBroken` among them."""

"""From the errors of core, app and store to what a caller is told."""

from __future__ import annotations

import errno

from fairpool.core.errors import IllegalTransition, InvalidInput, InvalidRules, UnknownObject
from fairpool.server.problems import Refused
from fairpool.wire.problems import FieldProblem, Slug
from fairpool.wire.reading import shown


def refusal_of(error: Exception) -> Refused | None:
    """What a caller is told about `error`, or None where it is a bug."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, InvalidRules):
        return _field(Slug.RULES, error)
    if isinstance(error, InvalidInput):
        return _field(Slug.INVALID, error)
    if isinstance(error, UnknownObject):
        return Refused(Slug.NOT_FOUND, str(error), guidance=f"fairpool {error.kind} list shows what there is")
    if isinstance(error, IllegalTransition):
        return Refused(Slug.ILLEGAL, str(error), numbers={"status": error.status})
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return disk_full()
    return None


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


def _field(slug: Slug, error: InvalidInput) -> Refused:
    value = shown(error.value)
    problem = FieldProblem(field=error.field, message=error.message, value=value, possible=error.possible)
    where = f"{error.field}: " if error.field else ""
    possible = f" (possible: {error.possible})" if error.possible else ""
    return Refused(slug, f"{where}{error.message}{possible}", errors=[problem])

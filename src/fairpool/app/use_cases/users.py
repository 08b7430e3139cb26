"""People: who they are in a workspace, and what they may do there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from fairpool.app.authz import Role
from fairpool.app.errors import Conflict
from fairpool.app.memory import Memory
from fairpool.app.records import Declared, Document, Json, Kind
from fairpool.app.transaction import Transaction
from fairpool.app.use_cases import leaving, teams, tokens
from fairpool.app.use_cases.declaring import changed, check_free, check_version, created, deleted
from fairpool.app.use_cases.people import described, note_of, role_of, subject_of, trial
from fairpool.core.ids import RequestId, check_name

UserRecord = Declared[Document]
Answer = Callable[[], UserRecord]


@dataclass(frozen=True, slots=True, kw_only=True)
class UserChange:
    """What changes of a user; None leaves as it is. A name stays: it is how the history speaks of them."""

    role: Role | None = None
    display_name: str | None = None
    email: str | None = None
    description: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UserDeletion:
    """What goes with a user.

    teams: those that they leave. tokens: names of those revoked. policies: those that speak of them.
    queued: their requests that are cancelled. active: those that run on to their end.
    """

    user: UserRecord
    teams: tuple[str, ...]
    tokens: tuple[str, ...]
    policies: tuple[str, ...]
    queued: tuple[RequestId, ...]
    active: tuple[RequestId, ...]


def create(
    tx: Transaction,
    name: str,
    *,
    role: Role = Role.MEMBER,
    display_name: str = "",
    email: str = "",
    description: str = "",
    dry_run: bool = False,
) -> Answer:
    """A new user. Raises Exists, InvalidName."""
    check_free(tx, Kind.USER, check_name(name, what="user name"))
    spec: Document = {"role": role.value, "display_name": display_name, "email": email}
    note = note_of(description)
    if dry_run:
        return lambda: trial(tx, Kind.USER, name, spec, note)
    record = created(tx, Kind.USER, tx.ids.new(Kind.USER), name, spec, note=note, shown=spec)
    return lambda: record


def update(
    tx: Transaction, ref: str, change: UserChange, *, version: int | None = None, dry_run: bool = False
) -> Answer:
    """A user changes. Raises Conflict where that would leave no admin."""
    old = tx.memory.document(Kind.USER, ref)
    check_version(old, version)
    spec: dict[str, Json] = dict(old.spec)
    for key in ("display_name", "email"):
        if getattr(change, key) is not None:
            spec[key] = getattr(change, key)
    if change.role is not None:
        spec["role"] = change.role.value
    if spec["role"] != Role.ADMIN:
        _check_not_last_admin(tx.memory, old, "given another role")
    note = described(old.note, change.description)
    if dry_run:
        return lambda: replace(old, spec=spec, note=note)
    record = changed(tx, old, spec, note=note, before=old.spec, after=spec)
    return lambda: record


def delete(
    tx: Transaction, ref: str, *, version: int | None = None, dry_run: bool = False
) -> Callable[[], UserDeletion]:
    """A user goes: their tokens are revoked at once, their queued requests cancelled; what runs goes on.

    Raises Conflict for the last admin.
    """
    old = tx.memory.document(Kind.USER, ref)
    check_version(old, version)
    _check_not_last_admin(tx.memory, old, "removed")
    subject = subject_of(Kind.USER, old.name)
    made = leaving.made_by(tx.memory, subject)
    deletion = UserDeletion(
        user=old,
        teams=tx.memory.teams_of(subject),
        tokens=tuple(token.name for token in tokens.valid_of(tx, subject)),
        policies=leaving.policies_of(tx.memory, subject),
        queued=made.queued,
        active=made.active,
    )
    if dry_run:
        return lambda: deletion
    leaving.withdraw(tx, made.queued, f"user {old.name} was deleted")
    teams.leave_all(tx, old.name)
    leaving.drop_policies(tx, subject)
    tokens.revoke_all(tx, subject)
    deleted(tx, old, shown=old.spec)
    return lambda: deletion


def _check_not_last_admin(memory: Memory, user: UserRecord, done: str) -> None:
    if role_of(user) is not Role.ADMIN:
        return
    others = [other for other in memory.all(Kind.USER) if other.id != user.id and role_of(other) is Role.ADMIN]
    if not others:
        raise Conflict(f"user {user.name!r} is the last admin and cannot be {done}: make somebody else one first")

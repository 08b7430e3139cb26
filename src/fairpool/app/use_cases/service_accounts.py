"""Service accounts: who programs are."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from fairpool.app.authz import Role
from fairpool.app.membership import names_in
from fairpool.app.records import Declared, Document, Json, Kind
from fairpool.app.transaction import Transaction
from fairpool.app.use_cases import leaving, tokens
from fairpool.app.use_cases.declaring import changed, check_free, check_known, check_version, created, deleted
from fairpool.app.use_cases.people import described, note_of, subject_of, trial
from fairpool.core.ids import RequestId, check_name

AccountRecord = Declared[Document]
Answer = Callable[[], AccountRecord]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountChange:
    """What changes of a service account; None leaves as it is. teams: all of them, by name."""

    role: Role | None = None
    teams: tuple[str, ...] | None = None
    description: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountDeletion:
    """What goes with a service account.

    tokens: names of those revoked. policies: those that speak of it. queued: its requests that are cancelled.
    active: those that run on to their end.
    """

    account: AccountRecord
    tokens: tuple[str, ...]
    policies: tuple[str, ...]
    queued: tuple[RequestId, ...]
    active: tuple[RequestId, ...]


def create(
    tx: Transaction,
    name: str,
    *,
    role: Role = Role.MEMBER,
    teams: Iterable[str] = (),
    description: str = "",
    dry_run: bool = False,
) -> Answer:
    """A new service account. Raises Exists, NotFound (a team), InvalidName."""
    check_free(tx, Kind.SERVICE_ACCOUNT, check_name(name, what="service account name"))
    chosen = tuple(dict.fromkeys(teams))
    check_known(tx.memory, Kind.TEAM, chosen)
    spec: Document = {"role": role.value, "teams": list(chosen)}
    note = note_of(description)
    if dry_run:
        return lambda: trial(tx, Kind.SERVICE_ACCOUNT, name, spec, note)
    account_id = tx.ids.new(Kind.SERVICE_ACCOUNT)
    record = created(tx, Kind.SERVICE_ACCOUNT, account_id, name, spec, note=note, shown=spec)
    return lambda: record


def update(
    tx: Transaction, ref: str, change: AccountChange, *, version: int | None = None, dry_run: bool = False
) -> Answer:
    """A service account changes. What it has queued through a team that it leaves is cancelled where it has no other
    way. Raises NotFound (a team)."""
    old = tx.memory.document(Kind.SERVICE_ACCOUNT, ref)
    check_version(old, version)
    before = names_in(old, "teams")
    chosen = before if change.teams is None else tuple(dict.fromkeys(change.teams))
    check_known(tx.memory, Kind.TEAM, [name for name in chosen if name not in before])
    spec: dict[str, Json] = {**old.spec, "teams": list(chosen)}
    if change.role is not None:
        spec["role"] = change.role.value
    note = described(old.note, change.description)
    if dry_run:
        return lambda: replace(old, spec=spec, note=note)
    for gone in before:
        if gone not in chosen:
            leaving.leave_team(tx, subject_of(Kind.TEAM, gone), subject_of(Kind.SERVICE_ACCOUNT, old.name))
    record = changed(tx, old, spec, note=note, before=old.spec, after=spec)
    return lambda: record


def delete(
    tx: Transaction, ref: str, *, version: int | None = None, dry_run: bool = False
) -> Callable[[], AccountDeletion]:
    """A service account goes: its tokens are revoked at once, its queued requests cancelled; what runs goes on."""
    old = tx.memory.document(Kind.SERVICE_ACCOUNT, ref)
    check_version(old, version)
    subject = subject_of(Kind.SERVICE_ACCOUNT, old.name)
    made = leaving.made_by(tx.memory, subject)
    deletion = AccountDeletion(
        account=old,
        tokens=tuple(token.name for token in tokens.valid_of(tx, subject)),
        policies=leaving.policies_of(tx.memory, subject),
        queued=made.queued,
        active=made.active,
    )
    if dry_run:
        return lambda: deletion
    leaving.withdraw(tx, made.queued, f"service account {old.name} was deleted")
    leaving.drop_policies(tx, subject)
    tokens.revoke_all(tx, subject)
    deleted(tx, old, shown=old.spec)
    return lambda: deletion

"""Teams: who belongs together, and so shares rights. Membership is all that it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from fairpool.app.membership import names_in
from fairpool.app.records import AnyDeclared, Declared, Document, Kind
from fairpool.app.transaction import Transaction
from fairpool.app.use_cases import leaving, vaults, webhooks
from fairpool.app.use_cases.declaring import changed, check_free, check_known, check_version, created, deleted
from fairpool.app.use_cases.people import described, note_of, rename_in, subject_of, trial
from fairpool.core.ids import RequestId, check_name

TeamRecord = Declared[Document]
Answer = Callable[[], TeamRecord]


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamChange:
    """What changes of a team; None leaves as it is. members: all of them, by name.

    add, remove: who joins, and who leaves. group: the identity provider's group that decides who is in it; "" for none.
    """

    name: str | None = None
    members: tuple[str, ...] | None = None
    group: str | None = None
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    description: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamDeletion:
    """What goes with a team.

    members, service_accounts: who is in it no more. policies: those that speak of it.
    queued: the requests that lose their right and are cancelled. active: those that run on to their end.
    """

    team: TeamRecord
    members: tuple[str, ...]
    service_accounts: tuple[str, ...]
    policies: tuple[str, ...]
    queued: tuple[RequestId, ...]
    active: tuple[RequestId, ...]


def create(
    tx: Transaction,
    name: str,
    *,
    members: Iterable[str] = (),
    group: str = "",
    description: str = "",
    dry_run: bool = False,
) -> Answer:
    """A new team. group: the identity provider's group that decides who is in it, "" for by hand.

    Raises Exists, NotFound (a member), InvalidName.
    """
    check_free(tx, Kind.TEAM, check_name(name, what="team name"))
    chosen = tuple(dict.fromkeys(members))
    check_known(tx.memory, Kind.USER, chosen)
    spec = _spec(chosen, group)
    note = note_of(description)
    if dry_run:
        return lambda: trial(tx, Kind.TEAM, name, spec, note)
    record = created(tx, Kind.TEAM, tx.ids.new(Kind.TEAM), name, spec, note=note, shown=spec)
    return lambda: record


def update(
    tx: Transaction, ref: str, change: TeamChange, *, version: int | None = None, dry_run: bool = False
) -> Answer:
    """A team changes. Who leaves loses the requests that wait through it alone; a new name is followed by policies,
    service accounts and live requests. Raises Exists, NotFound (a member)."""
    old = tx.memory.document(Kind.TEAM, ref)
    check_version(old, version)
    before = names_in(old, "members")
    members = before if change.members is None else tuple(dict.fromkeys(change.members))
    members = tuple(dict.fromkeys([*(name for name in members if name not in change.remove), *change.add]))
    check_known(tx.memory, Kind.USER, [name for name in members if name not in before])
    name = old.name if change.name is None else check_name(change.name, what="team name")
    if name != old.name:
        check_free(tx, Kind.TEAM, name)
    spec = _spec(members, group_of(old) if change.group is None else change.group)
    note = described(old.note, change.description)
    if dry_run:
        return lambda: replace(old, name=name, spec=spec, note=note)
    if name != old.name:
        leaving.rename(tx, subject_of(Kind.TEAM, old.name), subject_of(Kind.TEAM, name))
        vaults.follow_team(tx, old.name, name)
        webhooks.follow(tx, "team", old.name, name)
        for account in tx.memory.all(Kind.SERVICE_ACCOUNT):
            rename_in(tx, account, "teams", old.name, name)
    for gone in before:
        if gone not in members:
            leaving.leave_team(tx, subject_of(Kind.TEAM, name), subject_of(Kind.USER, gone))
    record = changed(
        tx, old, spec, name=name, note=note, before={"name": old.name, **old.spec}, after={"name": name, **spec}
    )
    return lambda: record


def delete(
    tx: Transaction, ref: str, *, version: int | None = None, dry_run: bool = False
) -> Callable[[], TeamDeletion]:
    """A team goes, with what speaks of it: policies, its vault, webhooks that are told of nothing else. Queued requests
    that had no other way are cancelled; what runs goes on."""
    old = tx.memory.document(Kind.TEAM, ref)
    check_version(old, version)
    subject = subject_of(Kind.TEAM, old.name)
    made = leaving.made_as(tx.memory, subject)
    accounts = [account for account in tx.memory.all(Kind.SERVICE_ACCOUNT) if old.name in names_in(account, "teams")]
    deletion = TeamDeletion(
        team=old,
        members=names_in(old, "members"),
        service_accounts=tuple(account.name for account in accounts),
        policies=leaving.policies_of(tx.memory, subject),
        queued=leaving.stranded(tx.memory, made.queued, subject),
        active=made.active,
    )
    if dry_run:
        return lambda: deletion
    leaving.go_without(tx, made.queued, subject, f"team {old.name} was deleted")
    for account in accounts:
        rename_in(tx, account, "teams", old.name, None)
    leaving.drop_policies(tx, subject)
    vaults.follow_team(tx, old.name, None)
    webhooks.go_with_team(tx, old.name)
    deleted(tx, old, shown=old.spec)
    return lambda: deletion


def group_of(team: AnyDeclared) -> str:
    """The identity provider's group that decides who is in a team; "" for by hand."""
    group = team.spec.get("group") if isinstance(team.spec, dict) else None
    return str(group or "")


def _spec(members: Iterable[str], group: str) -> Document:
    return {"members": list(members)} | ({"group": group} if group else {})


def leave_all(tx: Transaction, user: str) -> None:
    """A user is in no team any more."""
    for team in tx.memory.all(Kind.TEAM):
        rename_in(tx, team, "members", user, None)

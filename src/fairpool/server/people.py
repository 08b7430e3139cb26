"""Users, teams, service accounts and tokens as callers read them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from pydantic import BaseModel

from fairpool.app.errors import Ambiguous, NotFound
from fairpool.app.membership import names_in
from fairpool.app.memory import Memory
from fairpool.app.records import AnyDeclared, Declared, Document, Kind, TokenRecord
from fairpool.app.use_cases import service_accounts, teams, users
from fairpool.app.use_cases.people import subject_of
from fairpool.app.use_cases.tokens import is_valid
from fairpool.core.ids import Instant
from fairpool.core.policies import Subject
from fairpool.server import lookups
from fairpool.server.bodies import description_of
from fairpool.server.calls import Call
from fairpool.server.deciding import asked
from fairpool.server.outgoing import maybe_moment, moment
from fairpool.wire.pages import Page
from fairpool.wire.people import (
    ServiceAccountDeletion,
    ServiceAccountView,
    TeamDeletion,
    TeamView,
    TokenView,
    UserDeletion,
    UserView,
)

View = TypeVar("View", bound=BaseModel)
Show = Callable[[Memory, Instant, Declared[Document]], View]
"""How a user, a team or a service account is presented."""


def may_see(call: Call, record: AnyDeclared) -> bool:
    """Whether a user, team or service account is within the caller's reach: all are, or they themselves and their
    teams."""
    return call.reach.covers("", [subject_of(record.kind, record.name)])


async def shown(call: Call, kind: Kind, view: Show[View]) -> View:
    """The user, team or service account that the call names, now or at the moment of the past that the call names.
    Raises NotFound for one that the caller may not see."""
    ref = call.path["ref"]

    def look(memory: Memory, now: Instant) -> View:
        try:
            record = memory.document(kind, ref)
        except (NotFound, Ambiguous):
            if call.reach.owner is None:
                raise
            raise NotFound(kind.value, ref) from None  # without the names that are like it
        if not may_see(call, record):
            raise NotFound(kind.value, ref)
        return view(memory, now, record)

    return await asked(call, look)


async def listed(call: Call, kind: Kind, view: Show[View]) -> Page[View]:
    """A page of those that the caller may see, now or at the moment of the past that the call names."""

    def look(memory: Memory, now: Instant) -> Page[View]:
        page = lookups.page_of([record for record in memory.all(kind) if may_see(call, record)], call)
        items = [view(memory, now, cast("Declared[Document]", record)) for record in page.items]
        return Page(items=items, next_cursor=lookups.next_cursor(page))

    return await asked(call, look)


def _common(record: Declared[Document]) -> dict[str, object]:
    return {
        **record.spec,
        "id": record.id,
        "name": record.name,
        "version": record.version,
        "subject": str(subject_of(record.kind, record.name)),
        "description": description_of(record.note),
        "created_at": moment(record.created_at),
        "updated_at": moment(record.updated_at),
    }


def user_view(memory: Memory, now: Instant, record: Declared[Document]) -> UserView:
    """A user with their teams."""
    teams_in = memory.teams_of(subject_of(Kind.USER, record.name))
    return UserView.model_validate({**_common(record), "teams": list(teams_in)})


def user_deletion(memory: Memory, now: Instant, done: users.UserDeletion) -> UserDeletion:
    """What goes with a user."""
    return UserDeletion(
        user=done.user.name,
        teams=list(done.teams),
        tokens=list(done.tokens),
        policies=list(done.policies),
        queued=list(done.queued),
        active=list(done.active),
    )


def team_view(memory: Memory, now: Instant, record: Declared[Document]) -> TeamView:
    """A team with those in it."""
    accounts = [
        account.name for account in memory.all(Kind.SERVICE_ACCOUNT) if record.name in names_in(account, "teams")
    ]
    return TeamView.model_validate({**_common(record), "service_accounts": accounts})


def team_deletion(memory: Memory, now: Instant, done: teams.TeamDeletion) -> TeamDeletion:
    """What goes with a team."""
    return TeamDeletion(
        team=done.team.name,
        members=list(done.members),
        service_accounts=list(done.service_accounts),
        policies=list(done.policies),
        queued=list(done.queued),
        active=list(done.active),
    )


def account_view(memory: Memory, now: Instant, record: Declared[Document]) -> ServiceAccountView:
    """A service account."""
    return ServiceAccountView.model_validate(_common(record))


def account_deletion(memory: Memory, now: Instant, done: service_accounts.AccountDeletion) -> ServiceAccountDeletion:
    """What goes with a service account."""
    return ServiceAccountDeletion(
        service_account=done.account.name,
        tokens=list(done.tokens),
        policies=list(done.policies),
        queued=list(done.queued),
        active=list(done.active),
    )


def token_fields(record: TokenRecord, now: Instant) -> dict[str, object]:
    """A token's fields, but for what lets anybody in."""
    status = "revoked" if record.revoked_at is not None else "valid" if is_valid(record, now) else "expired"
    return {
        "id": record.id,
        "name": record.name,
        "owner": record.owner,
        "created_at": moment(record.created_at),
        "created_by": record.created_by,
        "expires_at": maybe_moment(record.expires_at),
        "revoked_at": maybe_moment(record.revoked_at),
        "last_used_at": maybe_moment(record.last_used_at),
        "status": status,
    }


def token_view(record: TokenRecord, now: Instant) -> TokenView:
    """A token."""
    return TokenView.model_validate(token_fields(record, now))


def owner_of(record: TokenRecord) -> Subject:
    """Whose token it is."""
    return Subject.parse(record.owner)

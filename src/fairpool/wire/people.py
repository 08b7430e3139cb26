"""Users, teams, service accounts and their tokens over HTTP."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field, ValidationInfo, field_validator

from fairpool.wire.model import Body, Flag, Line, Prose, SomeSeconds, View

RoleName = Literal["admin", "operator", "member", "viewer"]


class UserCreate(Body):
    """A person. The name is how policies (``user:alice``) and the history speak of them; it stays as it is.

    role: what they may do; the page on rights says what each may.
    """

    name: str
    role: RoleName = "member"
    display_name: Line = ""
    email: Line = ""
    description: Prose = ""


class UserUpdate(Body):
    """What changes of a user; fields that are left out stay."""

    role: RoleName | None = None
    display_name: Line | None = None
    email: Line | None = None
    description: Prose | None = None


class UserView(View):
    """A user as they are now. subject: how policies speak of them. teams: those that they are in."""

    kind: str = "user"
    id: str
    name: str
    version: int
    subject: str = ""
    role: str
    display_name: str = ""
    email: str = ""
    teams: list[str] = Field(default_factory=list)
    description: str = ""
    created_at: datetime | None = None
    updated_at: datetime | None = None


class UserDeletion(View):
    """What goes with a user: the teams that they leave, tokens that are revoked, policies that speak of them.

    queued: their requests that are cancelled. active: those that run on to their end.
    """

    user: str
    teams: list[str] = Field(default_factory=list)
    tokens: list[str] = Field(default_factory=list)
    policies: list[str] = Field(default_factory=list)
    queued: list[str] = Field(default_factory=list)
    active: list[str] = Field(default_factory=list)


class TeamCreate(Body):
    """People who share rights. members: names of users.

    group: instead of them, the identity provider's group that decides who is in it, from each one's next sign-in on.
    """

    name: str
    members: list[str] = Field(default_factory=list)
    group: Line = ""
    description: Prose = ""

    @field_validator("group")
    @classmethod
    def _decides_alone(cls, group: str, info: ValidationInfo) -> str:
        if group and info.data.get("members"):
            raise ValueError("decides who is in the team, beside members; possible: one of the two")
        return group


class TeamUpdate(Body):
    """What changes of a team; fields that are left out stay. members: all of them, in place of those before.

    name: policies, service accounts and live requests follow. group: "" for by hand again.
    """

    name: str | None = None
    members: list[str] | None = None
    group: Line | None = None
    description: Prose | None = None


class TeamView(View):
    """A team as it is now. subject: how policies speak of it. group: at the identity provider, "" for by hand."""

    kind: str = "team"
    id: str
    name: str
    version: int
    subject: str = ""
    members: list[str] = Field(default_factory=list)
    group: str = ""
    service_accounts: list[str] = Field(default_factory=list)
    description: str = ""
    created_at: datetime | None = None
    updated_at: datetime | None = None


class TeamDeletion(View):
    """What goes with a team: who is in it no more, and the policies that speak of it.

    queued: requests that had no other way and are cancelled. active: those that run on to their end.
    """

    team: str
    members: list[str] = Field(default_factory=list)
    service_accounts: list[str] = Field(default_factory=list)
    policies: list[str] = Field(default_factory=list)
    queued: list[str] = Field(default_factory=list)
    active: list[str] = Field(default_factory=list)


class ServiceAccountCreate(Body):
    """Who a program is. teams: those whose rights it shares, by name."""

    name: str
    role: RoleName = "member"
    teams: list[str] = Field(default_factory=list)
    description: Prose = ""


class ServiceAccountUpdate(Body):
    """What changes of a service account; fields that are left out stay. teams: all of them."""

    role: RoleName | None = None
    teams: list[str] | None = None
    description: Prose | None = None


class ServiceAccountView(View):
    """A service account as it is now. subject: how policies speak of it."""

    kind: str = "service-account"
    id: str
    name: str
    version: int
    subject: str = ""
    role: str
    teams: list[str] = Field(default_factory=list)
    description: str = ""
    created_at: datetime | None = None
    updated_at: datetime | None = None


class ServiceAccountDeletion(View):
    """What goes with a service account: tokens that are revoked, policies that speak of it.

    queued: its requests that are cancelled. active: those that run on to their end.
    """

    service_account: str
    tokens: list[str] = Field(default_factory=list)
    policies: list[str] = Field(default_factory=list)
    queued: list[str] = Field(default_factory=list)
    active: list[str] = Field(default_factory=list)


class TokenCreate(Body):
    """A token. name: unique among the owner's. owner: ``user:alice`` or ``service-account:ci``; the caller if left out.

    expires_s: how long it lasts: 90 days if left out, at most 366 for a person. never_expires: for services only.
    """

    name: str
    owner: str | None = None
    expires_s: SomeSeconds | None = None
    never_expires: Flag = False


class TokenView(View):
    """A token, without what lets anybody in. last_used_at: to the minute."""

    id: str
    name: str
    owner: str
    created_at: datetime
    created_by: str = ""
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None
    status: Literal["valid", "expired", "revoked"] | str = "valid"


class NewToken(TokenView):
    """A token that was just made. token: its text; this is the only time that it is told."""

    token: str

"""What the claims of an identity provider mean here: which user somebody is, in which teams, with which role.

Pure rules. How the claims get here, and that they are the provider's, is the protocol's business (`server/oidc`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from fairpool.app.authz import Role
from fairpool.app.errors import NotAllowed
from fairpool.core.errors import InvalidName
from fairpool.core.ids import check_name

MAX_GROUPS: Final = 10_000
"""Groups of one person that are looked at. A directory that sends more has a loop in it."""

_MAX_TEXT: Final = 200
_SHOWN_GROUPS: Final = 5

_BY_RIGHTS: Final = (Role.ADMIN, Role.OPERATOR, Role.MEMBER, Role.VIEWER)
"""Whose groups say several roles gets the one that may do most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInRules:
    """How an administrator wants the provider's claims to be read.

    username_claim: what users are called here. groups_claim: the list of groups; dots lead into objects.
    allowed_groups: who may sign in at all; empty for everybody whom the provider knows.
    teams: group to team. A group that is not in there means the team that names it as its own, or has its name.
    roles: group to role. Empty: roles are given by hand, and `default_role` is what a new user begins with; otherwise
        every sign-in sets the role, to `default_role` for whoever is in none of these groups.
    """

    username_claim: str = "preferred_username"
    groups_claim: str = "groups"
    allowed_groups: frozenset[str] = frozenset()
    teams: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    roles: Mapping[str, Role] = field(default_factory=lambda: MappingProxyType({}))
    default_role: Role = Role.MEMBER


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who somebody is, in the words of the provider.

    issuer, subject: what stays the same when somebody is renamed. name: what they would be called here.
    """

    issuer: str
    subject: str
    name: str
    display_name: str = ""
    email: str = ""
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamState:
    """A team as a sign-in sees it. group: the provider's group that decides who is in it; "" for by hand."""

    name: str
    members: frozenset[str]
    group: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memberships:
    """What a sign-in changes: the teams that somebody enters and leaves, and all that the provider now vouches for."""

    joined: tuple[str, ...]
    left: tuple[str, ...]
    provided: tuple[str, ...]


def identify(claims: Mapping[str, object], rules: SignInRules) -> Identity:
    """Who the claims speak of. Raises NotAllowed where they do not say it, or where that person may not come in."""
    groups = groups_in(claims, rules.groups_claim)
    if rules.allowed_groups and not rules.allowed_groups.intersection(groups):
        raise NotAllowed(
            f"only members of {_listed(sorted(rules.allowed_groups))} may sign in here; the provider says that you are "
            f"in {_listed(groups)}"
        )
    return Identity(
        issuer=str(claims["iss"]),
        subject=str(claims["sub"]),
        name=_name(claims, rules.username_claim),
        display_name=_text(claims.get("name")),
        email=_text(claims.get("email")),
        groups=groups,
    )


def groups_in(claims: Mapping[str, object], path: str) -> tuple[str, ...]:
    """The groups that the claims list, each once, sorted. Raises NotAllowed where the list was left out for its length:
    whoever seems to be in no group would lose all teams."""
    elsewhere = claims.get("_claim_names")
    if isinstance(elsewhere, Mapping) and path.partition(".")[0] in elsewhere:
        raise NotAllowed(
            f"you are in more groups than the provider lists (claim {path!r} is left out); an administrator of the "
            "provider can have it send only the groups that this application needs"
        )
    found = _at(claims, path)
    listed = [found] if isinstance(found, str) else found if isinstance(found, list | tuple) else []
    groups = sorted({group for group in listed if isinstance(group, str) and group})
    if len(groups) > MAX_GROUPS:
        raise NotAllowed(f"the provider lists {len(groups)} groups of yours; at most {MAX_GROUPS} are looked at")
    return tuple(groups)


def relevant(groups: Iterable[str], rules: SignInRules, teams: Iterable[TeamState]) -> tuple[str, ...]:
    """Those of the groups that mean anything here."""
    meant = {*rules.teams, *rules.roles}
    for team in teams:
        meant |= {team.name, team.group}
    return tuple(group for group in groups if group in meant)


def role_of(groups: Iterable[str], rules: SignInRules, *, known: Role | None) -> Role:
    """The role after a sign-in. known: the one that the user has already, None for a new user."""
    if not rules.roles:
        return rules.default_role if known is None else known
    given = {rules.roles[group] for group in groups if group in rules.roles}
    return next((role for role in _BY_RIGHTS if role in given), rules.default_role)


def memberships(
    user: str, groups: Iterable[str], rules: SignInRules, *, teams: Iterable[TeamState], provided: Iterable[str]
) -> Memberships:
    """Which teams a user enters and leaves at a sign-in. Memberships that were given by hand stay.

    provided: the teams that an earlier sign-in put the user into, so that only those are taken away again; of a team
    that is bound to a group, the provider alone says who is in it.
    """
    known = {team.name: team for team in teams}
    bound = {*rules.teams.values(), *(team.name for team in known.values() if team.group)}
    now = _meant(frozenset(groups), rules, known)
    current = {name for name, team in known.items() if user in team.members}
    earlier = bound | set(provided)
    return Memberships(
        joined=tuple(sorted(now - current)),
        left=tuple(sorted((current - now) & earlier)),
        provided=tuple(sorted((now - current) | (now & earlier))),
    )


def _meant(groups: frozenset[str], rules: SignInRules, teams: Mapping[str, TeamState]) -> set[str]:
    mapped = {rules.teams[group] for group in groups if group in rules.teams}
    owned = {team.name for team in teams.values() if team.group in groups}
    # A team that is bound to one group is not entered through another that happens to have its name.
    same = {
        group for group in groups if group not in rules.teams and group in teams and teams[group].group in ("", group)
    }
    return {name for name in mapped | owned | same if name in teams}


def _name(claims: Mapping[str, object], claim: str) -> str:
    name = _at(claims, claim)
    if not isinstance(name, str) or not name:
        raise NotAllowed(
            f"the provider does not say what you are called: claim {claim!r} is missing; it sent "
            f"{_listed(sorted(claims))}"
        )
    if claim == "email" and claims.get("email_verified") in (False, "false"):  # some providers send text
        raise NotAllowed(f"the provider has not verified that {name!r} is your address")
    try:
        return check_name(name, what="user name")
    except InvalidName as error:
        raise NotAllowed(f"the provider calls you {name!r}: {error.message} (possible: {error.possible})") from None


def _at(claims: Mapping[str, object], path: str) -> object:
    """The claim of that name, which may itself hold dots (``https://example.org/groups``), or at the end of the path
    that the dots lead (``realm_access.roles``)."""
    if path in claims:
        return claims[path]
    here: object = claims
    for part in path.split("."):
        if not isinstance(here, Mapping) or part not in here:
            return None
        here = here[part]
    return here


def _text(value: object) -> str:
    text = value if isinstance(value, str) else ""
    return "".join(char for char in text if char.isprintable())[:_MAX_TEXT]


def _listed(names: Iterable[str]) -> str:
    shown = list(names)
    more = f" and {len(shown) - _SHOWN_GROUPS} more" if len(shown) > _SHOWN_GROUPS else ""
    return ", ".join(repr(name[:_MAX_TEXT]) for name in shown[:_SHOWN_GROUPS]) + more if shown else "none"

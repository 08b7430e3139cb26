"""Signing in: the provider has said who somebody is; from that follow their user, role, teams and a token."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fairpool.app.authz import Role
from fairpool.app.errors import NotAllowed
from fairpool.app.membership import names_in
from fairpool.app.memory import Memory
from fairpool.app.records import AnyDeclared, Declared, Document, Json, Kind, TokenRecord
from fairpool.app.signin import Identity, SignInRules, TeamState, memberships, role_of
from fairpool.app.transaction import Transaction
from fairpool.app.use_cases import people, teams, tokens, users
from fairpool.app.use_cases.declaring import changed

SIGN_IN = "sign-in"
"""As whom the history names what follows from a sign-in: the provider's word, not that of an administrator."""

_NOTE = "sign_in"
"""Where a user's note says which person at the provider it is, and which memberships are the provider's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedIn:
    """Who is signed in, and the token, the only time that its text is known."""

    user: str
    role: Role
    teams: tuple[str, ...]
    token: TokenRecord
    text: str


def sign_in(
    tx: Transaction,
    identity: Identity,
    rules: SignInRules,
    *,
    once: str,
    machine: str,
    life_s: int,
    workspace: str,
    draw: Callable[[int], bytes] = secrets.token_bytes,
) -> Callable[[], SignedIn]:
    """Somebody signs in. once: counts for one sign-in. machine: what the token is called.

    Raises NotAllowed where `once` has been used, or where the user is somebody else at the provider.
    """
    key = f"{SIGN_IN}:{once}"
    if tx.key(Kind.TOKEN, key) is not None:
        raise NotAllowed("this code has been exchanged already: sign in again")
    user = _user(tx, identity, rules)
    provided = _set_teams(tx, user, identity, rules)
    role = _set_user(tx, user, identity, rules, provided)
    subject = people.subject_of(Kind.USER, user.name)
    taken = {token.name for token in tokens.valid_of(tx, subject)}
    issued = tokens.create(tx, subject, free(machine, taken), life_s=life_s, workspace=workspace, draw=draw)()
    tx.use_key(Kind.TOKEN, key, issued.record.id, "")
    signed_in = SignedIn(
        user=user.name,
        role=role,
        teams=tx.memory.teams_of(subject),
        token=issued.record,
        text=issued.text.reveal(),
    )
    return lambda: signed_in


def free(name: str, taken: set[str]) -> str:
    """The name, or the first of ``name-2``, ``name-3``, … that is free: two machines may go by one name."""
    if name not in taken:
        return name
    return next(candidate for number in range(2, len(taken) + 3) if (candidate := f"{name}-{number}") not in taken)


def team_states(declared: list[AnyDeclared] | tuple[AnyDeclared, ...]) -> list[TeamState]:
    """The teams as a sign-in sees them."""
    return [
        TeamState(name=team.name, members=frozenset(names_in(team, "members")), group=teams.group_of(team))
        for team in declared
    ]


def _user(tx: Transaction, identity: Identity, rules: SignInRules) -> Declared[Document]:
    """The user of that person: whoever was that person before, else whoever has the name, else a new one."""
    known = _bound_to(tx.memory, identity)
    if known is not None:
        return known
    if tx.memory.named(Kind.USER, identity.name) is None:
        role = role_of(identity.groups, rules, known=None)
        created = users.create(tx, identity.name, role=role, display_name=identity.display_name, email=identity.email)
        return created()
    user = tx.memory.document(Kind.USER, identity.name)
    if _binding(user):
        raise NotAllowed(
            f"user {user.name!r} is somebody else at the provider: an administrator has to remove that user, or the "
            "provider has to call you something else"
        )
    return user


def _bound_to(memory: Memory, identity: Identity) -> Declared[Document] | None:
    for user in memory.all(Kind.USER):
        binding = _binding(user)
        if (binding.get("issuer"), binding.get("subject")) == (identity.issuer, identity.subject):
            return memory.document(Kind.USER, user.id)
    return None


def _set_teams(tx: Transaction, user: Declared[Document], identity: Identity, rules: SignInRules) -> tuple[str, ...]:
    """Enter and leave teams as the groups say; the memberships that are the provider's from now on."""
    before = _binding(user).get("teams")
    change = memberships(
        user.name,
        identity.groups,
        rules,
        teams=team_states(tx.memory.all(Kind.TEAM)),
        provided=[str(name) for name in before] if isinstance(before, list | tuple) else [],
    )
    for name in change.joined:
        teams.update(tx, tx.memory.document(Kind.TEAM, name).id, teams.TeamChange(add=(user.name,)))
    for name in change.left:
        teams.update(tx, tx.memory.document(Kind.TEAM, name).id, teams.TeamChange(remove=(user.name,)))
    return change.provided


def _set_user(
    tx: Transaction, user: Declared[Document], identity: Identity, rules: SignInRules, provided: tuple[str, ...]
) -> Role:
    """The user with what the provider says: names, and the role where it is the provider's to give."""
    role = role_of(identity.groups, rules, known=people.role_of(user))
    spec: dict[str, Json] = {**user.spec, "role": role.value}
    if identity.display_name:
        spec["display_name"] = identity.display_name
    if identity.email:
        spec["email"] = identity.email
    binding: dict[str, Json] = {"issuer": identity.issuer, "subject": identity.subject, "teams": list(provided)}
    # Not the use case of an administrator, which keeps a last admin: the provider may say that there is none, and the
    # installation's own token is always there.
    changed(tx, user, spec, note={**user.note, _NOTE: binding}, before=user.spec, after=spec)
    return role


def _binding(user: AnyDeclared) -> Mapping[str, Json]:
    found = user.note.get(_NOTE)
    return found if isinstance(found, dict) else {}

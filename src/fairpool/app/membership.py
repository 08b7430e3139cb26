"""Who is in which teams, as the declared documents say."""

from __future__ import annotations

from collections.abc import Iterable

from fairpool.app.records import AnyDeclared
from fairpool.core.policies import Subject, SubjectKind


def names_in(declared: AnyDeclared, field: str) -> tuple[str, ...]:
    """A list of names in a document: the members of a team, the teams of a service account."""
    spec = declared.spec
    found = spec.get(field) if isinstance(spec, dict) else None
    return tuple(str(name) for name in found) if isinstance(found, list | tuple) else ()


def teams_of_all(teams: Iterable[AnyDeclared], accounts: Iterable[AnyDeclared]) -> dict[Subject, tuple[str, ...]]:
    """The teams of everybody who is in one, by name, in order. A team says who of the people is in it; of a service
    account, that itself says it."""
    found: dict[Subject, list[str]] = {}
    for team in teams:
        for name in names_in(team, "members"):
            found.setdefault(Subject(SubjectKind.USER, name), []).append(team.name)
    for account in accounts:
        of_account = list(names_in(account, "teams"))
        if of_account:
            found[Subject(SubjectKind.SERVICE_ACCOUNT, account.name)] = of_account
    return {subject: tuple(sorted(names)) for subject, names in found.items()}

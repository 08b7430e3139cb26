"""Who calls, and what they may do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from fairpool.app.errors import NotAllowed
from fairpool.app.records import DEFAULT_WORKSPACE, Owner
from fairpool.core.policies import Subject, SubjectKind

INSTALLATION = "local"
"""As whom the installation's own token acts: whoever may read the server's files."""


class Role(StrEnum):
    """What somebody may do in a workspace, from everything to only looking."""

    ADMIN = "admin"
    OPERATOR = "operator"
    MEMBER = "member"
    VIEWER = "viewer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who calls.

    subject: the user or service account; None for the installation's own token. teams: those that it is in, by name.
    token: the id of its token, "" for the installation's own. token_name: what its owner calls it.
    """

    subject: Subject | None
    role: Role
    teams: frozenset[str] = frozenset()
    workspace: str = DEFAULT_WORKSPACE
    token: str = ""
    token_name: str = ""

    @property
    def actor(self) -> str:
        """As whom the history names it."""
        return INSTALLATION if self.subject is None else str(self.subject)

    def is_one_of(self, subject: Subject) -> bool:
        """Whether that is the caller, or a team of theirs."""
        return subject == self.subject or (subject.kind is SubjectKind.TEAM and subject.name in self.teams)

    def owns(self, made_by: str, subjects: Iterable[Subject] = ()) -> bool:
        """Whether something is the caller's own, or their team's, by who made it and as whom."""
        return made_by == self.actor or any(map(self.is_one_of, subjects))


class Right(StrEnum):
    """How far somebody may use a route."""

    NO = "no"
    OWN = "own"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What a caller may do something with, on one route: everything, or only what is theirs."""

    principal: Principal
    right: Right

    def covers(self, made_by: str, subjects: Iterable[Subject] = ()) -> bool:
        """Whether it is within reach: whoever may do it with all may, and so may who made it, who it is made as, and
        who is in a team that it is made as."""
        if self.right is Right.ALL:
            return True
        return self.right is Right.OWN and self.principal.owns(made_by, subjects)

    @property
    def owner(self) -> Owner | None:
        """Whose things are within reach; None for everybody's."""
        if self.right is Right.ALL:
            return None
        principal = self.principal
        subjects = sorted(f"team:{name}" for name in principal.teams)
        return Owner(made_by=principal.actor, subjects=(principal.actor, *subjects))

    def check(self, what: str, made_by: str, subjects: Iterable[Subject] = ()) -> None:
        """Raise NotAllowed where it is out of reach."""
        if not self.covers(made_by, subjects):
            raise NotAllowed(f"{what} is neither yours nor your team's")


OWNER = Principal(subject=None, role=Role.ADMIN)
"""Whoever holds the installation's own token."""

EVERYTHING = Reach(principal=OWNER, right=Right.ALL)
"""What the server itself may."""

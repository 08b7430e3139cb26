"""Who calls, and what they may do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from fairpool.app.records import DEFAULT_WORKSPACE
from fairpool.core.policies import Subject

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


OWNER = Principal(subject=None, role=Role.ADMIN)
"""Whoever holds the installation's own token."""

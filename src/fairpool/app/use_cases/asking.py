"""As whom somebody asks: filled in from who they are and the teams that they are in, so that nobody asks as others."""

from __future__ import annotations

from functools import lru_cache

from fairpool.app.authz import Principal, Role
from fairpool.app.errors import NotAllowed
from fairpool.app.memory import Memory
from fairpool.core.policies import Subject, SubjectKind

_ANY_SUBJECT = frozenset({Role.ADMIN, Role.OPERATOR})


def made_as(memory: Memory, caller: Principal, said: tuple[Subject, ...], team: str = "") -> tuple[Subject, ...]:
    """The subjects of what somebody makes: what they said, themselves, and their teams, or the one that they chose.

    said: as it arrived; who runs things, and the installation's own token, may name anybody, and then it is made as
    those alone. team: of their teams the one that counts. Raises NotAllowed for others of whom they are none.
    """
    named = (*said, Subject(SubjectKind.TEAM, team)) if team else said
    if caller.subject is None:
        return tuple(dict.fromkeys(named))
    components = tuple(subject for subject in named if subject.kind is SubjectKind.COMPONENT)
    others = tuple(subject for subject in named if subject.kind is not SubjectKind.COMPONENT)
    teams = memory.teams_of(caller.subject)
    foreign = [subject for subject in others if not _is_one_of(subject, caller.subject, teams)]
    if not foreign:
        return _joined(components, others, teams, caller.subject)
    if caller.role in _ANY_SUBJECT:
        return tuple(dict.fromkeys(named))
    raise NotAllowed(_refusal(foreign[0], teams))


def _is_one_of(subject: Subject, caller: Subject, teams: tuple[str, ...]) -> bool:
    return subject == caller or (subject.kind is SubjectKind.TEAM and subject.name in teams)


@lru_cache(maxsize=10_000)
def _joined(
    components: tuple[Subject, ...], chosen: tuple[Subject, ...], teams: tuple[str, ...], caller: Subject
) -> tuple[Subject, ...]:
    """The same few people make all the requests."""
    theirs = chosen or tuple(Subject(SubjectKind.TEAM, name) for name in teams)
    return tuple(dict.fromkeys((*components, *theirs, caller)))


def _refusal(subject: Subject, teams: tuple[str, ...]) -> str:
    yours = f"you are in {', '.join(f'team {name}' for name in teams)}" if teams else "you are in no team"
    if subject.kind is SubjectKind.TEAM:
        return f"you are not in team {subject.name!r}, so you cannot ask as it: {yours}"
    return f"you are not {subject}, so you cannot ask as it; only an operator or an admin may"

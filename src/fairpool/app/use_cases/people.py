"""What users, teams and service accounts share: names as subjects, roles, and as whom somebody may ask."""

from __future__ import annotations

from fairpool.app.authz import Role
from fairpool.app.membership import names_in
from fairpool.app.memory import Memory
from fairpool.app.records import AnyDeclared, Declared, Document, Kind
from fairpool.app.transaction import Transaction
from fairpool.app.use_cases.declaring import changed, nearest
from fairpool.core.errors import InvalidInput
from fairpool.core.policies import Policy, Subject, SubjectKind

_NAMED = 5
"""Of what exists, so many are named where none is like what was asked for."""

_SUBJECTS = {
    Kind.USER: SubjectKind.USER,
    Kind.TEAM: SubjectKind.TEAM,
    Kind.SERVICE_ACCOUNT: SubjectKind.SERVICE_ACCOUNT,
}


def subject_of(kind: Kind, name: str) -> Subject:
    """How policies speak of a user, a team or a service account."""
    return Subject(_SUBJECTS[kind], name)


def check_team(memory: Memory, name: str, *, field: str) -> None:
    """Raise InvalidInput for a team that is neither declared nor spoken of by a policy. field: where it was named."""
    spoken = (policy.spec.subject for policy in memory.all(Kind.POLICY) if isinstance(policy.spec, Policy))
    known = {team.name for team in memory.all(Kind.TEAM)}
    known |= {subject.name for subject in spoken if subject.kind is SubjectKind.TEAM}
    if name not in known:
        likely = nearest(name, sorted(known)) or sorted(known)[:_NAMED]
        possible = f"a team that is declared, or that has a policy ({', '.join(likely) if likely else 'there is none'})"
        raise InvalidInput(f"there is no team {name!r}", field=field, value=name, possible=possible)


def role_of(declared: AnyDeclared) -> Role:
    """What a user or a service account may do."""
    spec = declared.spec
    return Role(str(spec["role"])) if isinstance(spec, dict) else Role.VIEWER


def note_of(description: str) -> Document:
    """What is said about an object besides."""
    return {"description": description} if description else {}


def described(note: Document, description: str | None) -> Document:
    """A note with another description; None leaves it as it is, and "" takes it away."""
    if description is None:
        return note
    return {**{key: value for key, value in note.items() if key != "description"}, **note_of(description)}


def trial(tx: Transaction, kind: Kind, name: str, spec: Document, note: Document) -> Declared[Document]:
    """An object that is only tried out."""
    return Declared(kind=kind, id="", name=name, spec=spec, created_at=tx.now, updated_at=tx.now, note=note)


def rename_in(tx: Transaction, declared: AnyDeclared, field: str, name: str, new: str | None) -> None:
    """A list of names in a document names another in place of `name`, or just not that one any more."""
    names = names_in(declared, field)
    if name in names:
        old = tx.memory.document(declared.kind, declared.id)
        after = [new if known == name else known for known in names if known != name or new is not None]
        changed(tx, old, {**old.spec, field: after}, before=old.spec, after={**old.spec, field: after})

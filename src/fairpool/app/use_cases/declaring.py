"""What all declared objects share: versions, names, and the history of their changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from fairpool.app.errors import Exists, NotFound, Stale
from fairpool.app.memory import Memory, near
from fairpool.app.records import Declared, Document, Kind, Spec
from fairpool.app.schedules import OPEN
from fairpool.app.transaction import Transaction

SpecT = TypeVar("SpecT", bound=Spec)


def check_free(tx: Transaction, kind: Kind, name: str) -> None:
    """Raise Exists where an object of that kind has the name."""
    if tx.memory.named(kind, name) is not None:
        raise Exists(kind.value, name)


def check_known(memory: Memory, kind: Kind, names: Iterable[str]) -> None:
    """Raise NotFound for the first name that no object of that kind has."""
    for name in names:
        if memory.named(kind, name) is None:
            known = [declared.name for declared in memory.all(kind)]
            raise NotFound(kind.value, name, candidates=nearest(name, known))


def nearest(name: str, known: Sequence[str]) -> list[str]:
    """The known names that are most like this one, where there are not too many to look at."""
    return near(name, known)


def check_version(declared: Declared[SpecT], expected: int | None) -> None:
    """Raise Stale where the caller has read another version."""
    if expected is not None and declared.version != expected:
        raise Stale(declared.kind.value, declared.name, expected=expected, actual=declared.version)


def created(
    tx: Transaction, kind: Kind, object_id: str, name: str, spec: SpecT, *, note: Document, shown: Document
) -> Declared[SpecT]:
    """A new object, put and written into the history.

    shown: all that there is to know of its spec; with the note the history is then enough to make it anew.
    """
    declared = Declared(kind=kind, id=object_id, name=name, spec=spec, created_at=tx.now, updated_at=tx.now, note=note)
    tx.put(declared)
    tx.note(kind, object_id, "created", name=name, after={**_said(note), **shown})
    return declared


def changed(
    tx: Transaction,
    old: Declared[SpecT],
    spec: SpecT,
    *,
    name: str | None = None,
    note: Document | None = None,
    before: Document,
    after: Document,
) -> Declared[SpecT]:
    """The object in its new version, put and written into the history; the same one where nothing changed."""
    new = replace(old, spec=spec, name=name or old.name, note=old.note if note is None else note)
    if new == old:
        return old
    new = replace(new, version=old.version + 1, updated_at=tx.now)
    tx.put(new)
    before, after = {**_said(old.note), **before}, {**_said(new.note), **after}
    different = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    tx.note(
        old.kind,
        old.id,
        f"{', '.join(sorted(different)) or 'description'} changed",
        name=new.name,
        before={key: before[key] for key in different if key in before},
        after={key: after[key] for key in different if key in after},
    )
    return new


def deleted(tx: Transaction, old: Declared[SpecT], *, shown: Document, cause: str = "") -> None:
    """An object goes, and the history keeps all that there was to know of it."""
    tx.drop(old.kind, old.id)
    tx.note(old.kind, old.id, "deleted", name=old.name, cause=cause, before={**_said(old.note), **shown})


def _said(note: Document) -> Document:
    """What somebody has said of an object; which window is open the clock says."""
    return {key: value for key, value in note.items() if key != OPEN}

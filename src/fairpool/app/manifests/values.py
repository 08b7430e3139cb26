"""What is wanted, what there is, and what would be changed, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from fairpool.app.records import Document, Json, Kind

DEFAULT_SET = "default"
MANAGED = "managed"
"""In the note of an object: the set of documents that it was last applied from."""

Key = tuple[Kind, str]
"""What names an object in documents: its kind and its name; of a policy ``pool/subject``."""


class Action(StrEnum):
    """What becomes of an object. `ADOPT`: it is as wanted already, and belongs to the set from now on."""

    CREATE = "create"
    CHANGE = "change"
    DELETE = "delete"
    ADOPT = "adopt"
    KEEP = "keep"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """An object as a document wants it.

    body: every field, in the one form that `Known.body` has too. said: only those that are not as they would be anyway.
    index: the place of the document among those that were sent.
    """

    kind: Kind
    name: str
    body: Document
    said: Document
    index: int

    @property
    def key(self) -> Key:
        """What names it."""
        return self.kind, self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """An object as it is. managed: the set that it was last applied from; "" for what was made otherwise."""

    kind: Kind
    name: str
    id: str
    version: int
    body: Document
    managed: str = ""

    @property
    def key(self) -> Key:
        """What names it."""
        return self.kind, self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """How far documents reach.

    set_name: what the documents belong to. prune: objects of that set that no document names any more are deleted;
    kinds: only of these kinds, of all where it is empty. delete: the documents name what is to go.
    adopt: objects that are as wanted already belong to the set from now on. overwrite: what belongs to another set, and
    labels of nodes that were not put there by this one, may be changed.
    """

    set_name: str = DEFAULT_SET
    prune: bool = False
    kinds: frozenset[Kind] = frozenset()
    delete: bool = False
    adopt: bool = False
    overwrite: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldChange:
    """One field that differs, by its dotted path. old, new: None where it is not there, or is null."""

    field: str
    old: Json
    new: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What becomes of one object.

    known: as it is; None for one that is created. body: as it will be; None for one that is deleted.
    index: of the document that wants it; None for what is pruned.
    """

    action: Action
    kind: Kind
    name: str
    known: Known | None
    body: Document | None
    index: int | None
    fields: tuple[FieldChange, ...] = ()

    @property
    def key(self) -> Key:
        """What names the object."""
        return self.kind, self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What applying documents changes. Empty `pending` means that nothing does.

    pending: in the order in which they are tried. kept: what is as wanted already.
    """

    pending: tuple[Change, ...] = ()
    kept: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Affected:
    """A request that a change of the rules does something to. why: in words, without a full stop."""

    request: str
    name: str
    subject: str
    pool: str
    why: str
    demand: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What happens to work. outcome: ``evicted``, ``rejected``, ``cancelled``, ``starts``, ``unaccounted``, …"""

    outcome: str
    requests: tuple[Affected, ...] = field(default_factory=tuple)

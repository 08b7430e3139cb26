"""Planning and applying documents, for tests."""

from __future__ import annotations

from typing import Any

from fairpool.app.manifests import planning, what_if
from fairpool.app.manifests.carrying_out import carry_out
from fairpool.app.manifests.values import Changes, Scope
from fairpool.app.memory import Memory
from fairpool.app.transaction import Transaction
from fairpool.server import declaring
from fairpool.wire.manifests.kinds import read_document
from tests.documents import Data
from tests.unit.app.office import Office


def plan(office: Office, *documents: Data, **scope: Any) -> Changes:
    """What these documents would change."""
    return office.ask(lambda memory, now: _changes(memory, documents, Scope(**scope)))


def _changes(memory: Memory, documents: tuple[Data, ...], scope: Scope) -> Changes:
    read = [read_document(document) for document in documents]
    return planning.changes(declaring.known(memory), declaring.wanted(memory, read), scope)


def attempt(office: Office, *documents: Data, on_work: str = "refuse", **scope: Any) -> what_if.Trial:
    """What that would do to work."""
    found = plan(office, *documents, **scope)
    stored = office.ask(lambda memory, now: what_if.frozen(memory))
    uses = declaring.uses(SEALER, str, on_work)
    return what_if.attempt(stored, office.store.reader, office.clock.now(), found, Scope(**scope), uses)


def apply(office: Office, *documents: Data, on_work: str = "refuse", **scope: Any) -> None:
    """Carry them out."""
    office.do(lambda tx: carrying(tx, documents, Scope(**scope), on_work))


def carrying(tx: Transaction, documents: tuple[Data, ...], scope: Scope, on_work: str = "refuse") -> Any:
    carry_out(tx, _changes(tx.memory, documents, scope), scope, declaring.uses(SEALER, str, on_work))
    return lambda: None


def summary(changes: Changes) -> list[str]:
    return [f"{change.action} {change.kind} {change.name}" for change in changes.pending]


def fields(changes: Changes) -> dict[str, tuple[object, object]]:
    return {field.field: (field.old, field.new) for change in changes.pending for field in change.fields}


class Plainly:
    """Seals nothing."""

    def seal(self, text: str) -> str:
        return text

    def open(self, sealed: str) -> str:
        return sealed

    def seal_anew(self, sealed: str) -> str:
        return sealed


SEALER = Plainly()

"""Carrying out what a plan says, in whatever order the rules allow at each step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from fairpool.app.errors import AppError, Conflict
from fairpool.app.manifests.values import MANAGED, Action, Change, Changes, Scope
from fairpool.app.records import Document, Kind
from fairpool.app.transaction import Transaction
from fairpool.core.errors import CoreError


class Uses(Protocol):
    """The use cases of one kind. Each refuses before it changes anything, or does all of it."""

    def create(self, tx: Transaction, body: Document) -> str:
        """A new object; its id."""

    def change(self, tx: Transaction, object_id: str, body: Document) -> None:
        """An object becomes as the body has it, in every field."""

    def delete(self, tx: Transaction, object_id: str) -> None:
        """An object goes."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """That a change cannot be made."""

    change: Change
    error: AppError | CoreError


class Refusals(AppError):
    """Some changes cannot be made in any order. What was made before is in the transaction: it must not be committed.

    refusals: one for each that could not.
    """

    def __init__(self, refusals: Sequence[Refusal]) -> None:
        super().__init__("; ".join(f"{one.change.kind} {one.change.name!r}: {one.error}" for one in refusals))
        self.refusals = tuple(refusals)


def carry_out(tx: Transaction, changes: Changes, scope: Scope, uses: Mapping[Kind, Uses]) -> None:
    """Make all changes, or raise Refusals.

    The rules hold at every step, so some changes wait for others: what one policy gives up another gets, a pool grows
    before more of it is promised and shrinks after less is, a node leaves one pool before it joins the next. What is
    refused is therefore tried again after the others, until all is done or nothing more can be.
    """
    pending = list(changes.pending)
    while pending:
        refusals: list[Refusal] = []
        for change in pending:
            before = tx.writes
            try:
                _make(tx, change, scope, uses[change.kind])
            except (AppError, CoreError) as error:
                if tx.writes != before:
                    raise  # half done: whoever runs this throws the transaction away
                refusals.append(Refusal(change, error))
        if len(refusals) == len(pending):
            raise Refusals(refusals)
        pending = [refusal.change for refusal in refusals]
    _check_wanted_is_there(tx, changes)


def _check_wanted_is_there(tx: Transaction, changes: Changes) -> None:
    """A pool that goes takes its policies along, a team what speaks of it; a document that wants one of them
    contradicts the others."""
    gone = [
        Refusal(
            change, Conflict("it goes with the pool or team that it names, which no document names: add that one's")
        )
        for change in (*changes.kept, *changes.pending)
        if change.action is not Action.DELETE and tx.memory.named(change.kind, change.name) is None
    ]
    if gone:
        raise Refusals(gone)


def _make(tx: Transaction, change: Change, scope: Scope, uses: Uses) -> None:
    if change.action is Action.DELETE:
        assert change.known is not None
        if tx.memory.get(change.kind, change.known.id) is not None:  # it may have gone with another
            uses.delete(tx, change.known.id)
        return
    object_id = change.known.id if change.known is not None else ""
    if change.action is Action.CREATE:
        assert change.body is not None
        object_id = uses.create(tx, change.body)
    elif change.action is Action.CHANGE:
        assert change.body is not None
        uses.change(tx, object_id, change.body)
    _mark(tx, change, object_id, scope.set_name)


def _mark(tx: Transaction, change: Change, object_id: str, set_name: str) -> None:
    """Remember which set the object belongs to, in the version that was just made."""
    declared = tx.memory.get(change.kind, object_id)
    assert declared is not None
    old = declared.note.get(MANAGED, "")
    if old == set_name:
        return
    declared = replace(declared, note={**declared.note, MANAGED: set_name})
    if change.action is Action.ADOPT:
        declared = replace(declared, version=declared.version + 1, updated_at=tx.now)
    tx.put(declared)
    if change.action is not Action.CREATE:
        tx.note(
            change.kind,
            object_id,
            "managed changed",
            name=declared.name,
            before={MANAGED: old} if old else {},
            after={MANAGED: set_name},
        )

"""Mistakes that a store could make, to see that the checks find them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from fairpool.app.ports import Leases, Reader, Stored
from fairpool.app.records import Batch
from fairpool.core.requests import Status
from fairpool.store.sql import SqlStore
from tests.crashes.killing import Wrap


class _Around:
    """A store with something between it and its server."""

    def __init__(self, store: SqlStore) -> None:
        self.store = store

    @property
    def leases(self) -> Leases:
        return self.store.leases

    @property
    def reader(self) -> Reader:
        return self.store.reader

    def commit(self, batch: Batch, token: int) -> int:
        return self.store.commit(batch, token)

    def erase(self, token: int) -> bool:
        return self.store.erase(token)

    def load(self) -> Stored:
        return self.store.load()

    def beside(self, workspace: str) -> SqlStore:
        return self.store.beside(workspace)

    def close(self) -> None:
        self.store.close()


class HistoryApart(_Around):
    """What happened is written down in a transaction of its own."""

    def commit(self, batch: Batch, token: int) -> int:
        self.store.commit(replace(batch, changes=()), token)
        return self.store.commit(Batch(changes=batch.changes), token)


class EvictionsApart(_Around):
    """Who is told to let go is written down before the request that it is for."""

    def commit(self, batch: Batch, token: int) -> int:
        told = tuple((request, state) for request, state in batch.updated if state.status is Status.PREEMPTING)
        if told:
            self.store.commit(Batch(updated=told), token)
        return self.store.commit(replace(batch, updated=tuple(x for x in batch.updated if x not in told)), token)


class ClaimsForgotten(_Around):
    """What is kept for whom is not written down."""

    def commit(self, batch: Batch, token: int) -> int:
        inserted = tuple(replace(record, state=replace(record.state, claim=None)) for record in batch.inserted)
        updated = tuple((request, replace(state, claim=None)) for request, state in batch.updated)
        return self.store.commit(replace(batch, inserted=inserted, updated=updated), token)


class KeysForgotten(_Around):
    """Idempotency keys are not written down."""

    def commit(self, batch: Batch, token: int) -> int:
        return self.store.commit(replace(batch, keys=()), token)


class HistoryForgotten(_Around):
    """The last of several things that happened at once is not written down."""

    def commit(self, batch: Batch, token: int) -> int:
        changes = batch.changes[:-1] if len(batch.changes) > 1 else batch.changes
        return self.store.commit(replace(batch, changes=changes), token) + len(batch.changes) - len(changes)


class WrittenLater(_Around):
    """A commit returns before it is one: it is written with the next."""

    def __init__(self, store: SqlStore) -> None:
        super().__init__(store)
        self._waiting: list[Batch] = []

    def commit(self, batch: Batch, token: int) -> int:
        for waiting in self._waiting:
            self.store.commit(waiting, token)
        self._waiting = [batch]
        return self.store.reader.history.last_seq() + len(batch.changes)


SPOILS: Final[Mapping[str, Wrap]] = MappingProxyType(
    {
        "history-apart": HistoryApart,
        "evictions-apart": EvictionsApart,
        "claims-forgotten": ClaimsForgotten,
        "keys-forgotten": KeysForgotten,
        "history-forgotten": HistoryForgotten,
        "written-later": WrittenLater,
    }
)

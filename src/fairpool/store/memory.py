"""The store that forgets: the contract of the SQL store without a disk, for tests and the simulator."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, fields, replace

from fairpool.app.ports import Stored
from fairpool.app.records import (
    DECLARED,
    AnyDeclared,
    Batch,
    HistoryEntry,
    KeyUse,
    Kind,
    Leadership,
    RequestRecord,
    RunRecord,
    StepRecord,
    TokenRecord,
    WebhookCursor,
    cursors_of,
)
from fairpool.app.store_errors import StaleLeader
from fairpool.core.ids import Instant, RequestId, seconds
from fairpool.store.constraints import violated
from fairpool.store.memory_checks import Holdings, check_declared, check_forward, check_state, latest
from fairpool.store.memory_reading import MemoryReader
from fairpool.store.snapshots import stored


@dataclass(slots=True)
class Contents:
    """What the store holds; dictionaries are in order of arrival."""

    declared: dict[tuple[Kind, str], AnyDeclared] = field(default_factory=dict)
    requests: dict[RequestId, RequestRecord] = field(default_factory=dict)
    live: dict[RequestId, None] = field(default_factory=dict)
    runs: dict[str, RunRecord] = field(default_factory=dict)
    steps: dict[str, StepRecord] = field(default_factory=dict)
    keys: dict[tuple[Kind, str], KeyUse] = field(default_factory=dict)
    history: list[HistoryEntry] = field(default_factory=list)
    tokens: dict[str, TokenRecord] = field(default_factory=dict)
    cursors: dict[str, WebhookCursor] = field(default_factory=dict)
    sequence: int = 0


class MemoryStore:
    """See `ports.Store`."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._contents = Contents()
        self._holdings = Holdings()
        self._leases = MemoryLeases(self._lock)
        self._reader = MemoryReader(self._contents, self._lock)

    @property
    def leases(self) -> MemoryLeases:
        """See `ports.Store`."""
        return self._leases

    @property
    def reader(self) -> MemoryReader:
        """See `ports.Store`."""
        return self._reader

    def commit(self, batch: Batch, token: int) -> int:
        """See `ports.Store`."""
        with self._lock:
            self._leases.check(token)
            declared = self._declared_after(batch)
            self._check(batch)
            # Nothing below can fail.
            self._contents.declared = declared
            self._apply(batch)
            return len(self._contents.history)

    def erase(self, token: int) -> bool:
        """See `ports.Store`."""
        with self._lock:
            self._leases.check(token)
            empty = Contents()
            for part in fields(Contents):
                setattr(self._contents, part.name, getattr(empty, part.name))
            self._holdings = Holdings()
            return False

    def load(self) -> Stored:
        """See `ports.Store`."""
        with self._lock:
            contents = self._contents
            objects = sorted(contents.declared.values(), key=lambda one: (DECLARED.index(one.kind), one.name, one.id))
            return stored(
                tuple(objects),
                {request: contents.requests[request] for request in contents.live},
                sequence=contents.sequence,
                history_seq=len(contents.history),
            )

    def close(self) -> None:
        """See `ports.Store`."""

    def _declared_after(self, batch: Batch) -> dict[tuple[Kind, str], AnyDeclared]:
        if not batch.drop and not batch.put:
            return self._contents.declared
        declared = dict(self._contents.declared)
        for kind, dropped in batch.drop:
            if declared.pop((kind, dropped), None) is None:
                raise violated("known_object")
        declared |= {(one.kind, one.id): one for one in batch.put}
        check_declared(declared.values())
        return declared

    def _check(self, batch: Batch) -> None:
        contents = self._contents
        new = {record.id: record for record in batch.inserted}
        if len(new) < len(batch.inserted) or not contents.requests.keys().isdisjoint(new):
            raise violated("uq_requests_id")
        now = {record.id: record.state for record in batch.inserted}
        for request, state in batch.updated:
            before = now.get(request) or (contents.requests[request].state if request in contents.requests else None)
            if before is None:
                raise violated("known_request")
            check_forward(before, state)
            now[request] = state
        for state in now.values():
            check_state(state)
        if any(request not in contents.requests and request not in new for request, _ in batch.renewed):
            raise violated("known_request")
        if any(request.id not in contents.requests and request.id not in new for request in batch.redirected):
            raise violated("known_request")
        keys = {(use.kind, use.key) for use in batch.keys}
        if len(keys) < len(batch.keys) or not contents.keys.keys().isdisjoint(keys):
            raise violated("pk_idempotency_keys")
        runs = {run.id for run in batch.runs}
        if any(step.run not in contents.runs and step.run not in runs for step in batch.steps):
            raise violated("fk_steps_run")
        states = latest(batch.inserted, batch.updated)
        self._holdings.move(
            (request, contents.requests[request].state if request in contents.requests else None, state)
            for request, state in states.items()
        )

    def _apply(self, batch: Batch) -> None:
        contents = self._contents
        for record in batch.inserted:
            self._keep(record)
        for request, state in batch.updated:
            self._keep(replace(contents.requests[request], state=state))
        for request, lease in batch.renewed:
            self._keep(replace(contents.requests[request], lease=lease))
        for redirected in batch.redirected:
            self._keep(replace(contents.requests[redirected.id], request=redirected))
        contents.tokens |= {token.id: token for token in batch.tokens}
        for kind, dropped in batch.drop:
            for name in cursors_of(dropped) if kind is Kind.WEBHOOK else ():
                contents.cursors.pop(name, None)
        contents.cursors |= {cursor.name: cursor for cursor in batch.cursors}
        for run in batch.runs:
            old = contents.runs.get(run.id)
            contents.runs[run.id] = replace(run, labels=old.labels) if old else run
        contents.steps |= {step.id: step for step in batch.steps}
        contents.keys |= {(use.kind, use.key): use for use in batch.keys}
        for change in batch.changes:
            contents.history.append(HistoryEntry(seq=len(contents.history) + 1, change=change))
        if batch.sequence is not None:
            contents.sequence = batch.sequence

    def _keep(self, record: RequestRecord) -> None:
        self._contents.requests[record.id] = record
        if record.status.is_final:
            self._contents.live.pop(record.id, None)
        else:
            self._contents.live[record.id] = None


class MemoryLeases:
    """See `ports.Leases`."""

    def __init__(self, lock: threading.RLock) -> None:
        self._lock = lock
        self._leadership: Leadership | None = None

    def acquire(self, holder: str, now: Instant, ttl_s: float, address: str = "") -> Leadership:
        """See `ports.Leases`."""
        with self._lock:
            old = self._leadership
            if old is not None and old.holder != holder and old.until > now:
                return old
            token = old.token + 1 if old else 1
            until = Instant(now + seconds(ttl_s))
            self._leadership = Leadership(holder=holder, token=token, until=until, address=address)
            return self._leadership

    def renew(self, token: int, now: Instant, ttl_s: float) -> Leadership:
        """See `ports.Leases`."""
        with self._lock:
            self._leadership = replace(self.check(token), until=Instant(now + seconds(ttl_s)))
            return self._leadership

    def release(self, token: int) -> None:
        """See `ports.Leases`."""
        with self._lock:
            if self._leadership is not None and self._leadership.token == token:
                self._leadership = replace(self._leadership, until=Instant(0))

    def current(self) -> Leadership | None:
        """See `ports.Leases`."""
        return self._leadership

    def check(self, token: int) -> Leadership:
        """The leadership that this token is of. Raises StaleLeader."""
        if self._leadership is None or self._leadership.token != token:
            raise StaleLeader(token=token, current=self._leadership.token if self._leadership else 0)
        return self._leadership

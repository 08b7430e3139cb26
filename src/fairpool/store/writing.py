"""A batch as statements, inside one transaction.

The order of the steps is what lets one batch say everything at once: what goes makes room for what comes (a node moves
from pool to pool, a device from request to request), and what is pointed to is there before what points to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from sqlalchemy import Connection, Table

from fairpool.app.records import DOCUMENTS, AnyDeclared, Batch, Kind, RequestRecord, State, cursors_of
from fairpool.core.ids import RequestId
from fairpool.core.policies import Subject
from fairpool.store import declared_rows, report_rows, request_rows, schema
from fairpool.store.constraints import violated
from fairpool.store.databases import Database, Settle, Touched, Turn
from fairpool.store.leases import check_token, leader_name

Values = dict[str, Any]

_DROP_ORDER: Final = (Kind.POLICY, Kind.POOL, Kind.PROFILE, *DOCUMENTS)
_PUT_ORDER: Final = (
    schema.pools,
    schema.pool_nodes,
    schema.pool_amounts,
    schema.policies,
    schema.policy_pools,
    schema.policy_amounts,
    schema.profiles,
    schema.documents,
)


_PARTS: Final = (schema.pool_nodes, schema.pool_amounts, schema.policy_pools, schema.policy_amounts)
"""What other objects are made of: written anew as a whole."""


class Writer:
    """Writes the batches of one workspace."""

    def __init__(self, workspace: str, database: Database) -> None:
        self._workspace = workspace
        self._leader = leader_name(workspace)
        self._database = database
        self._on = {table: database.table_writer(table) for table in schema.metadata.tables.values()}
        self._expected: list[tuple[str, int, Touched]] = []
        self._seen_subjects: set[str] = set()
        self._new_subjects: set[str] = set()

    def write(self, connection: Connection, batch: Batch, token: int, settle: Settle) -> int:
        """Write the batch; returns the seq of the last history entry. settle: of the block in which it is written.

        Raises StaleLeader when `token` is not the current one, MissingReference, and what the database raises.
        """
        # Whose turn it is draws numbers inside its transaction: over all workspaces they have no gaps, and no order but
        # the one in which they become visible.
        turn = self._database.take_turn(connection, self._leader, settle)
        check_token(token, turn.token)
        self._expected = []
        self._write(connection, batch, turn)
        settle()
        for constraint, wanted, touched in self._expected:
            if touched() != wanted:
                raise violated(constraint)
        return turn.history + len(batch.changes)

    def _write(self, connection: Connection, batch: Batch, turn: Turn) -> None:
        self._take_off_dropped_pools(connection, batch)
        self._drop(connection, batch.drop)
        self._put(connection, batch.put)
        self._insert(connection, batch.inserted, turn.requests + 1)
        self._update(connection, batch.updated)
        self._hold_devices(connection, batch)
        self._renew(connection, batch)
        self._redirect(connection, batch)
        tokens = [report_rows.token_values(token) for token in batch.tokens]
        self._on[schema.tokens].put(connection, tokens, by=("id",))
        self._report(connection, batch, turn)
        if batch.keys:
            keys = [report_rows.key_values(use, self._workspace) for use in batch.keys]
            self._on[schema.idempotency_keys].insert(connection, keys)
        cursors = [report_rows.cursor_values(cursor, self._workspace) for cursor in batch.cursors]
        self._on[schema.webhook_cursors].put(connection, cursors, by=("workspace", "webhook_id"))
        if batch.sequence is not None:
            row = {"name": self._workspace, "grant_sequence": batch.sequence}
            self._on[schema.workspaces].put(connection, [row], by=("name",))
        self._append(connection, batch, turn.history + 1)

    def committed(self) -> None:
        """What was written is durable: remember what need not be written again."""
        self._seen_subjects |= self._new_subjects
        self._new_subjects = set()

    # ---- declared objects -------------------------------------------------------------------------------------------

    def _drop(self, connection: Connection, drop: tuple[tuple[Kind, str], ...]) -> None:
        for kind in _DROP_ORDER if drop else ():
            rows: list[Values] = [
                {"workspace": self._workspace, "id": dropped} for its_kind, dropped in drop if its_kind is kind
            ]
            table = declared_rows.TABLES[kind]
            if table is schema.documents:
                rows = [row | {"kind": kind.value} for row in rows]
            self._expect("known_object", len(rows), self._on[table].drop(connection, rows))
        for kind, dropped in drop:
            if kind is Kind.WEBHOOK:
                cursors = [{"workspace": self._workspace, "webhook_id": name} for name in cursors_of(dropped)]
                self._on[schema.webhook_cursors].drop(connection, cursors)

    def _take_off_dropped_pools(self, connection: Connection, batch: Batch) -> None:
        """A policy that had one of its pools taken from it may not point there when the pool goes: it is put anew."""
        if any(kind is Kind.POOL for kind, _ in batch.drop):
            rows: list[Values] = [
                {"workspace": self._workspace, "id": one.id} for one in batch.put if one.kind is Kind.POLICY
            ]
            self._on[schema.policies].drop(connection, rows)

    def _put(self, connection: Connection, put: tuple[AnyDeclared, ...]) -> None:
        if not put:
            return
        rows: dict[Table, list[Values]] = {table: [] for table in _PUT_ORDER}
        for declared in put:
            for table, row in declared_rows.rows_of(declared, self._workspace):
                rows[table].append(row)
        # What an object is made of is written anew as a whole.
        for table, column, kind in (
            (schema.pool_nodes, "pool_id", Kind.POOL),
            (schema.pool_amounts, "pool_id", Kind.POOL),
            (schema.policy_pools, "policy_id", Kind.POLICY),
            (schema.policy_amounts, "policy_id", Kind.POLICY),
        ):
            owners = [{"workspace": self._workspace, column: one.id} for one in put if one.kind is kind]
            self._on[table].drop(connection, owners)
        for table in _PUT_ORDER:
            if table in _PARTS:
                self._on[table].insert(connection, rows[table])
            else:
                by = ("workspace", "kind", "id") if table is schema.documents else ("workspace", "id")
                self._on[table].put(connection, rows[table], by=by)

    # ---- requests ---------------------------------------------------------------------------------------------------

    def _insert(self, connection: Connection, records: tuple[RequestRecord, ...], seq: int) -> None:
        self._new_subjects = set()
        if not records:
            return
        rows = [request_rows.inserted(record, seq + i, self._workspace) for i, record in enumerate(records)]
        self._on[schema.requests].insert(connection, rows)
        new = {row["subjects"]: record for row, record in zip(rows, records, strict=True)}
        new = {text: record for text, record in new.items() if text not in self._seen_subjects}
        sets = [
            values
            for record in new.values()
            for values in request_rows.subject_sets(record.request.subjects, self._workspace)
        ]
        self._on[schema.subject_sets].add_missing(connection, sets)
        labelled = (
            (record.id, seq + i, record.submission.labels)
            for i, record in enumerate(records)
            if record.submission.labels
        )
        self._label(connection, Kind.REQUEST, labelled)
        self._new_subjects = set(new)

    def _update(self, connection: Connection, updated: tuple[tuple[RequestId, State], ...]) -> None:
        rows = [
            request_rows.state_values(state) | {"workspace": self._workspace, "id": request}
            for request, state in updated
        ]
        self._change(connection, rows)

    def _hold_devices(self, connection: Connection, batch: Batch) -> None:
        """What is let go before what is taken: a device goes from one request to the next in one batch."""
        held = {record.id: record.state for record in batch.inserted} | dict(batch.updated)
        before = [
            {"workspace": self._workspace, "request_id": request} for request, state in batch.updated if state.grant
        ]
        self._on[schema.held_devices].drop(connection, before)
        after = [
            row for request, state in held.items() for row in request_rows.devices(request, state, self._workspace)
        ]
        self._on[schema.held_devices].insert(connection, after)

    def _renew(self, connection: Connection, batch: Batch) -> None:
        rows = [
            {"lease_until": lease.until, "lease_length_s": lease.length_s}
            | {"workspace": self._workspace, "id": request}
            for request, lease in batch.renewed
        ]
        self._change(connection, rows)

    def _redirect(self, connection: Connection, batch: Batch) -> None:
        """After what is inserted: a request may come and be redirected in one batch."""
        rows = [
            request_rows.origin_values(request) | {"workspace": self._workspace, "id": request.id}
            for request in batch.redirected
        ]
        self._change(connection, rows)
        self._name_subjects(connection, (request.subjects for request in batch.redirected))

    def _name_subjects(self, connection: Connection, named: Iterable[tuple[Subject, ...]]) -> None:
        sets = [one for subjects in set(named) for one in request_rows.subject_sets(subjects, self._workspace)]
        self._on[schema.subject_sets].add_missing(connection, sets)

    def _change(self, connection: Connection, rows: list[Values]) -> None:
        touched = self._on[schema.requests].change(connection, rows, by=("workspace", "id"))
        self._expect("known_request", len(rows), touched)

    def _expect(self, constraint: str, wanted: int, touched: Touched) -> None:
        self._expected.append((constraint, wanted, touched))

    def _label(self, connection: Connection, kind: Kind, labelled: Iterable[tuple[str, int, Any]]) -> None:
        rows = [
            {
                "workspace": self._workspace,
                "kind": kind.value,
                "key": key,
                "value": value,
                "object_id": name,
                "seq": seq,
            }
            for name, seq, labels in labelled
            for key, value in labels.items()
        ]
        self._on[schema.labels].add_missing(connection, rows)

    # ---- runs, steps, history ---------------------------------------------------------------------------------------

    def _report(self, connection: Connection, batch: Batch, turn: Turn) -> None:
        if batch.runs:
            seq = turn.runs + 1
            rows = [report_rows.run_values(run, self._workspace) | {"seq": seq + i} for i, run in enumerate(batch.runs)]
            self._on[schema.runs].put(connection, rows, by=("workspace", "id"), keep=("seq", "labels"))
            self._name_subjects(connection, (run.subjects for run in batch.runs))
            # A run that is there keeps its number: the database looks it up.
            self._label(connection, Kind.RUN, ((run.id, 0, run.labels) for run in batch.runs if run.labels))
        if batch.steps:
            seq = turn.steps + 1
            rows = [
                report_rows.step_values(one, self._workspace) | {"seq": seq + i} for i, one in enumerate(batch.steps)
            ]
            self._on[schema.steps].put(connection, rows, by=("workspace", "id"), keep=("seq",))

    def _append(self, connection: Connection, batch: Batch, seq: int) -> None:
        rows = [report_rows.change_values(change, seq + i, self._workspace) for i, change in enumerate(batch.changes)]
        self._on[schema.history].insert(connection, rows)

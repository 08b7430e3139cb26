"""Runs, steps, keys and history as rows, and back. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row

from fairpool.app.records import (
    Change,
    HistoryEntry,
    KeyUse,
    Kind,
    RunRecord,
    RunStatus,
    StepRecord,
    TokenRecord,
    WebhookCursor,
)
from fairpool.core.ids import Instant
from fairpool.store import codec, schema
from fairpool.store.unreadable import readable

Values = dict[str, Any]


def run_values(run: RunRecord, workspace: str) -> Values:
    """The row of a run, without its seq."""
    return {
        "workspace": workspace,
        "id": run.id,
        "name": run.name,
        "kind": run.kind,
        "status": run.status.value,
        "version": run.version,
        "stack": run.stack,
        "user_name": run.user,
        "labels": codec.dump_document(run.labels),
        "error": run.error,
        "created_at": run.created_at,
        "started_at": run.started_at,
        "ended_at": run.ended_at,
        "details": codec.dump_document(run.details),
        "created_by": run.created_by,
        "subjects": codec.dump_subjects(run.subjects),
    }


@readable
def run_of(row: Row[Any]) -> RunRecord:
    """The run that a row stands for."""
    return RunRecord(
        id=row.id,
        name=row.name,
        kind=row.kind,
        status=RunStatus(row.status),
        version=row.version,
        stack=row.stack,
        user=row.user_name,
        created_by=row.created_by,
        subjects=codec.load_subjects(row.subjects),
        labels=codec.load_document(row.labels),
        error=row.error,
        created_at=Instant(row.created_at),
        started_at=_instant(row.started_at),
        ended_at=_instant(row.ended_at),
        details=codec.load_document(row.details),
    )


def step_values(step: StepRecord, workspace: str) -> Values:
    """The row of a step, without its seq."""
    return {
        "workspace": workspace,
        "id": step.id,
        "run_id": step.run,
        "name": step.name,
        "step_index": step.index,
        "status": step.status.value,
        "version": step.version,
        "component": step.component,
        "attempt": step.attempt,
        "request_id": step.request,
        "log": step.log,
        "error": step.error,
        "checkpoint": step.checkpoint,
        "created_at": step.created_at,
        "started_at": step.started_at,
        "ended_at": step.ended_at,
        "details": codec.dump_document(step.details),
    }


@readable
def step_of(row: Row[Any]) -> StepRecord:
    """The step that a row stands for."""
    return StepRecord(
        id=row.id,
        run=row.run_id,
        name=row.name,
        index=row.step_index,
        status=RunStatus(row.status),
        version=row.version,
        component=row.component,
        attempt=row.attempt,
        request=row.request_id,
        log=row.log,
        error=row.error,
        checkpoint=row.checkpoint,
        created_at=Instant(row.created_at),
        started_at=_instant(row.started_at),
        ended_at=_instant(row.ended_at),
        details=codec.load_document(row.details),
    )


def key_values(use: KeyUse, workspace: str) -> Values:
    """The row of an idempotency key."""
    return {
        "workspace": workspace,
        "kind": use.kind.value,
        "key": use.key,
        "object_id": use.object,
        "fingerprint": use.fingerprint,
        "at": use.at,
    }


@readable
def key_of(row: Sequence[Any]) -> KeyUse:
    """The use of a key that a row of `schema.idempotency_keys` stands for."""
    _, kind, key, name, fingerprint, at = row
    return KeyUse(key=key, kind=Kind(kind), object=name, fingerprint=fingerprint, at=Instant(at))


def change_values(change: Change, seq: int, workspace: str) -> Values:
    """The row of a history entry."""
    return {
        "seq": seq,
        "workspace": workspace,
        "at": change.at,
        "kind": change.kind.value,
        "object_id": change.object,
        "name": change.name,
        "what": change.what,
        "actor": change.actor,
        "source": change.source,
        "cause": change.cause,
        "before": codec.dump_document(change.before),
        "after": codec.dump_document(change.after),
        "run": change.run or None,
    }


@readable
def entry_of(row: Row[Any]) -> HistoryEntry:
    """The history entry that a row stands for."""
    change = Change(
        at=Instant(row.at),
        kind=Kind(row.kind),
        object=row.object_id,
        name=row.name,
        what=row.what,
        actor=row.actor,
        source=row.source,
        cause=row.cause,
        before=codec.load_document(row.before),
        after=codec.load_document(row.after),
        run=row.run or "",
    )
    return HistoryEntry(seq=row.seq, change=change)


def token_values(token: TokenRecord) -> Values:
    """The row of a token."""
    return {column.name: getattr(token, column.name) for column in schema.tokens.columns}


@readable
def token_of(row: Row[Any]) -> TokenRecord:
    """The token that a row stands for."""
    return TokenRecord(
        id=row.id,
        workspace=row.workspace,
        name=row.name,
        owner=row.owner,
        hash=row.hash,
        created_at=Instant(row.created_at),
        created_by=row.created_by,
        expires_at=_instant(row.expires_at),
        revoked_at=_instant(row.revoked_at),
        last_used_at=_instant(row.last_used_at),
    )


def cursor_values(cursor: WebhookCursor, workspace: str) -> Values:
    """The row of a webhook's cursor."""
    return {
        "workspace": workspace,
        "webhook_id": cursor.name,
        "seq": cursor.seq,
        "failures": cursor.failures,
        "next_try_at": cursor.next_try_at,
        "last_error": cursor.last_error,
    }


@readable
def cursor_of(row: Row[Any]) -> WebhookCursor:
    """The cursor that a row stands for."""
    return WebhookCursor(
        name=row.webhook_id,
        seq=row.seq,
        failures=row.failures,
        next_try_at=_instant(row.next_try_at),
        last_error=row.last_error,
    )


def _instant(value: int | None) -> Instant | None:
    return None if value is None else Instant(value)

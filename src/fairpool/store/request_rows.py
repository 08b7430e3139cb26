"""Request records as rows of `schema.requests` and its side tables, and back. Pure."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator, Sequence
from typing import Any

from fairpool.app.records import Grant, Lease, RequestRecord, State, Submission
from fairpool.core.ids import Instant, PolicyId, PoolId, RequestId
from fairpool.core.policies import Subject
from fairpool.core.requests import Because, Eviction, Request, Status
from fairpool.store import codec, schema
from fairpool.store.unreadable import readable

Values = dict[str, Any]

# Reading its fields takes a tenth of the time of those of SQLAlchemy's rows, and a restart reads them by the million.
_Fields = namedtuple("_Fields", [column.name for column in schema.requests.columns])  # type: ignore[misc]


def inserted(record: RequestRecord, seq: int, workspace: str) -> Values:
    """The row of a request that is new."""
    request, said, lease = record.request, record.submission, record.lease
    row = {
        "seq": seq,
        "workspace": workspace,
        "id": request.id,
        "subjects": codec.dump_subjects(request.subjects),
        "demand": codec.dump_demand(request.demand),
        "queued_at": request.queued_at,
        "preemptible": request.preemptible,
        "priority": request.priority,
        "profile": request.profile,
        "wanted_pool": request.pool,
        "max_runtime_s": request.max_runtime_s,
        "wait_timeout_s": request.wait_timeout_s,
        "created_at": said.created_at,
        "created_by": said.created_by,
        "name": said.name,
        "run": said.run or None,
        "step": said.step,
        "retry_of": said.retry_of,
        "idempotency_key": said.idempotency_key,
        "labels": codec.dump_document(said.labels),
        "details": codec.dump_document(said.details),
        "lease_until": lease.until if lease else None,
        "lease_length_s": lease.length_s if lease else None,
    }
    row |= state_values(record.state)
    return row


_NEVER_GRANTED: Values = {
    "grant_sequence": None,
    "granted_at": None,
    "pool_id": None,
    "policy_id": None,
    "parts": None,
    "pool_name": "",
    "policy_subject": "",
    "evicted_because": None,
    "evicted_for": None,
    "evicted_until": None,
}


def state_values(state: State) -> Values:
    """The columns that change with a request's state."""
    grant = state.grant
    return {
        "status": state.status.value,
        "version": state.version,
        "claim": codec.dump_claim(state.claim) if state.claim else None,
        "ended_at": state.ended_at,
        "ended_by": state.ended_by,
        "reasons": codec.dump_reasons(state.reasons),
    } | (_grant_values(grant) if grant else _NEVER_GRANTED)


def _grant_values(grant: Grant) -> Values:
    eviction = grant.eviction
    return {
        "grant_sequence": grant.sequence,
        "granted_at": grant.granted_at,
        "pool_id": grant.pool,
        "policy_id": grant.policy,
        "parts": codec.dump_parts(grant.parts),
        "pool_name": grant.pool_name,
        "policy_subject": grant.subject,
        "evicted_because": eviction.because.value if eviction else None,
        "evicted_for": eviction.cause if eviction else None,
        "evicted_until": eviction.deadline_at if eviction else None,
    }


def devices(request: RequestId, state: State, workspace: str) -> Iterator[Values]:
    """The rows of the devices that a request holds in a pool; none before the grant and after the end."""
    grant = state.grant
    if grant is None or grant.pool is None or state.status.is_final:
        return
    for number, part in enumerate(grant.parts):
        for device, share in part.devices:
            yield {
                "workspace": workspace,
                "request_id": request,
                "part": number,
                "pool_id": grant.pool,
                "node": part.node,
                "device": device,
                "share": share,
            }


def origin_values(request: Request) -> Values:
    """As whom a request is made, and for which profile and pool: the part of it that can change."""
    return {
        "subjects": codec.dump_subjects(request.subjects),
        "profile": request.profile,
        "wanted_pool": request.pool,
    }


def subject_sets(subjects: tuple[Subject, ...], workspace: str) -> Iterator[Values]:
    """The rows that say which subjects a text of subjects is made of."""
    text = codec.dump_subjects(subjects)
    for subject in set(subjects):
        yield {"workspace": workspace, "subject": str(subject), "subjects": text}


@readable
def record_of(columns: Sequence[Any]) -> RequestRecord:
    """The record that a row of `schema.requests` stands for."""
    row: Any = _Fields._make(columns)
    request_id = RequestId(row.id)
    return RequestRecord(
        request=Request(
            id=request_id,
            subjects=codec.load_subjects(row.subjects),
            demand=codec.load_demand(row.demand),
            queued_at=Instant(row.queued_at),
            preemptible=bool(row.preemptible),
            priority=row.priority,
            profile=row.profile,
            pool=row.wanted_pool,
            max_runtime_s=row.max_runtime_s,
            wait_timeout_s=row.wait_timeout_s,
        ),
        submission=Submission(
            created_at=Instant(row.created_at),
            created_by=row.created_by,
            name=row.name,
            run=row.run or "",
            step=row.step,
            retry_of=row.retry_of,
            idempotency_key=row.idempotency_key,
            labels=codec.load_document(row.labels),
            details=codec.load_document(row.details),
        ),
        state=State(
            status=Status(row.status),
            version=row.version,
            grant=_grant_of(row),
            claim=codec.load_claim(request_id, row.claim) if row.claim else None,
            ended_at=None if row.ended_at is None else Instant(row.ended_at),
            ended_by=row.ended_by,
            reasons=codec.load_reasons(row.reasons),
        ),
        lease=None if row.lease_until is None else Lease(until=Instant(row.lease_until), length_s=row.lease_length_s),
    )


def _grant_of(row: Any) -> Grant | None:
    if row.grant_sequence is None:
        return None
    eviction = None
    if row.evicted_because is not None:
        eviction = Eviction(
            cause=None if row.evicted_for is None else RequestId(row.evicted_for),
            because=Because(row.evicted_because),
            deadline_at=Instant(row.evicted_until),
        )
    return Grant(
        pool=None if row.pool_id is None else PoolId(row.pool_id),
        policy=None if row.policy_id is None else PolicyId(row.policy_id),
        parts=codec.load_parts(row.parts),
        granted_at=Instant(row.granted_at),
        sequence=row.grant_sequence,
        eviction=eviction,
        pool_name=row.pool_name,
        subject=row.policy_subject,
    )

"""From the application's records to what callers read: requests, runs, steps, history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from fairpool.app.records import Grant, HistoryEntry, RequestRecord, RunRecord, StepRecord
from fairpool.app.use_cases.requests import own_wait_timeout_s
from fairpool.core.amounts import WHOLE
from fairpool.core.ids import SECOND, Instant
from fairpool.core.requests import Eviction, PartPlacement, Request
from fairpool.wire.amounts import read_amount
from fairpool.wire.events import Event
from fairpool.wire.events import HistoryEntry as HistoryView
from fairpool.wire.requests import (
    AllocationView,
    DeviceView,
    EvictionView,
    LeaseView,
    PlacementView,
    ReasonView,
    RequestView,
)
from fairpool.wire.runs import RunView, StepRequestView, StepView
from fairpool.wire.values import RequestStatus, RunStatus

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(at: Instant) -> datetime:
    """An instant as a datetime, to the microsecond."""
    return _EPOCH + timedelta(microseconds=at)


def maybe_moment(at: Instant | None) -> datetime | None:
    """As `moment`, and None for None."""
    return None if at is None else moment(at)


def units(thousandths: int) -> int | Decimal:
    """An amount in units, exact."""
    whole, rest = divmod(thousandths, WHOLE)
    return Decimal(thousandths).scaleb(-3).normalize() if rest else whole


def vector(amounts: Iterable[tuple[str, int]]) -> dict[str, int | Decimal]:
    """Amounts by key, in units."""
    return {key: units(value) for key, value in amounts}


def request(
    record: RequestRecord,
    *,
    in_share: bool | None = None,
    vault: str | None = None,
    reasons: Iterable[ReasonView] = (),
) -> RequestView:
    """A request. in_share: of one that holds something under a policy, whether inside its reservation. vault: whose
    settings its step gets."""
    asked, said, state = record.request, record.submission, record.state
    return RequestView(
        id=asked.id,
        version=state.version,
        status=RequestStatus(state.status.value),
        name=said.name,
        demand=vector(asked.demand.total),
        parts=[vector(part) for part in asked.demand.parts] if len(asked.demand.parts) > 1 else [],
        subjects=[str(subject) for subject in asked.subjects],
        pool=asked.pool or None,
        profile=asked.profile or None,
        preemptible=asked.preemptible,
        priority=asked.priority,
        max_runtime_s=asked.max_runtime_s,
        wait_timeout_s=own_wait_timeout_s(record),
        lease_s=record.lease.length_s if record.lease is not None else 0,
        lease_until=moment(record.lease.until) if record.lease is not None and not state.status.is_final else None,
        retry_of=said.retry_of or None,
        run=said.run or None,
        step=said.step or None,
        labels=dict(said.labels),
        idempotency_key=said.idempotency_key or None,
        created_at=moment(said.created_at),
        queued_at=moment(asked.queued_at),
        ended_at=maybe_moment(state.ended_at),
        allocation=None if state.grant is None else allocation(state.grant, asked, in_share=in_share, vault=vault),
        eviction=None if state.grant is None else eviction(state.grant),
        reasons=list(reasons),
        ended_by=state.ended_by or None,
    )


def allocation(grant: Grant, asked: Request, *, in_share: bool | None, vault: str | None = None) -> AllocationView:
    """What a request holds or held."""
    return AllocationView(
        pool=grant.pool_name or None,
        pool_id=grant.pool,
        policy=grant.policy,
        subject=grant.subject or None,
        parts=[_placement(place, part) for place, part in zip(grant.parts, asked.demand.parts, strict=False)],
        granted_at=moment(grant.granted_at),
        in_share=in_share,
        vault=vault,
    )


def _placement(place: PartPlacement, part: Iterable[tuple[str, int]]) -> PlacementView:
    devices = [DeviceView(index=index, share=units(share)) for index, share in place.devices]
    return PlacementView(node=place.node, demand=vector(part), devices=devices)


def eviction(grant: Grant) -> EvictionView | None:
    """That what is granted must be let go of, or had to be."""
    found: Eviction | None = grant.eviction
    if found is None:
        return None
    return EvictionView(
        cause=found.cause,
        because=found.because.value,
        deadline_at=moment(found.deadline_at),
        pool=grant.pool_name or None,
        policy=grant.subject or None,
    )


def lease(record: RequestRecord) -> LeaseView:
    """The lease of a request, with what its owner must know."""
    state = record.state
    until = None if record.lease is None or state.status.is_final else moment(record.lease.until)
    return LeaseView(
        request=record.id,
        status=RequestStatus(state.status.value),
        lease_until=until,
        eviction=None if state.grant is None else eviction(state.grant),
    )


def run(record: RunRecord, *, counts: Mapping[str, int], steps: Iterable[StepView] = ()) -> RunView:
    """A run, with how many of its steps are in which status."""
    return RunView(
        id=record.id,
        name=record.name,
        version=record.version,
        kind=record.kind,
        status=RunStatus(record.status.value),
        stack=record.stack or None,
        user=record.user,
        labels=dict(record.labels),
        error=record.error,
        counts=dict(counts),
        steps=list(steps),
        created_at=moment(record.created_at),
        started_at=maybe_moment(record.started_at),
        ended_at=maybe_moment(record.ended_at),
    )


def history(entry: HistoryEntry) -> HistoryView:
    """One line of history."""
    return HistoryView.model_validate(_entry(entry))


def event(entry: HistoryEntry) -> Event:
    """One line of history as the stream tells it."""
    return Event.model_validate(_entry(entry))


def _entry(entry: HistoryEntry) -> dict[str, object]:
    change = entry.change
    return {
        "id": entry.seq,
        "at": moment(change.at),
        "kind": change.kind.value,
        "object": change.object,
        "name": change.name,
        "what": change.what,
        "actor": change.actor,
        "source": change.source,
        "cause": change.cause,
        "run": change.run,
        "before": dict(change.before),
        "after": dict(change.after),
    }


def step(record: StepRecord, attempts: Iterable[RequestRecord], now: Instant) -> StepView:
    """A step with the requests of its attempts, the oldest first."""
    settings = record.details.get("settings")
    return StepView(
        id=record.id,
        run=record.run,
        name=record.name,
        version=record.version,
        index=record.index,
        status=RunStatus(record.status.value),
        component=record.component,
        attempt=record.attempt,
        request=record.request or None,
        requests=[_attempt(attempt, now) for attempt in attempts],
        settings={str(key): read_amount(value) for key, value in settings.items()}
        if isinstance(settings, Mapping)
        else {},
        log=record.log,
        error=record.error,
        checkpoint=record.checkpoint,
        created_at=moment(record.created_at),
        started_at=maybe_moment(record.started_at),
        ended_at=maybe_moment(record.ended_at),
    )


def _attempt(record: RequestRecord, now: Instant) -> StepRequestView:
    grant, ended_at = record.state.grant, record.state.ended_at
    until = now if ended_at is None else ended_at
    return StepRequestView(
        id=record.id,
        status=RequestStatus(record.status.value),
        pool=grant.pool_name if grant is not None else None,
        policy=grant.subject if grant is not None else None,
        devices=[] if grant is None else _devices(grant),
        waited_s=((until if grant is None else grant.granted_at) - record.submission.created_at) / SECOND,
        ran_s=0.0 if grant is None else (until - grant.granted_at) / SECOND,
    )


def _devices(grant: Grant) -> list[str]:
    return [
        f"{place.node}:{index}" if place.node else str(index) for place in grant.parts for index, _ in place.devices
    ]

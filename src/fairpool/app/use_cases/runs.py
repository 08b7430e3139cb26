"""Runs and steps, as their drivers report them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from fairpool.app.errors import Ambiguous, NotFound
from fairpool.app.ports import Reader
from fairpool.app.records import Document, Kind, RunRecord, RunStatus, StepRecord
from fairpool.app.transaction import Transaction
from fairpool.app.use_cases import stacks
from fairpool.app.use_cases.keys import fingerprint, used_for
from fairpool.core.ids import Instant

RunAnswer = Callable[[], RunRecord]
StepAnswer = Callable[[], StepRecord]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """A run begins. stack: by name or id; the active one where it is empty."""

    name: str
    kind: str = "pipeline"
    stack: str = ""
    user: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewStep:
    """A step of a run begins."""

    name: str
    index: int = 0
    component: str = ""
    log: str = ""
    details: Document = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepChange:
    """What changes of a step; None leaves as it is."""

    status: RunStatus | None = None
    request: str | None = None
    attempt: int | None = None
    log: str | None = None
    error: str | None = None
    checkpoint: str | None = None


def create_run(tx: Transaction, new: NewRun, *, idempotency_key: str = "") -> RunAnswer:
    """A run, with the same answer for the same idempotency key."""
    if idempotency_key:
        made = used_for(tx, Kind.RUN, idempotency_key, new)
        if made is not None:
            return lambda: tx.run_in_progress(made) or find_run(tx.reader, made)
    stack = tx.memory.document(Kind.STACK, new.stack or stacks.active(tx.memory)) if new.stack else None
    run = RunRecord(
        id=tx.ids.new(Kind.RUN),
        name=new.name,
        kind=new.kind,
        status=RunStatus.PENDING,
        created_at=tx.now,
        stack=stack.name if stack is not None else _active_name(tx),
        user=new.user,
        labels=new.labels,
    )
    tx.report_run(run)
    if idempotency_key:
        tx.use_key(Kind.RUN, idempotency_key, run.id, fingerprint(new))
    tx.note(Kind.RUN, run.id, run.status.value, name=run.name, cause="reported", run=run.id)
    return lambda: run


def _active_name(tx: Transaction) -> str:
    declared = tx.memory.get(Kind.STACK, stacks.active(tx.memory))
    return declared.name if declared is not None else ""


def update_run(tx: Transaction, ref: str, *, status: RunStatus | None = None, error: str | None = None) -> RunAnswer:
    """A run is in another status. A run that is over stays as it ended."""
    old = tx.run_in_progress(ref) or find_run(tx.reader, ref)
    old = tx.run_in_progress(old.id) or old
    if old.status.is_final:
        return lambda: old
    new = replace(old, status=status or old.status, error=old.error if error is None else error)
    new = replace(
        new,
        version=old.version + 1,
        started_at=_began(new.status, old.started_at, tx.now),
        ended_at=tx.now if new.status.is_final else None,
    )
    tx.report_run(new)
    if new.status is not old.status:
        tx.note(Kind.RUN, new.id, new.status.value, name=new.name, cause="reported", run=new.id)
    return lambda: new


def create_step(tx: Transaction, run: str, new: NewStep, *, idempotency_key: str = "") -> StepAnswer:
    """A step of a run, with the same answer for the same idempotency key."""
    owner = tx.run_in_progress(run) or find_run(tx.reader, run)
    if idempotency_key:
        made = used_for(tx, Kind.STEP, idempotency_key, new)
        if made is not None:
            return lambda: tx.step_in_progress(made) or find_step(tx.reader, made)
    step = StepRecord(
        id=tx.ids.new(Kind.STEP),
        run=owner.id,
        name=new.name,
        index=new.index,
        status=RunStatus.PENDING,
        created_at=tx.now,
        component=new.component,
        log=new.log,
        details=new.details,
    )
    tx.report_step(step)
    if idempotency_key:
        tx.use_key(Kind.STEP, idempotency_key, step.id, fingerprint(new))
    tx.note(Kind.STEP, step.id, step.status.value, name=step.name, cause="reported", run=owner.id)
    return lambda: step


def update_step(tx: Transaction, ref: str, change: StepChange) -> StepAnswer:
    """A step is in another status, or at another attempt. A step that is over stays as it ended."""
    old = tx.step_in_progress(ref) or find_step(tx.reader, ref)
    old = tx.step_in_progress(old.id) or old
    if old.status.is_final:
        return lambda: old
    given = {
        name: value
        for name in ("status", "request", "attempt", "log", "error", "checkpoint")
        if (value := getattr(change, name)) is not None
    }
    new = replace(old, **given)
    new = replace(
        new,
        version=old.version + 1,
        started_at=_began(new.status, old.started_at, tx.now),
        ended_at=tx.now if new.status.is_final else None,
    )
    tx.report_step(new)
    if new.status is not old.status:
        tx.note(Kind.STEP, new.id, new.status.value, name=new.name, cause="reported", run=new.run)
    return lambda: new


def _began(status: RunStatus, before: Instant | None, now: Instant) -> Instant | None:
    return before if before is not None or status is RunStatus.PENDING else now


def find_run(reader: Reader, ref: str) -> RunRecord:
    """The run that a name, id or unique id prefix means. Raises NotFound, Ambiguous."""
    found = reader.runs.match(ref)
    if len(found) > 1:
        raise Ambiguous("run", ref, candidates=[f"{run.id} ({run.name})" for run in found])
    if not found:
        raise NotFound("run", ref)
    return found[0]


def find_step(reader: Reader, ref: str) -> StepRecord:
    """The step that an id or a unique prefix of one means. Raises NotFound, Ambiguous."""
    found = reader.runs.match_step(ref)
    if len(found) > 1:
        raise Ambiguous("step", ref, candidates=[f"{step.id} ({step.name})" for step in found])
    if not found:
        raise NotFound("step", ref)
    return found[0]

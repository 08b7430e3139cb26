"""Runs and steps, as their drivers report them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from fairpool.app.authz import EVERYTHING, OWNER, Principal, Reach
from fairpool.app.errors import Ambiguous, NotFound
from fairpool.app.ports import Reader
from fairpool.app.records import Document, Kind, RunRecord, RunStatus, StepRecord
from fairpool.app.transaction import Transaction
from fairpool.app.use_cases import stacks
from fairpool.app.use_cases.asking import made_as
from fairpool.app.use_cases.keys import use_for, used_for
from fairpool.core.ids import Instant

RunAnswer = Callable[[], RunRecord]
StepAnswer = Callable[[], StepRecord]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """A run begins. stack: by name or id; the active one where it is empty. user: whose it is, where the caller is
    nobody in particular. team: as which of the caller's teams."""

    name: str
    kind: str = "pipeline"
    stack: str = ""
    user: str = ""
    team: str = ""
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


def create_run(tx: Transaction, new: NewRun, *, idempotency_key: str = "", caller: Principal = OWNER) -> RunAnswer:
    """A run, with the same answer for the same idempotency key. Raises NotFound (stack), NotAllowed (team)."""
    if idempotency_key:
        made = used_for(tx, Kind.RUN, idempotency_key, new)
        if made is not None:
            before = tx.run_in_progress(made) or find_run(tx.reader, made)
            return lambda: before
    stack = tx.memory.document(Kind.STACK, new.stack or stacks.active(tx.memory)) if new.stack else None
    run = RunRecord(
        id=tx.ids.new(Kind.RUN),
        name=new.name,
        kind=new.kind,
        status=RunStatus.PENDING,
        created_at=tx.now,
        stack=stack.name if stack is not None else _active_name(tx),
        user=new.user if caller.subject is None else caller.subject.name,
        created_by=tx.actor,
        subjects=made_as(tx.memory, caller, (), new.team),
        labels=new.labels,
    )
    tx.report_run(run)
    if idempotency_key:
        use_for(tx, Kind.RUN, idempotency_key, run.id, new)
    tx.note(Kind.RUN, run.id, run.status.value, name=run.name, cause="reported", run=run.id)
    return lambda: run


def _active_name(tx: Transaction) -> str:
    declared = tx.memory.get(Kind.STACK, stacks.active(tx.memory))
    return declared.name if declared is not None else ""


def update_run(
    tx: Transaction,
    ref: str,
    *,
    status: RunStatus | None = None,
    error: str | None = None,
    reach: Reach = EVERYTHING,
) -> RunAnswer:
    """A run is in another status. A run that is over stays as it ended; telling twice is the same as telling once.
    Raises NotFound."""
    old = _run(tx, ref, reach)
    new = replace(old, status=status or old.status, error=old.error if error is None else error)
    if old.status.is_final or new == old:
        return lambda: old
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


def create_step(
    tx: Transaction, run: str, new: NewStep, *, idempotency_key: str = "", reach: Reach = EVERYTHING
) -> StepAnswer:
    """A step of a run, with the same answer for the same idempotency key. Raises NotFound."""
    owner = _run(tx, run, reach)
    if idempotency_key:
        made = used_for(tx, Kind.STEP, idempotency_key, new)
        if made is not None:
            return lambda: _step(tx, made, reach)
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
        use_for(tx, Kind.STEP, idempotency_key, step.id, new)
    tx.note(Kind.STEP, step.id, step.status.value, name=step.name, cause="reported", run=owner.id)
    return lambda: step


def update_step(tx: Transaction, ref: str, change: StepChange, *, reach: Reach = EVERYTHING) -> StepAnswer:
    """A step is in another status, or at another attempt. A step that is over stays as it ended; telling twice is the
    same as telling once. Raises NotFound."""
    old = _step(tx, ref, reach)
    given = {
        name: value
        for name in ("status", "request", "attempt", "log", "error", "checkpoint")
        if (value := getattr(change, name)) is not None
    }
    new = replace(old, **given)
    if old.status.is_final or new == old:
        return lambda: old
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


def _run(tx: Transaction, ref: str, reach: Reach) -> RunRecord:
    """A run as this round has changed it already. Those of others are not there for the caller."""
    found = tx.run_in_progress(ref)
    if found is not None and reach.covers(found.created_by, found.subjects):
        return found
    found = find_run(tx.reader, ref, reach)
    return tx.run_in_progress(found.id) or found


def _step(tx: Transaction, ref: str, reach: Reach) -> StepRecord:
    """A step as this round has changed it already. Those of others' runs are not there for the caller."""
    known = tx.step_in_progress(ref)
    if known is None:
        known = find_step(tx.reader, ref, reach)
        return tx.step_in_progress(known.id) or known
    _run(tx, known.run, reach)
    return known


def find_run(reader: Reader, ref: str, reach: Reach = EVERYTHING) -> RunRecord:
    """The run that a name, id or unique id prefix means. Those of others are not there for the caller. Raises NotFound,
    Ambiguous."""
    found = reader.runs.match(ref, reach.owner)
    if len(found) > 1:
        raise Ambiguous("run", ref, candidates=[f"{run.id} ({run.name})" for run in found])
    if not found:
        raise NotFound("run", ref)
    return found[0]


def find_step(reader: Reader, ref: str, reach: Reach = EVERYTHING) -> StepRecord:
    """The step that an id or a unique prefix of one means. Those of others' runs are not there for the caller. Raises
    NotFound, Ambiguous."""
    found = [step for step in reader.runs.match_step(ref) if reach.owner is None or _is_of_own(reader, step, reach)]
    if len(found) > 1:
        raise Ambiguous("step", ref, candidates=[f"{step.id} ({step.name})" for step in found])
    if not found:
        raise NotFound("step", ref)
    return found[0]


def _is_of_own(reader: Reader, step: StepRecord, reach: Reach) -> bool:
    return bool(reader.runs.match(step.run, reach.owner))

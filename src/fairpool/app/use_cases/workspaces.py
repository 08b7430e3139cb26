"""Workspaces: each with its own people, rules, requests and scheduler, over one database.

All of these run in the workspace ``default``, the installation's own: what others there are is declared there. A
workspace goes in two steps. First it closes: every server stops to serve it. Then whoever leads ``default`` takes it
over, which keeps everybody else from writing to it, looks once more whether work waits or runs there, and removes all
that it has (`app/erasing.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum

from fairpool.app.errors import Conflict, Exists, InUse
from fairpool.app.ports import ERASED, Reader
from fairpool.app.records import (
    DEFAULT_WORKSPACE,
    AnyDeclared,
    Declared,
    Document,
    Kind,
    RequestQuery,
    RunQuery,
    RunStatus,
)
from fairpool.app.transaction import Transaction
from fairpool.app.use_cases.declaring import changed, check_free, check_version, created, deleted
from fairpool.app.use_cases.people import described, note_of, trial
from fairpool.core.ids import check_name
from fairpool.core.requests import Status

WorkspaceRecord = Declared[Document]
Answer = Callable[[], WorkspaceRecord]

LIVE = frozenset(status for status in Status if not status.is_final)
GOING = frozenset(status for status in RunStatus if not status.is_final)


class WorkspaceState(StrEnum):
    """Whether a workspace is served, or about to go."""

    OPEN = "open"
    CLOSING = "closing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """How much waits and runs in a workspace: requests by whether they hold something, and runs."""

    queued: int = 0
    active: int = 0
    runs: int = 0

    def __bool__(self) -> bool:
        return bool(self.queued or self.active or self.runs)

    def __str__(self) -> str:
        return f"{self.queued} queued, {self.active} holding something, {self.runs} runs under way"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceDeletion:
    """What goes with a workspace: how many of each kind of object it has."""

    workspace: WorkspaceRecord
    along: Mapping[Kind, int]


def state_of(record: AnyDeclared) -> WorkspaceState:
    """Whether it is served, or about to go."""
    assert isinstance(record.spec, dict)
    return WorkspaceState(str(record.spec["state"]))


def work_in(reader: Reader) -> Work:
    """How much waits and runs in the workspace of that reader."""
    counts = reader.requests.count(RequestQuery(statuses=LIVE))
    queued = counts.get(Status.QUEUED, 0)
    runs = reader.runs.page(RunQuery(statuses=GOING), limit=1000).items
    return Work(queued=queued, active=sum(counts.values()) - queued, runs=len(runs))


def objects_in(reader: Reader) -> dict[Kind, int]:
    """How many objects of each kind that people count the workspace of that reader has."""
    kinds = (Kind.USER, Kind.TEAM, Kind.SERVICE_ACCOUNT, Kind.POOL, Kind.POLICY, Kind.PROFILE, Kind.VAULT, Kind.WEBHOOK)
    return {kind: len(reader.declared.all(kind)) for kind in kinds}


def create(tx: Transaction, name: str, *, description: str = "", dry_run: bool = False) -> Answer:
    """A new, empty workspace. Raises Exists, InvalidName."""
    check_name(name, what="workspace name")
    if name == DEFAULT_WORKSPACE:
        raise Exists(Kind.WORKSPACE.value, name, hint="it is the installation's own")
    old = tx.memory.named(Kind.WORKSPACE, name)
    if old is not None and state_of(old) is WorkspaceState.CLOSING:
        raise Exists(Kind.WORKSPACE.value, name, hint="it is being deleted; try again in a moment")
    check_free(tx, Kind.WORKSPACE, name)
    spec, note = _spec(WorkspaceState.OPEN), note_of(description)
    if dry_run:
        return lambda: trial(tx, Kind.WORKSPACE, name, spec, note)
    record = created(tx, Kind.WORKSPACE, tx.ids.new(Kind.WORKSPACE), name, spec, note=note, shown=spec)
    return lambda: record


def update(
    tx: Transaction, ref: str, *, description: str | None, version: int | None = None, dry_run: bool = False
) -> Answer:
    """What is said of a workspace changes."""
    old = tx.memory.document(Kind.WORKSPACE, ref)
    check_version(old, version)
    note = described(old.note, description)
    if dry_run:
        return lambda: trial(tx, Kind.WORKSPACE, old.name, old.spec, note)
    record = changed(tx, old, old.spec, note=note, before={}, after={})
    return lambda: record


def delete(
    tx: Transaction,
    ref: str,
    work: Work,
    along: Mapping[Kind, int],
    *,
    version: int | None = None,
    dry_run: bool = False,
) -> Callable[[], WorkspaceDeletion]:
    """A workspace closes, and goes as soon as no server serves it any more; one that closes already goes on to.

    work, along: what there is in it. Raises InUse where any work waits or runs there, Conflict for ``default``.
    """
    old = known(tx, ref)
    check_version(old, version)
    if work:
        raise InUse(
            f"the workspace {old.name!r} is at work: {work}; cancel what waits and let end what runs, then delete it",
            counts=asdict(work),
        )
    deletion = WorkspaceDeletion(workspace=old, along=along)
    if not dry_run and state_of(old) is WorkspaceState.OPEN:
        _become(tx, old, WorkspaceState.CLOSING)
    return lambda: deletion


def known(tx: Transaction, ref: str) -> WorkspaceRecord:
    """A workspace that can be deleted. Raises NotFound, Ambiguous, Conflict."""
    if ref == DEFAULT_WORKSPACE:
        raise Conflict(
            f"the workspace {DEFAULT_WORKSPACE!r} is the installation's own and stays: other workspaces are declared "
            "there. To give up the installation, stop its servers and remove the database"
        )
    return tx.memory.document(Kind.WORKSPACE, ref)


def reopen(tx: Transaction, workspace_id: str, work: Work) -> Answer:
    """A workspace that was to go has got work meanwhile, and stays."""
    old = tx.memory.document(Kind.WORKSPACE, workspace_id)
    record = _become(tx, old, WorkspaceState.OPEN, f"it is at work: {work}")
    return lambda: record


def begin_to_erase(tx: Transaction, workspace_id: str) -> Callable[[], None]:
    """Everything that the workspace has is about to be removed: this is written down after the last that it wrote, so
    that no number of the history is ever given twice."""
    old = tx.memory.document(Kind.WORKSPACE, workspace_id)
    tx.note(Kind.WORKSPACE, old.id, ERASED, name=old.name)
    return lambda: None


def drop(tx: Transaction, workspace_id: str) -> Callable[[], None]:
    """Nothing is left of a workspace: it is known no more, and another may have its name."""
    old = tx.memory.document(Kind.WORKSPACE, workspace_id)
    deleted(tx, old, shown=old.spec)
    return lambda: None


def _become(tx: Transaction, old: WorkspaceRecord, state: WorkspaceState, cause: str = "") -> WorkspaceRecord:
    new = replace(old, spec=_spec(state), version=old.version + 1, updated_at=tx.now)
    tx.put(new)
    tx.note(Kind.WORKSPACE, old.id, "state changed", name=old.name, cause=cause, before=old.spec, after=new.spec)
    return new


def _spec(state: WorkspaceState) -> Document:
    return {"state": state.value}

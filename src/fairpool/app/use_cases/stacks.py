"""Stacks: named choices of components; one of them is active. And what every workspace begins with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from fairpool.app.errors import InUse
from fairpool.app.memory import Memory
from fairpool.app.records import Declared, Document, Json, Kind
from fairpool.app.transaction import Transaction
from fairpool.app.use_cases import settings
from fairpool.app.use_cases.components import LOCAL
from fairpool.app.use_cases.components import create as create_component
from fairpool.app.use_cases.declaring import changed, check_free, check_version, created, deleted
from fairpool.core.ids import check_name

StackRecord = Declared[Document]
Answer = Callable[[], StackRecord]

DEFAULT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class StackChange:
    """What changes of a stack; None leaves as it is."""

    orchestrator: str | None = None
    step_operators: tuple[str, ...] | None = None
    artifact_store: str | None = None
    description: str | None = None


def create(
    tx: Transaction,
    name: str,
    *,
    orchestrator: str,
    step_operators: Sequence[str] = (),
    artifact_store: str | None = None,
    description: str = "",
    dry_run: bool = False,
) -> Answer:
    """A new stack of components that are registered. Raises Exists, NotFound, InvalidName."""
    check_free(tx, Kind.STACK, check_name(name, what="stack name"))
    spec: Document = {
        "orchestrator": _component(tx.memory, orchestrator),
        "step_operators": [_component(tx.memory, ref) for ref in step_operators],
        "artifact_store": _component(tx.memory, artifact_store) if artifact_store else None,
        "description": description,
    }
    if dry_run:
        trial: StackRecord = Declared(
            kind=Kind.STACK, id="", name=name, spec=spec, created_at=tx.now, updated_at=tx.now
        )
        return lambda: trial
    record = created(tx, Kind.STACK, tx.ids.new(Kind.STACK), name, spec, note={}, shown=spec)
    return lambda: record


def update(
    tx: Transaction, ref: str, change: StackChange, *, version: int | None = None, dry_run: bool = False
) -> Answer:
    """A stack changes."""
    old = tx.memory.document(Kind.STACK, ref)
    check_version(old, version)
    spec: dict[str, Json] = dict(old.spec)
    if change.orchestrator is not None:
        spec["orchestrator"] = _component(tx.memory, change.orchestrator)
    if change.step_operators is not None:
        spec["step_operators"] = [_component(tx.memory, ref) for ref in change.step_operators]
    if change.artifact_store is not None:
        spec["artifact_store"] = _component(tx.memory, change.artifact_store) if change.artifact_store else None
    if change.description is not None:
        spec["description"] = change.description
    new: Document = spec
    if dry_run:
        return lambda: replace(old, spec=new)
    record = changed(tx, old, new, before=old.spec, after=new)
    return lambda: record


def delete(tx: Transaction, ref: str, *, version: int | None = None, dry_run: bool = False) -> Answer:
    """A stack goes. Raises InUse for the active one."""
    old = tx.memory.document(Kind.STACK, ref)
    check_version(old, version)
    if active(tx.memory) == old.id:
        raise InUse(f"stack {old.name!r} is the active one: activate another first", dependents=["active stack"])
    if not dry_run:
        deleted(tx, old, shown=old.spec)
    return lambda: old


def activate(tx: Transaction, ref: str) -> Answer:
    """Runs that name no stack use this one."""
    stack = tx.memory.document(Kind.STACK, ref)
    settings.put(tx, {"active_stack": stack.id})
    return lambda: stack


def active(memory: Memory) -> str:
    """The id of the active stack; "" before there is any."""
    return str(settings.current(memory).get("active_stack", ""))


def ensure_defaults(tx: Transaction) -> Callable[[], None]:
    """What every workspace begins with: an orchestrator `local`, and a stack `default` on it that is active."""
    if tx.memory.named(Kind.COMPONENT, LOCAL) is None:
        create_component(
            tx, LOCAL, kind="orchestrator", flavor="local", config={}, description="processes of the machine that asks"
        )
    if not tx.memory.all(Kind.STACK):
        create(tx, DEFAULT, orchestrator=LOCAL, description="steps run on the machine that asks")
        activate(tx, DEFAULT)
    return lambda: None


def _component(memory: Memory, ref: str) -> str:
    found = memory.named(Kind.COMPONENT, ref) or memory.document(Kind.COMPONENT, ref)
    return found.name

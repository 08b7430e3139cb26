"""Components: where steps run. Policies may speak of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fairpool.app.errors import InUse
from fairpool.app.memory import Memory
from fairpool.app.records import Declared, Document, Kind
from fairpool.app.transaction import Transaction
from fairpool.app.use_cases.declaring import changed, check_free, check_known, check_version, created, deleted
from fairpool.core.ids import check_name
from fairpool.core.policies import Policy, Subject, SubjectKind

ComponentRecord = Declared[Document]
Answer = Callable[[], ComponentRecord]

LOCAL = "local"
"""The orchestrator that every workspace has: processes of the machine that asks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentChange:
    """What changes of a component; None leaves as it is."""

    flavor: str | None = None
    config: Document | None = None
    description: str | None = None


def check_component(memory: Memory, subject: Subject) -> None:
    """Raise NotFound where the subject is a component that nobody registered."""
    if subject.kind is SubjectKind.COMPONENT:
        check_known(memory, Kind.COMPONENT, [subject.name])


def create(
    tx: Transaction,
    name: str,
    *,
    kind: str,
    flavor: str,
    config: Document,
    description: str = "",
    dry_run: bool = False,
) -> Answer:
    """A new component. Raises Exists, InvalidName."""
    check_free(tx, Kind.COMPONENT, check_name(name, what="component name"))
    spec: Document = {"kind": kind, "flavor": flavor, "config": config, "description": description}
    if dry_run:
        trial: ComponentRecord = Declared(
            kind=Kind.COMPONENT, id="", name=name, spec=spec, created_at=tx.now, updated_at=tx.now
        )
        return lambda: trial
    record = created(tx, Kind.COMPONENT, tx.ids.new(Kind.COMPONENT), name, spec, note={}, shown=spec)
    return lambda: record


def update(
    tx: Transaction, ref: str, change: ComponentChange, *, version: int | None = None, dry_run: bool = False
) -> Answer:
    """A component changes."""
    old = tx.memory.document(Kind.COMPONENT, ref)
    check_version(old, version)
    given = {"flavor": change.flavor, "config": change.config, "description": change.description}
    spec = {**old.spec, **{name: value for name, value in given.items() if value is not None}}
    if dry_run:
        trial: ComponentRecord = Declared(
            kind=Kind.COMPONENT, id=old.id, name=old.name, spec=spec, created_at=old.created_at, updated_at=tx.now
        )
        return lambda: trial
    record = changed(tx, old, spec, before=old.spec, after=spec)
    return lambda: record


def delete(tx: Transaction, ref: str, *, version: int | None = None, dry_run: bool = False) -> Answer:
    """A component goes. Raises InUse where stacks or policies name it."""
    old = tx.memory.document(Kind.COMPONENT, ref)
    check_version(old, version)
    dependents = [f"stack {stack.name}" for stack in tx.memory.all(Kind.STACK) if _names(stack.spec, old.name)]
    subject = Subject(SubjectKind.COMPONENT, old.name)
    for policy in tx.memory.all(Kind.POLICY):
        if isinstance(policy.spec, Policy) and policy.spec.subject == subject:
            dependents.append(f"policy {policy.name}")
    if dependents:
        raise InUse(f"component {old.name!r} is named by {', '.join(dependents)}", dependents=dependents)
    if not dry_run:
        deleted(tx, old, shown=old.spec)
    return lambda: old


def _names(spec: object, component: str) -> bool:
    if not isinstance(spec, dict):
        return False
    return component in (spec.get("orchestrator"), spec.get("artifact_store")) or component in spec.get(
        "step_operators", ()
    )

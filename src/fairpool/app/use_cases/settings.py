"""The workspace's own settings."""

from __future__ import annotations

from collections.abc import Callable

from fairpool.app.memory import Memory
from fairpool.app.records import SETTINGS_ID, Declared, Document, Kind
from fairpool.app.transaction import Transaction
from fairpool.app.use_cases.declaring import changed, check_version, created
from fairpool.core import events as ev

SettingsRecord = Declared[Document]


def current(memory: Memory) -> Document:
    """The settings as they are; what is not in there has its default."""
    declared = memory.get(Kind.SETTINGS, SETTINGS_ID)
    return declared.spec if declared is not None and isinstance(declared.spec, dict) else {}


def record(memory: Memory) -> SettingsRecord | None:
    """The settings with their version; None before the first change."""
    declared = memory.get(Kind.SETTINGS, SETTINGS_ID)
    return declared if declared is not None else None  # type: ignore[return-value]


def put(tx: Transaction, given: Document) -> SettingsRecord:
    """Change some settings."""
    old = record(tx.memory)
    spec: Document = {**current(tx.memory), **given}
    if old is None:
        return created(tx, Kind.SETTINGS, SETTINGS_ID, SETTINGS_ID, spec, note={}, shown=given)
    return changed(tx, old, spec, before=old.spec, after=spec)


def update(
    tx: Transaction, *, require_policy: bool | None = None, version: int | None = None
) -> Callable[[], SettingsRecord]:
    """Change the settings that people see: whether a request that no policy governs is rejected (S15)."""
    old = record(tx.memory)
    if old is not None:
        check_version(old, version)
    given: Document = {} if require_policy is None else {"require_policy": require_policy}
    if require_policy is not None:
        tx.apply(ev.SettingsChanged(require_policy=require_policy))
    new = put(tx, given)
    return lambda: new

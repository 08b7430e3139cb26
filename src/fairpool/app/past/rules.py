"""Rules as they were: the objects of now, with every change since then taken back. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from fairpool.app.past.told import NAME, note_of, spec_of, told
from fairpool.app.records import DECLARED, AnyDeclared, Declared, HistoryEntry, Json, Kind
from fairpool.app.schedules import note_with, open_at, windows_in
from fairpool.core.ids import Instant
from fairpool.core.policies import Policy

Key = tuple[Kind, str]
"""Kind and id."""


def rules_at(current: Iterable[AnyDeclared], later: Sequence[HistoryEntry], at: Instant) -> tuple[AnyDeclared, ...]:
    """The declared objects as they were at that moment.

    later: what the history says of declared objects since then, the newest first. What it does not speak of is as it
    is now. Of what is gone by now, when it was made and which version it was is not known here: both read as `at`, 1.
    """
    now = {(declared.kind, declared.id): declared for declared in current}
    changes: dict[Key, list[HistoryEntry]] = {}
    for entry in later:
        if entry.change.kind in DECLARED:
            changes.setdefault((entry.change.kind, entry.change.object), []).append(entry)
    before = {key: _taken_back(key, now.get(key), entries, at) for key, entries in changes.items()}
    found = [one for one in {**now, **before}.values() if one is not None]
    return tuple(_policies_of_then(found, at))


def _taken_back(
    key: Key, declared: AnyDeclared | None, entries: Sequence[HistoryEntry], at: Instant
) -> AnyDeclared | None:
    """An object before these changes, the newest first; None where there was none."""
    kind, object_id = key
    document = None if declared is None else told(declared)
    versions = 0
    for entry in entries:
        change = entry.change
        if change.what == "created":
            document = None
        elif change.what == "deleted":
            document = {NAME: change.name, **change.before}
        elif document is not None and change.what.endswith("changed"):
            document = _undone(document, change.before, change.after)
            versions += 1
    if document is None:
        return None
    spec = spec_of(kind, object_id, document, None if declared is None else declared.spec)
    made: AnyDeclared = Declared(
        kind=kind,
        id=object_id,
        name=str(document[NAME]),
        spec=spec,
        version=1 if declared is None else max(1, declared.version - versions),
        created_at=at if declared is None else declared.created_at,
        updated_at=at,
        note=note_of(kind, document),
    )
    return made


def _undone(document: Mapping[str, Json], before: Mapping[str, Json], after: Mapping[str, Json]) -> dict[str, Json]:
    kept = {key: value for key, value in document.items() if key not in after or key in before}
    return {**kept, **before}


def _policies_of_then(found: Sequence[AnyDeclared], at: Instant) -> Iterator[AnyDeclared]:
    """A policy goes by the name of its pool, and by what its windows say: neither is a change of its own."""
    pools = {one.id: one.name for one in found if one.kind is Kind.POOL}
    for one in found:
        if not isinstance(one.spec, Policy):
            yield one
        elif set(one.spec.pools) <= set(pools):  # an older version did not write down on which pools it was
            windows = windows_in(one.note)
            note = note_with(one.note, windows, open_at(windows, at))
            yield replace(one, name=f"{pools[one.spec.pool]}/{one.spec.subject}", note=note)

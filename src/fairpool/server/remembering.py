"""The history as the caller may read it: that of what is theirs or concerns them, and of others no names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from fairpool.app.authz import INSTALLATION, Reach, Right
from fairpool.app.ports import Reader
from fairpool.app.records import Change, HistoryEntry, HistoryQuery, Kind, Page
from fairpool.app.rights import right_of
from fairpool.app.transaction import SCHEDULER
from fairpool.app.use_cases.people import subject_of
from fairpool.app.use_cases.requests import is_within
from fairpool.server import redaction
from fairpool.server.concerns import Concerns

_READ_AT_ONCE: Final = 500
_MOST_READ: Final = 20
"""Pages that one call looks through for what the caller may read; the answer's cursor goes on from there."""

_FOR_ALL: Final = frozenset({Kind.COMPONENT, Kind.STACK, Kind.SETTINGS})
_OF_RULES: Final = frozenset({Kind.POOL, Kind.POLICY, Kind.PROFILE})
_OF_WORK: Final = frozenset({Kind.REQUEST, Kind.RUN, Kind.STEP})
_OF_PEOPLE: Final = frozenset({Kind.USER, Kind.TEAM, Kind.SERVICE_ACCOUNT})
_NOBODY: Final = frozenset({"", INSTALLATION, SCHEDULER, "system"})


def page(
    reader: Reader,
    query: HistoryQuery,
    reach: Reach,
    *,
    cursor: int | None = None,
    limit: int = 100,
    newest_first: bool = False,
) -> Page[HistoryEntry]:
    """Part of the history. Of what is not all for the caller it may be short, and empty, and still go on."""
    if reach.owner is None:
        shown = replace(query, without=query.without | _hidden(reach))
        return reader.history.page(shown, cursor=cursor, limit=limit, newest_first=newest_first)
    found: list[HistoryEntry] = []
    after, actor = cursor, query.actor
    query = replace(query, actor="")  # only names that are shown can be asked for
    for _ in range(_MOST_READ):
        read = reader.history.page(query, cursor=after, limit=_READ_AT_ONCE, newest_first=newest_first)
        for entry in readable(reader, read.items, reach):
            if actor not in ("", entry.change.actor):
                continue
            found.append(entry)
            if len(found) == limit:
                return Page(items=tuple(found), next=entry.seq)
        after = read.next
        if after is None:
            break
    return Page(items=tuple(found), next=after)


def readable(reader: Reader, entries: Sequence[HistoryEntry], reach: Reach) -> list[HistoryEntry]:
    """Those of these entries that the caller may read, as far as they may."""
    if reach.owner is None:
        hidden = _hidden(reach)
        return [entry for entry in entries if entry.change.kind not in hidden]
    if not entries:
        return []
    sight = _sight(reader, [entry.change for entry in entries], reach)
    return [
        replace(entry, change=_nameless(entry.change, reach)) for entry in entries if sight.sees(entry.change, reach)
    ]


def _hidden(reach: Reach) -> frozenset[Kind]:
    """What is not even for those who may read everything: who may not read what was done with vaults does not read it
    here either, and which other workspaces there are is the installation's affair."""
    hidden = set() if right_of("vault_history", reach.principal.role) is not Right.NO else {Kind.VAULT}
    if reach.principal.subject is not None:
        hidden.add(Kind.WORKSPACE)
    return frozenset(hidden)


@dataclass(frozen=True, slots=True)
class _Sight:
    """What there is to see. work: ids of one's own requests and runs. rules: of what concerns one."""

    work: frozenset[str]
    rules: frozenset[str]

    def sees(self, change: Change, reach: Reach) -> bool:
        kind = change.kind
        if kind in _FOR_ALL:
            return True
        if kind in _OF_WORK:
            return (change.object if kind is Kind.REQUEST else change.run) in self.work
        if kind in _OF_RULES:
            return change.object in self.rules
        if kind in _OF_PEOPLE:
            return reach.principal.is_one_of(subject_of(kind, change.name))
        if kind is Kind.TOKEN:
            return reach.principal.actor in (change.before.get("owner"), change.after.get("owner"))
        return False


def _sight(reader: Reader, changes: Sequence[Change], reach: Reach) -> _Sight:
    requests = {change.object for change in changes if change.kind is Kind.REQUEST}
    records = reader.requests.get(requests) if requests else {}
    work = {str(name) for name, record in records.items() if is_within(record, reach)}
    runs = {change.run for change in changes if change.kind in (Kind.RUN, Kind.STEP)}
    work |= {run for run in runs if any(one.id == run for one in reader.runs.match(run, reach.owner))}
    rules: set[str] = set()
    if any(change.kind in _OF_RULES for change in changes):
        concerns = Concerns(reader.declared.all, reach)
        rules = {each.id for kind in _OF_RULES for each in concerns.chosen(reader.declared.all(kind))}
    return _Sight(frozenset(work), frozenset(rules))


def _nameless(change: Change, reach: Reach) -> Change:
    """A change of what is not one's own work does not say which of the others made it, or from where."""
    if change.kind in _OF_WORK or change.actor == reach.principal.actor:
        return change
    shown = {"before": change.before, "after": change.after}
    for name, document in shown.items():
        if isinstance(document.get("subject"), str):
            shown[name] = {**document, "subject": redaction.subject(str(document["subject"]), reach)}
    actor = change.actor if change.actor in _NOBODY else redaction.SOMEBODY
    name = _of_policy(change.name, reach) if change.kind is Kind.POLICY else change.name
    return replace(change, name=name, actor=actor, source="", before=shown["before"], after=shown["after"])


def _of_policy(name: str, reach: Reach) -> str:
    """A policy's name, which ends in whose it is, or was at the time."""
    place, slash, subject = name.rpartition("/")
    return place + slash + redaction.subject(subject, reach)

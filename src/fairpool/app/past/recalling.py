"""The whole of a past moment, as the scheduler would have known it: every question about now can be asked of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fairpool.app.memory import Memory
from fairpool.app.past.rules import rules_at
from fairpool.app.past.work import Rules, work_at
from fairpool.app.ports import Reader, Stored
from fairpool.app.records import (
    DECLARED,
    SETTINGS_ID,
    AnyDeclared,
    HistoryEntry,
    HistoryQuery,
    Kind,
    RequestQuery,
    RequestRecord,
)
from fairpool.core.ids import Instant, RequestId
from fairpool.core.policies import Policy, Profile
from fairpool.core.pools import Pool
from fairpool.core.requests import Status
from fairpool.core.world import Snapshot

_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """What is declared now. history_seq: the last entry that it counts in."""

    declared: tuple[AnyDeclared, ...]
    history_seq: int


def present(memory: Memory) -> Present:
    """What is declared, taken between two decisions."""
    declared = tuple(one for kind in DECLARED for one in memory.all(kind))
    return Present(declared=declared, history_seq=memory.history_seq)


def recall(now: Present, reader: Reader, at: Instant) -> Memory:
    """What was known at that moment. Reads the history since then, and all requests that were live at the time."""
    declared = rules_at(now.declared, list(_since(reader, now.history_seq, at)), at)
    records = list(_live(reader, at))
    leaving = [record.id for record in records if record.state.grant and record.state.grant.eviction]
    told_at = {request: told for request in leaving if (told := _told_at(reader, request)) is not None}
    return Memory(_stored(declared, work_at(records, Rules(declared), told_at, at)), at)


def _since(reader: Reader, seq: int, at: Instant) -> Iterator[HistoryEntry]:
    """What became of rules and rights after that moment, the newest first."""
    cursor: int | None = seq + 1
    while cursor is not None:
        page = reader.history.page(HistoryQuery(rules=True), cursor=cursor, limit=_AT_ONCE, newest_first=True)
        for entry in page.items:
            if entry.change.at <= at:
                return
            yield entry
        cursor = page.next


def _live(reader: Reader, at: Instant) -> Iterator[RequestRecord]:
    cursor: int | None = None
    while True:
        page = reader.requests.page(RequestQuery(live_at=at), cursor=cursor, limit=_AT_ONCE, oldest_first=True)
        yield from page.items
        cursor = page.next
        if cursor is None:
            return


def _told_at(reader: Reader, request: RequestId) -> Instant | None:
    page = reader.history.page(HistoryQuery(kind=Kind.REQUEST, object=request), limit=_AT_ONCE)
    told = (entry.change.at for entry in page.items if entry.change.what == Status.PREEMPTING)
    return next(told, None)


def _stored(declared: Sequence[AnyDeclared], live: dict[RequestId, RequestRecord]) -> Stored:
    specs = [one.spec for one in declared]
    holding = (record.allocation for record in live.values())
    snapshot = Snapshot(
        pools=tuple(sorted((spec for spec in specs if isinstance(spec, Pool)), key=lambda pool: pool.id)),
        policies=tuple(sorted((spec for spec in specs if isinstance(spec, Policy)), key=lambda policy: policy.id)),
        profiles=tuple(sorted((spec for spec in specs if isinstance(spec, Profile)), key=lambda one: one.name)),
        queued=tuple(record.request for record in live.values() if record.status is Status.QUEUED),
        allocations=tuple(
            sorted((held for held in holding if held is not None), key=lambda held: (held.sequence, held.request.id))
        ),
        require_policy=_require_policy(declared),
    )
    return Stored(snapshot=snapshot, live=live, declared=tuple(declared), history_seq=0)


def _require_policy(declared: Sequence[AnyDeclared]) -> bool:
    settings = [one.spec for one in declared if one.kind is Kind.SETTINGS and one.id == SETTINGS_ID]
    return any(isinstance(spec, dict) and bool(spec.get("require_policy")) for spec in settings)

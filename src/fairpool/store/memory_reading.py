"""The readers of the store in memory: the plainest code that gives the answers of the SQL readers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

from fairpool.app.records import (
    WORK,
    AnyDeclared,
    HistoryEntry,
    HistoryQuery,
    KeyUse,
    Kind,
    Owner,
    Page,
    RequestQuery,
    RequestRecord,
    RunQuery,
    RunRecord,
    StepRecord,
    TokenRecord,
    WebhookCursor,
)
from fairpool.core.ids import Instant, RequestId
from fairpool.core.policies import Policy, Profile, Subject
from fairpool.core.requests import Status

MOST_MATCHES = 10

Item = TypeVar("Item")
Lock = AbstractContextManager[object]


class Holds(Protocol):
    """What the readers look at (`memory.Contents`)."""

    declared: dict[tuple[Kind, str], AnyDeclared]
    requests: dict[RequestId, RequestRecord]
    runs: dict[str, RunRecord]
    steps: dict[str, StepRecord]
    keys: dict[tuple[Kind, str], KeyUse]
    history: list[HistoryEntry]
    tokens: dict[str, TokenRecord]
    cursors: dict[str, WebhookCursor]


class MemoryReader:
    """See `ports.Reader`."""

    def __init__(self, contents: Holds, lock: Lock) -> None:
        self._declared = MemoryDeclaredReader(contents, lock)
        self._requests = MemoryRequestReader(contents, lock)
        self._runs = MemoryRunReader(contents, lock)
        self._history = MemoryHistoryReader(contents, lock)
        self._tokens = MemoryTokenReader(contents, lock)
        self._cursors = MemoryCursorReader(contents, lock)

    @property
    def declared(self) -> MemoryDeclaredReader:
        """See `ports.Reader`."""
        return self._declared

    @property
    def requests(self) -> MemoryRequestReader:
        """See `ports.Reader`."""
        return self._requests

    @property
    def runs(self) -> MemoryRunReader:
        """See `ports.Reader`."""
        return self._runs

    @property
    def history(self) -> MemoryHistoryReader:
        """See `ports.Reader`."""
        return self._history

    @property
    def tokens(self) -> MemoryTokenReader:
        """See `ports.Reader`."""
        return self._tokens

    @property
    def cursors(self) -> MemoryCursorReader:
        """See `ports.Reader`."""
        return self._cursors


class _Part:
    def __init__(self, contents: Holds, lock: Lock) -> None:
        self._contents = contents
        self._lock = lock


class MemoryDeclaredReader(_Part):
    """See `ports.DeclaredReader`."""

    def get(self, kind: Kind, object_id: str) -> AnyDeclared | None:
        """See `ports.DeclaredReader`."""
        with self._lock:
            return self._contents.declared.get((kind, object_id))

    def all(self, kind: Kind) -> tuple[AnyDeclared, ...]:
        """See `ports.DeclaredReader`."""
        with self._lock:
            found = [one for one in self._contents.declared.values() if one.kind is kind]
        return tuple(sorted(found, key=lambda one: (one.name, one.id)))

    def match(self, kind: Kind, ref: str) -> tuple[AnyDeclared, ...]:
        """See `ports.DeclaredReader`."""
        objects = self.all(kind)
        return (
            tuple(one for one in objects if one.id == ref)
            or tuple(one for one in objects if one.name == ref)
            or _by_prefix({one.id: one for one in objects}, ref)
        )


class MemoryRequestReader(_Part):
    """See `ports.RequestReader`."""

    def get(self, ids: Collection[str]) -> dict[RequestId, RequestRecord]:
        """See `ports.RequestReader`."""
        with self._lock:
            records = self._contents.requests
            return {RequestId(one): records[RequestId(one)] for one in ids if one in records}

    def match(self, ref: str) -> tuple[RequestId, ...]:
        """See `ports.RequestReader`."""
        with self._lock:
            records = self._contents.requests
            if ref in records:
                return (RequestId(ref),)
            return tuple(record.id for record in _by_prefix(records, ref))

    def page(
        self, query: RequestQuery, *, cursor: int | None = None, limit: int = 100, oldest_first: bool = False
    ) -> Page[RequestRecord]:
        """See `ports.RequestReader`."""
        with self._lock:
            chosen = self._chooser(query)
            return _page(list(self._contents.requests.values()), chosen, cursor, limit, forward=oldest_first)

    def count(self, query: RequestQuery) -> dict[Status, int]:
        """See `ports.RequestReader`."""
        with self._lock:
            return dict(
                Counter(record.status for record in self._contents.requests.values() if self._chooser(query)(record))
            )

    def key(self, kind: Kind, key: str) -> KeyUse | None:
        """See `ports.RequestReader`."""
        with self._lock:
            return self._contents.keys.get((kind, key))

    def _chooser(self, query: RequestQuery) -> Callable[[RequestRecord], bool]:
        could_go = self._could_go(query.pool)

        def chosen(record: RequestRecord) -> bool:
            said, state, grant = record.submission, record.state, record.state.grant
            wanted = (
                (query.policy, grant.policy if grant else None),
                (query.profile, record.request.profile),
                (query.run, said.run),
                (query.step, said.step),
                (query.name, said.name),
                (query.retry_of, said.retry_of),
            )
            return (
                (not query.statuses or state.status in query.statuses)
                and all(not want or want == have for want, have in wanted)
                and (not query.subject or query.subject in map(str, record.request.subjects))
                and (not query.pool or (grant.pool == query.pool if grant else could_go(record)))
                and (
                    _owned(query.owner, said.created_by, record.request.subjects)
                    or (query.or_live and not state.status.is_final)
                )
                and _carries(said.labels, query.labels)
                and (query.since is None or said.created_at >= query.since)
                and (query.until is None or said.created_at < query.until)
                and (query.live_at is None or _was_live(record, query.live_at))
            )

        return chosen

    def _could_go(self, pool_id: str) -> Callable[[RequestRecord], bool]:
        objects = self._contents.declared
        pool = objects.get((Kind.POOL, pool_id))
        if pool is None:
            return lambda record: False
        specs = [one.spec for one in objects.values()]
        policies = [spec for spec in specs if isinstance(spec, Policy) and pool_id in spec.pools]
        here = {spec.name for spec in specs if isinstance(spec, Profile) and pool.name in spec.pools}

        def could_go(record: RequestRecord) -> bool:
            request = record.request
            if request.pool not in ("", pool.name) or (request.profile and request.profile not in here):
                return False
            return any(
                policy.subject in request.subjects
                and (not request.profile or policy.profiles is None or request.profile in policy.profiles)
                for policy in policies
            )

        return could_go


class MemoryRunReader(_Part):
    """See `ports.RunReader`."""

    def match(self, ref: str, owner: Owner | None = None) -> tuple[RunRecord, ...]:
        """See `ports.RunReader`."""
        with self._lock:
            runs = {
                name: run for name, run in self._contents.runs.items() if _owned(owner, run.created_by, run.subjects)
            }
            if ref in runs:
                return (runs[ref],)
            named = [run for run in runs.values() if run.name == ref]
            return tuple(named[-1:]) or _by_prefix(runs, ref)

    def page(self, query: RunQuery, *, cursor: int | None = None, limit: int = 100) -> Page[RunRecord]:
        """See `ports.RunReader`."""

        def chosen(run: RunRecord) -> bool:
            return (
                (not query.statuses or run.status in query.statuses)
                and (not query.name or run.name == query.name)
                and (not query.user or run.user == query.user)
                and _owned(query.owner, run.created_by, run.subjects)
                and _carries(run.labels, query.labels)
                and (query.since is None or run.created_at >= query.since)
                and (query.until is None or run.created_at < query.until)
            )

        with self._lock:
            return _page(list(self._contents.runs.values()), chosen, cursor, limit, forward=False)

    def match_step(self, ref: str) -> tuple[StepRecord, ...]:
        """See `ports.RunReader`."""
        with self._lock:
            steps = self._contents.steps
            return (steps[ref],) if ref in steps else _by_prefix(steps, ref)

    def steps(self, run: str) -> tuple[StepRecord, ...]:
        """See `ports.RunReader`."""
        with self._lock:
            return tuple(step for step in self._contents.steps.values() if step.run == run)

    def step_counts(self, runs: Collection[str]) -> dict[str, dict[str, int]]:
        """See `ports.RunReader`."""
        counts: dict[str, dict[str, int]] = {}
        with self._lock:
            for step in self._contents.steps.values():
                if step.run in runs:
                    of_run = counts.setdefault(step.run, {})
                    of_run[step.status.value] = of_run.get(step.status.value, 0) + 1
        return counts


class MemoryHistoryReader(_Part):
    """See `ports.HistoryReader`."""

    def page(
        self, query: HistoryQuery, *, cursor: int | None = None, limit: int = 100, newest_first: bool = False
    ) -> Page[HistoryEntry]:
        """See `ports.HistoryReader`."""
        history = self._contents.history
        named = {
            entry.change.object
            for entry in history
            if query.name and entry.change.name == query.name and query.kind in (None, entry.change.kind)
        }

        def chosen(entry: HistoryEntry) -> bool:
            change = entry.change
            return (
                (query.kind is None or change.kind is query.kind)
                and (not query.rules or change.kind not in WORK)
                and change.kind not in query.without
                and (not query.object or change.object == query.object)
                and (not query.name or change.object in named)
                and (not query.actor or change.actor == query.actor)
                and (not query.run or change.run == query.run)
                and (query.since is None or change.at >= query.since)
                and (query.until is None or change.at < query.until)
            )

        with self._lock:
            return _page(self._contents.history, chosen, cursor, limit, forward=not newest_first)

    def last_seq(self) -> int:
        """See `ports.HistoryReader`."""
        return len(self._contents.history)


def _was_live(record: RequestRecord, at: Instant) -> bool:
    ended_at = record.state.ended_at
    return record.submission.created_at <= at and (ended_at is None or ended_at > at)


def _by_prefix(items: Mapping[RequestId, Item] | Mapping[str, Item], prefix: str) -> tuple[Item, ...]:
    found = sorted(
        ((key, item) for key, item in items.items() if prefix and key.startswith(prefix)), key=lambda pair: pair[0]
    )[:MOST_MATCHES]
    return tuple(item for _, item in found)


def _owned(owner: Owner | None, made_by: str, subjects: tuple[Subject, ...]) -> bool:
    return owner is None or made_by == owner.made_by or any(str(subject) in owner.subjects for subject in subjects)


def _carries(labels: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    return all(labels.get(key) == value for key, value in wanted.items())


def _page(
    items: Sequence[Item], chosen: Callable[[Item], bool], cursor: int | None, limit: int, *, forward: bool
) -> Page[Item]:
    """Part of a list whose items are numbered from 1 in order of arrival."""
    found: list[tuple[int, Item]] = []
    for number in _numbers(len(items), cursor, forward=forward):
        if chosen(items[number - 1]):
            found.append((number, items[number - 1]))
            if len(found) > limit:
                break
    more = len(found) > limit
    return Page(items=tuple(item for _, item in found[:limit]), next=found[limit - 1][0] if more else None)


def _numbers(count: int, cursor: int | None, *, forward: bool) -> Iterable[int]:
    if forward:
        return range((cursor or 0) + 1, count + 1)
    return range(count if cursor is None else min(count, cursor - 1), 0, -1)


class MemoryTokenReader(_Part):
    """See `ports.TokenReader`."""

    def get(self, token_id: str) -> TokenRecord | None:
        """See `ports.TokenReader`."""
        with self._lock:
            return self._contents.tokens.get(token_id)

    def all(self, owner: str = "") -> tuple[TokenRecord, ...]:
        """See `ports.TokenReader`."""
        with self._lock:
            found = [token for token in self._contents.tokens.values() if owner in ("", token.owner)]
        return tuple(sorted(found, key=lambda token: (token.created_at, token.id)))


class MemoryCursorReader(_Part):
    """See `ports.CursorReader`."""

    def all(self) -> dict[str, WebhookCursor]:
        """See `ports.CursorReader`."""
        with self._lock:
            return dict(sorted(self._contents.cursors.items()))

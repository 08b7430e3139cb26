"""What a query says as conditions of SQL. Where a planner would guess wrongly, they say what was looked up before."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, Table, and_, exists, false, func, or_, select, text

from fairpool.app.records import Kind, Owner, RequestQuery, RunQuery
from fairpool.core.policies import Profile
from fairpool.core.requests import Status
from fairpool.store import schema
from fairpool.store.alternatives import Condition, Either, OneOf
from fairpool.store.labelled import FEW, Carrying
from fairpool.store.reading_declared import read_all

_C = schema.requests.c
_R = schema.runs.c
_FEW_TEXTS = 200
_LIVE_ONES: ColumnElement[bool] = text(schema.LIVE)  # type: ignore[assignment]  # as a literal, for its index
_LIVE = frozenset({Status.QUEUED, Status.ALLOCATED, Status.PREEMPTING})


class Conditions:
    """Conditions of one workspace's rows. merges: see `connections.Reading`."""

    def __init__(self, connection: Connection, workspace: str, *, merges: bool) -> None:
        self._connection = connection
        self._workspace = workspace
        self._merges = merges

    def of(self, query: RequestQuery) -> Iterator[Condition]:
        """What must hold of a request; all of it."""
        lives = bool(query.statuses) and query.statuses <= _LIVE
        if query.subject:
            yield self.made_as(_C.subjects, query.subject)
        if query.owner is not None and not (query.or_live and lives):
            theirs = self.owned(query.owner, _C.created_by, _C.subjects)
            yield Either((*theirs.parts, _LIVE_ONES)) if query.or_live else theirs
        for column, value in (
            (_C.policy_id, query.policy),
            (_C.profile, query.profile),
            (_C.run, query.run),
            (_C.step, query.step),
            (_C.name, query.name),
            (_C.retry_of, query.retry_of),
        ):
            if value:
                yield column == value
        if query.pool:
            could_go = self._could_go(query.pool)
            yield Either((_C.pool_id == query.pool, and_(_C.grant_sequence.is_(None), could_go)))
        for key, value in query.labels.items():
            yield self._labelled(Kind.REQUEST, schema.requests, key, value, among_few=lives)
        yield from _of_time(query)
        yield from self._in_status(query.statuses)

    def of_run(self, query: RunQuery) -> Iterator[Condition]:
        """What must hold of a run; all of it."""
        if query.owner is not None:
            yield self.owned(query.owner, _R.created_by, _R.subjects)
        if query.name:
            yield _R.name == query.name
        if query.user:
            yield _R.user_name == query.user
        for key, value in query.labels.items():
            yield self._labelled(Kind.RUN, schema.runs, key, value, among_few=False)
        if query.since is not None:
            yield _R.created_at >= query.since
        if query.until is not None:
            yield _R.created_at < query.until
        if query.statuses:
            yield Either((self.one_of(_R.status, sorted(status.value for status in query.statuses)),))

    def _in_status(self, statuses: frozenset[Status]) -> Iterator[Condition]:
        """Live ones are found by their own index; that they are is said once, or a planner takes it for two
        conditions, and expects next to nothing."""
        if statuses == _LIVE:
            yield _LIVE_ONES
        elif statuses:
            if statuses <= _LIVE and not self._merges:
                yield _LIVE_ONES  # SQLite takes its index only where the statement repeats its condition
            yield Either((self.one_of(_C.status, sorted(status.value for status in statuses)),))

    def one_of(self, column: Column[Any], values: Sequence[str]) -> OneOf:
        """That a column has one of these values."""
        return OneOf(column, values, as_array=self._merges)

    def made_as(self, column: Column[Any], *subjects: str) -> Either:
        """That something is made as one of these subjects. column: its text of subjects. Where there are few such
        texts, the statement names them: a database that sees them knows how rare they are, and goes by that."""
        sets = schema.subject_sets.c
        holding = sets.workspace == self._workspace, sets.subject.in_(subjects)
        few = select(sets.subjects).distinct().where(*holding).limit(_FEW_TEXTS + 1)
        texts = list(self._connection.execute(few).scalars())
        if len(texts) > _FEW_TEXTS:
            return Either((column.in_(select(sets.subjects).where(*holding)),))
        return Either((self.one_of(column, texts),))

    def owned(self, owner: Owner, made_by: Column[Any], subjects: Column[Any]) -> Either:
        """That something is that owner's. made_by, subjects: the columns that tell."""
        return Either((self.one_of(made_by, [owner.made_by]), *self.made_as(subjects, *owner.subjects).parts))

    def _labelled(self, kind: Kind, table: Table, key: str, value: str, *, among_few: bool) -> Condition:
        """That the object carries the label. Where few carry the label, the statement begins with them."""
        tied = schema.labels.alias().c
        label = (tied.workspace == self._workspace, tied.kind == kind.value, tied.key == key, tied.value == value)
        carriers = select(tied.seq).where(*label).limit(FEW + 1)
        if self._merges:
            carriers = carriers.order_by(tied.seq)  # by the index that has them in order
            count_of = select(func.count()).select_from(carriers.subquery()).scalar_subquery()
            ends = (select(end(tied.seq)).where(*label).scalar_subquery() for end in (func.min, func.max))
            count, lowest, highest = self._connection.execute(select(count_of, *ends)).one()
            span = None if lowest is None else (lowest, highest)
            return Carrying(tied.seq, label, count, span, table.c.seq, among_few)
        count = self._connection.execute(select(func.count()).select_from(carriers.subquery())).scalar_one()
        if count > FEW:
            return exists().where(*label, tied.object_id == table.c.id)
        return table.c.id.in_(select(tied.object_id).where(*label))

    def _could_go(self, pool_id: str) -> ColumnElement[bool]:
        """That pool, policies and profiles let the request go to the pool, whatever there is room for (S13)."""
        pools, spans, policies = schema.pools.c, schema.policy_pools.c, schema.policies.c
        named = select(pools.name).where(pools.workspace == self._workspace, pools.id == pool_id)
        pool = self._connection.execute(named).scalar()
        if pool is None:
            return false()
        profiles = read_all(self._connection, self._workspace, Kind.PROFILE)
        here = ["", *(one.name for one in profiles if isinstance(one.spec, Profile) and pool in one.spec.pools)]
        spanning = select(spans.policy_id).where(spans.workspace == self._workspace, spans.pool_id == pool_id)
        ours = or_(policies.pool_id == pool_id, policies.id.in_(spanning))
        offers = select(policies.subject, policies.profiles).where(policies.workspace == self._workspace, ours)
        offering: dict[tuple[str, ...], list[str]] = {}
        for subject, offered in self._connection.execute(offers):
            chosen = here if offered is None else [name for name in here if not name or name in json.loads(offered)]
            offering.setdefault(tuple(chosen), []).append(subject)
        ways = [
            and_(self.made_as(_C.subjects, *subjects).condition, _C.profile.in_(names))
            for names, subjects in offering.items()
        ]
        return and_(_C.wanted_pool.in_(["", pool]), or_(false(), *ways))


def _of_time(query: RequestQuery) -> Iterator[Condition]:
    if query.since is not None:
        yield _C.created_at >= query.since
    if query.until is not None:
        yield _C.created_at < query.until
    if query.live_at is not None:
        was_there = _C.created_at <= query.live_at
        yield Either((and_(was_there, _C.ended_at.is_(None)), and_(was_there, _C.ended_at > query.live_at)))

"""Requests, read."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, bindparam, exists, false, func, or_, select, text

from fairpool.app.records import KeyUse, Kind, Owner, Page, RequestQuery, RequestRecord
from fairpool.core.ids import RequestId
from fairpool.core.policies import Policy, Profile
from fairpool.core.requests import Status
from fairpool.store import report_rows, request_rows, schema
from fairpool.store.connections import Reading
from fairpool.store.matching import MOST_MATCHES, begins_with
from fairpool.store.reading_declared import read_all
from fairpool.store.statements import Statement

_REQUESTS = schema.requests
_C = _REQUESTS.c
_IDS_AT_ONCE = 500
_FEW_TEXTS = 200
_LIVE = frozenset({Status.QUEUED, Status.ALLOCATED, Status.PREEMPTING})
_K = schema.idempotency_keys.c
_ONE = select(_REQUESTS).where(_C.workspace == bindparam("workspace"), _C.id == bindparam("id"))
_KEY = select(schema.idempotency_keys).where(
    _K.workspace == bindparam("workspace"), _K.kind == bindparam("kind"), _K.key == bindparam("key")
)


class SqlRequestReader:
    """See `ports.RequestReader`."""

    def __init__(self, reading: Reading, workspace: str) -> None:
        self._reading = reading
        self._workspace = workspace
        self._one = Statement(_ONE, reading.dialect)
        self._key = Statement(_KEY, reading.dialect)

    def get(self, ids: Collection[str]) -> dict[RequestId, RequestRecord]:
        """See `ports.RequestReader`."""
        wanted = list(ids)
        if len(wanted) == 1:
            row = self._reading.row(self._one, workspace=self._workspace, id=wanted[0])
            return {} if row is None else {RequestId(wanted[0]): request_rows.record_of(row)}
        found: dict[RequestId, RequestRecord] = {}
        with self._reading() as connection:
            for start in range(0, len(wanted), _IDS_AT_ONCE):
                some = wanted[start : start + _IDS_AT_ONCE]
                rows = connection.execute(self._all().where(_C.id.in_(some)))
                found |= {record.id: record for record in map(request_rows.record_of, rows)}
        return found

    def match(self, ref: str) -> tuple[RequestId, ...]:
        """See `ports.RequestReader`."""
        if self._reading.row(self._one, workspace=self._workspace, id=ref) is not None:
            return (RequestId(ref),)
        query = select(_C.id).where(_C.workspace == self._workspace).order_by(_C.id).limit(MOST_MATCHES)
        with self._reading() as connection:
            return tuple(map(RequestId, connection.execute(query.where(begins_with(_C.id, ref))).scalars()))

    def page(
        self, query: RequestQuery, *, cursor: int | None = None, limit: int = 100, oldest_first: bool = False
    ) -> Page[RequestRecord]:
        """See `ports.RequestReader`."""
        with self._reading() as connection:
            chosen = self._all().where(*self._conditions(connection, query)).limit(limit + 1)
            if cursor is not None:
                chosen = chosen.where(_C.seq > cursor if oldest_first else _C.seq < cursor)
            rows = connection.execute(chosen.order_by(_C.seq if oldest_first else _C.seq.desc())).all()
        more = len(rows) > limit
        items = tuple(map(request_rows.record_of, rows[:limit]))
        return Page(items=items, next=rows[limit - 1].seq if more else None)

    def count(self, query: RequestQuery) -> dict[Status, int]:
        """See `ports.RequestReader`."""
        with self._reading() as connection:
            conditions = [_C.workspace == self._workspace, *self._conditions(connection, query)]
            rows = connection.execute(select(_C.status, func.count()).where(*conditions).group_by(_C.status)).all()
        return {Status(status): number for status, number in rows}

    def key(self, kind: Kind, key: str) -> KeyUse | None:
        """See `ports.RequestReader`."""
        row = self._reading.row(self._key, workspace=self._workspace, kind=kind.value, key=key)
        return None if row is None else report_rows.key_of(row)

    def _all(self) -> Select[Any]:
        return select(_REQUESTS).where(_C.workspace == self._workspace)

    def _conditions(self, connection: Connection, query: RequestQuery) -> Iterator[ColumnElement[bool]]:
        if query.statuses:
            if query.statuses <= _LIVE:
                yield text(schema.LIVE)  # type: ignore[misc]  # so that the index of live ones serves it
            yield _C.status.in_(sorted(status.value for status in query.statuses))
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
        if query.subject:
            yield self._made_as(connection, query.subject)
        if query.pool:
            yield or_(
                _C.pool_id == query.pool, and_(_C.grant_sequence.is_(None), self._could_go(connection, query.pool))
            )
        if query.owner is not None and not (query.or_live and query.statuses and query.statuses <= _LIVE):
            made_as = self._made_as(connection, *query.owner.subjects)
            theirs = or_(_C.created_by == query.owner.made_by, made_as)
            yield or_(theirs, text(schema.LIVE)) if query.or_live else theirs
        for key, value in query.labels.items():
            yield labelled(self._workspace, Kind.REQUEST, _C.id, key, value)
        if query.since is not None:
            yield _C.created_at >= query.since
        if query.until is not None:
            yield _C.created_at < query.until
        if query.live_at is not None:
            yield _C.created_at <= query.live_at
            yield or_(_C.ended_at.is_(None), _C.ended_at > query.live_at)

    def _made_as(self, connection: Connection, *subjects: str) -> ColumnElement[bool]:
        """As `made_as`. Where there are few texts of subjects, the statement names them: a database that sees them
        knows how rare they are, and chooses its way by that."""
        sets = schema.subject_sets.c
        holding = select(sets.subjects).distinct().where(sets.workspace == self._workspace, sets.subject.in_(subjects))
        texts = list(connection.execute(holding.limit(_FEW_TEXTS + 1)).scalars())
        if len(texts) > _FEW_TEXTS:
            return made_as(self._workspace, _C.subjects, *subjects)
        return _C.subjects.in_(texts) if texts else false()

    def _could_go(self, connection: Connection, pool_id: str) -> ColumnElement[bool]:
        """That pool, policies and profiles let the request go to the pool, whatever there is room for (S13)."""
        pool = next(iter(read_all(connection, self._workspace, Kind.POOL, schema.pools.c.id == pool_id)), None)
        if pool is None:
            return false()
        profiles = read_all(connection, self._workspace, Kind.PROFILE)
        here = ["", *(one.name for one in profiles if isinstance(one.spec, Profile) and pool.name in one.spec.pools)]
        spans = schema.policy_pools.c
        spanning = select(spans.policy_id).where(spans.workspace == self._workspace, spans.pool_id == pool_id)
        ours = or_(schema.policies.c.pool_id == pool_id, schema.policies.c.id.in_(spanning))
        policies = read_all(connection, self._workspace, Kind.POLICY, ours)
        offering: dict[tuple[str, ...], list[str]] = {}
        for one in policies:
            assert isinstance(one.spec, Policy)
            offered = one.spec.profiles
            profiles_here = here if offered is None else [name for name in here if not name or name in offered]
            offering.setdefault(tuple(profiles_here), []).append(str(one.spec.subject))
        ways = [
            and_(self._made_as(connection, *subjects), _C.profile.in_(names)) for names, subjects in offering.items()
        ]
        return and_(_C.wanted_pool.in_(["", pool.name]), or_(false(), *ways))


def made_as(workspace: str, column: ColumnElement[str], *subjects: str) -> ColumnElement[bool]:
    """That something is made as one of these subjects. column: its text of subjects."""
    sets = schema.subject_sets
    holding = select(sets.c.subjects).where(sets.c.workspace == workspace, sets.c.subject.in_(subjects))
    return column.in_(holding)


def owned(
    workspace: str, owner: Owner, made_by: ColumnElement[str], subjects: ColumnElement[str]
) -> ColumnElement[bool]:
    """That something is that owner's. made_by, subjects: the columns that tell."""
    return or_(made_by == owner.made_by, made_as(workspace, subjects, *owner.subjects))


def labelled(workspace: str, kind: Kind, object_id: Any, key: str, value: str) -> ColumnElement[bool]:
    """That the object carries the label."""
    labels = schema.labels.c
    return exists().where(
        labels.workspace == workspace,
        labels.kind == kind.value,
        labels.key == key,
        labels.value == value,
        labels.object_id == object_id,
    )

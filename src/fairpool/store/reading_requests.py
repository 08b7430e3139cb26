"""Requests, read."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import (
    Connection,
    Select,
    bindparam,
    func,
    select,
)

from fairpool.app.records import KeyUse, Kind, Page, RequestQuery, RequestRecord
from fairpool.core.ids import RequestId
from fairpool.core.requests import Status
from fairpool.store import report_rows, request_rows, schema
from fairpool.store.alternatives import rows_of, whole
from fairpool.store.conditions import Conditions
from fairpool.store.connections import Reading
from fairpool.store.matching import MOST_MATCHES, begins_with
from fairpool.store.paging import Cut
from fairpool.store.statements import Statement

_REQUESTS = schema.requests
_C = _REQUESTS.c
_IDS_AT_ONCE = 500
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
        mine, cut = _C.workspace == self._workspace, Cut(cursor=cursor, rows=limit + 1, oldest_first=oldest_first)
        with self._reading() as connection:
            conditions = list(self._asked(connection).of(query))
            rows = connection.execute(rows_of(_REQUESTS, mine, conditions, cut, merges=self._reading.merges)).all()
        more = len(rows) > limit
        items = tuple(map(request_rows.record_of, rows[:limit]))
        return Page(items=items, next=rows[limit - 1].seq if more else None)

    def count(self, query: RequestQuery) -> dict[Status, int]:
        """See `ports.RequestReader`."""
        with self._reading() as connection:
            conditions = map(whole, self._asked(connection).of(query))
            counted = select(_C.status, func.count()).where(_C.workspace == self._workspace, *conditions)
            rows = connection.execute(counted.group_by(_C.status)).all()
        return {Status(status): number for status, number in rows}

    def key(self, kind: Kind, key: str) -> KeyUse | None:
        """See `ports.RequestReader`."""
        row = self._reading.row(self._key, workspace=self._workspace, kind=kind.value, key=key)
        return None if row is None else report_rows.key_of(row)

    def _all(self) -> Select[Any]:
        return select(_REQUESTS).where(_C.workspace == self._workspace)

    def _asked(self, connection: Connection) -> Conditions:
        return Conditions(connection, self._workspace, merges=self._reading.merges)

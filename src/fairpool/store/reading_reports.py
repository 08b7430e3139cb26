"""Runs, steps and history, read."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, Select, func, select, text

from fairpool.app.records import HistoryEntry, HistoryQuery, Owner, Page, RunQuery, RunRecord, StepRecord
from fairpool.store import report_rows, schema
from fairpool.store.alternatives import rows_of
from fairpool.store.conditions import Conditions
from fairpool.store.connections import Reading
from fairpool.store.matching import MOST_MATCHES, begins_with
from fairpool.store.paging import Cut

_R = schema.runs.c
_S = schema.steps.c
_H = schema.history.c


class SqlRunReader:
    """See `ports.RunReader`."""

    def __init__(self, reading: Reading, workspace: str) -> None:
        self._reading = reading
        self._workspace = workspace

    def match(self, ref: str, owner: Owner | None = None) -> tuple[RunRecord, ...]:
        """See `ports.RunReader`."""
        with self._reading() as connection:
            mine = select(schema.runs).where(_R.workspace == self._workspace)
            if owner is not None:
                mine = mine.where(self._asked(connection).owned(owner, _R.created_by, _R.subjects).condition)
            by_id, by_name = mine.where(_R.id == ref), mine.where(_R.name == ref).order_by(_R.seq.desc()).limit(1)
            by_prefix = mine.where(begins_with(_R.id, ref)).order_by(_R.id).limit(MOST_MATCHES)
            for query in (by_id, by_name, by_prefix):
                rows = connection.execute(query).all()
                if rows:
                    return tuple(map(report_rows.run_of, rows))
        return ()

    def _asked(self, connection: Connection) -> Conditions:
        return Conditions(connection, self._workspace, merges=self._reading.merges)

    def page(self, query: RunQuery, *, cursor: int | None = None, limit: int = 100) -> Page[RunRecord]:
        """See `ports.RunReader`."""
        mine, cut = _R.workspace == self._workspace, Cut(cursor=cursor, rows=limit + 1, oldest_first=False)
        with self._reading() as connection:
            conditions = list(self._asked(connection).of_run(query))
            rows = connection.execute(rows_of(schema.runs, mine, conditions, cut, merges=self._reading.merges)).all()
        items = tuple(map(report_rows.run_of, rows[:limit]))
        return Page(items=items, next=rows[limit - 1].seq if len(rows) > limit else None)

    def match_step(self, ref: str) -> tuple[StepRecord, ...]:
        """See `ports.RunReader`."""
        query = select(schema.steps).where(_S.workspace == self._workspace).order_by(_S.id).limit(MOST_MATCHES)
        with self._reading() as connection:
            for condition in (_S.id == ref, begins_with(_S.id, ref)):
                rows = connection.execute(query.where(condition)).all()
                if rows:
                    return tuple(map(report_rows.step_of, rows))
        return ()

    def steps(self, run: str) -> tuple[StepRecord, ...]:
        """See `ports.RunReader`."""
        query = select(schema.steps).where(_S.workspace == self._workspace, _S.run_id == run).order_by(_S.seq)
        with self._reading() as connection:
            return tuple(map(report_rows.step_of, connection.execute(query)))

    def step_counts(self, runs: Collection[str]) -> dict[str, dict[str, int]]:
        """See `ports.RunReader`."""
        query = (
            select(_S.run_id, _S.status, func.count())
            .where(_S.workspace == self._workspace, _S.run_id.in_(list(runs)))
            .group_by(_S.run_id, _S.status)
        )
        counts: dict[str, dict[str, int]] = {}
        with self._reading() as connection:
            for run, status, number in connection.execute(query):
                counts.setdefault(run, {})[status] = number
        return counts


class SqlHistoryReader:
    """See `ports.HistoryReader`."""

    def __init__(self, reading: Reading, workspace: str) -> None:
        self._reading = reading
        self._workspace = workspace

    def page(
        self, query: HistoryQuery, *, cursor: int | None = None, limit: int = 100, newest_first: bool = False
    ) -> Page[HistoryEntry]:
        """See `ports.HistoryReader`."""
        chosen = select(schema.history).where(_H.workspace == self._workspace).limit(limit + 1)
        chosen = chosen.order_by(_H.seq.desc() if newest_first else _H.seq)
        if query.rules:
            chosen = chosen.where(text(schema.RULES))  # as a literal, so that its index serves it
        if query.kind is not None:
            chosen = chosen.where(_H.kind == query.kind.value)
        if query.without:
            chosen = chosen.where(_H.kind.not_in(sorted(query.without)))
        if query.name:
            chosen = chosen.where(_H.object_id.in_(self._named(query)))
        if query.actor:
            chosen = chosen.where(_H.actor == query.actor)
        if query.object:
            chosen = chosen.where(_H.object_id == query.object)
        if query.run:
            chosen = chosen.where(_H.run == query.run)
        if query.since is not None:
            chosen = chosen.where(_H.at >= query.since)
        if query.until is not None:
            chosen = chosen.where(_H.at < query.until)
        if cursor is not None:
            chosen = chosen.where(_H.seq < cursor if newest_first else _H.seq > cursor)
        with self._reading() as connection:
            rows = connection.execute(chosen).all()
        items = tuple(map(report_rows.entry_of, rows[:limit]))
        return Page(items=items, next=rows[limit - 1].seq if len(rows) > limit else None)

    def _named(self, query: HistoryQuery) -> Select[tuple[str]]:
        """Ids of what has ever gone by that name."""
        named = select(_H.object_id).where(_H.workspace == self._workspace, _H.name == query.name)
        if query.rules:
            named = named.where(text(schema.RULES))
        return named if query.kind is None else named.where(_H.kind == query.kind.value)

    def last_seq(self) -> int:
        """See `ports.HistoryReader`."""
        with self._reading() as connection:
            return connection.execute(select(func.max(_H.seq))).scalar() or 0

"""Rules of the contents that no constraint of one row can say, as questions that a sound database answers with nothing.

They hold over several rows, and what keeps them is a trigger, or that one writes alone; a row that somebody changed by
hand shows here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection, ForeignKeyConstraint, Select, and_, exists, func, inspect, literal, select, text
from sqlalchemy.sql import ColumnElement

from fairpool.app.ports import ERASED
from fairpool.app.records import Kind
from fairpool.store import schema

MOST_NAMED: Final = 20
"""Rows that are named for each rule: more would tell an operator nothing."""

_R: Final = schema.requests.c
_D: Final = schema.held_devices.c
_W: Final = schema.workspaces.c
_S: Final = schema.subject_sets.c
_H: Final = schema.history.c

_HOLDING: Final[ColumnElement[bool]] = text(schema.HOLDING)  # type: ignore[assignment]
_HOLDER: Final = exists().where(_R.workspace == _D.workspace, _R.id == _D.request_id, _HOLDING)
_LATER: Final = select(_W.grant_sequence).where(_W.name == _R.workspace).scalar_subquery()
_KNOWN: Final = exists().where(_S.workspace == _R.workspace, _S.subjects == _R.subjects)
_MISSING: Final = select(func.max(_H.seq) - func.min(_H.seq) + 1 - func.count(_H.seq)).scalar_subquery()
# With a workspace its history goes, and numbers are missing from then on; that it went is written down before.
_NONE_ERASED: Final = ~exists().where(_H.kind == Kind.WORKSPACE.value, _H.what == ERASED)

# What is said of a row, and how such rows are found; each row is named by one text.
_RULES: Final[tuple[tuple[str, Select[Any]], ...]] = (
    (
        "a device of pool {} is held beyond the whole (INV-4)",
        select(_D.pool_id).group_by(_D.workspace, _D.pool_id, _D.node, _D.device).having(func.sum(_D.share) > 1000),
    ),
    ("devices are kept for request {}, which holds nothing (INV-8)", select(_D.request_id).where(~_HOLDER)),
    (
        "request {} holds a place in the order of grants that is yet to be given (S20)",
        select(_R.id).where(_HOLDING, _R.grant_sequence > func.coalesce(_LATER, 0)),
    ),
    ("request {} cannot be found by its subjects", select(_R.id).where(~_KNOWN)),
    ("the history has gaps: {} entries are missing", select(_MISSING).where(_MISSING > 0, _NONE_ERASED)),
)


def broken_rules(connection: Connection) -> list[str]:
    """What is wrong with the contents, in sentences."""
    return [
        sentence.format(name)
        for sentence, query in _RULES
        for name in connection.execute(query.distinct().limit(MOST_NAMED)).scalars()
    ]


def dangling_rows(connection: Connection) -> Sequence[str]:
    """Which rows point to nothing, in sentences. Of an older schema, or of none, what there is already."""
    there = {
        (table, column["name"])
        for (_, table), columns in inspect(connection).get_multi_columns().items()
        for column in columns
    }
    return [
        f"a row of {table.name} points to nothing in {rule.referred_table.name}"
        for table in schema.metadata.sorted_tables
        for rule in table.foreign_key_constraints
        if all(
            {(column.table.name, column.name) for column in (element.parent, element.column)} <= there
            for element in rule.elements
        )
        and connection.execute(_pointing_to_nothing(rule)).first() is not None
    ]


def _pointing_to_nothing(rule: ForeignKeyConstraint) -> Select[Any]:
    target = rule.referred_table.alias()
    there = and_(*(target.c[element.column.name] == element.parent for element in rule.elements))
    return select(literal(1)).select_from(rule.table).where(~exists().where(there)).limit(1)

"""Rows for which one of several things holds, a page at a time: each of them found in order, by its own index.

Told "this or that, the newest hundred", a planner walks a table backwards until it has them, and guesses from how many
there are in all how far that is. Where they lie far back (of a team that has left, in a status that was common last
year) it reads everything. So each alternative gives its own newest hundred, and those are merged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ARRAY,
    Column,
    ColumnElement,
    Select,
    Table,
    Text,
    false,
    func,
    literal,
    or_,
    select,
    true,
    union_all,
)

from fairpool.store.labelled import Carrying, labelled
from fairpool.store.paging import Cut


@dataclass(frozen=True, slots=True)
class OneOf:
    """That a column has one of these values. as_array: they are sent as one, which costs less where the database takes
    arrays."""

    column: Column[Any]
    values: Sequence[str]
    as_array: bool

    @property
    def condition(self) -> ColumnElement[bool]:
        """The same for a statement that is not split."""
        if not self.values:
            return false()
        if len(self.values) == 1:
            return self.column == self.values[0]
        return self.column == func.any(self.array) if self.as_array else self.column.in_(self.values)

    @property
    def array(self) -> ColumnElement[Any]:
        """The values as one."""
        return literal(list(self.values), ARRAY(Text))


@dataclass(frozen=True, slots=True)
class Either:
    """That one of these holds."""

    parts: tuple[ColumnElement[bool] | OneOf, ...]

    @property
    def condition(self) -> ColumnElement[bool]:
        """The same for a statement that is not split."""
        return or_(*(part.condition if isinstance(part, OneOf) else part for part in self.parts))

    @property
    def is_plain(self) -> bool:
        """Whether there is nothing to split."""
        return len(self.parts) == 1 and not (isinstance(self.parts[0], OneOf) and len(self.parts[0].values) > 1)


Condition = ColumnElement[bool] | Either | Carrying


def whole(condition: Condition) -> ColumnElement[bool]:
    """A condition for a statement that is not split."""
    return condition.condition if isinstance(condition, Either | Carrying) else condition


def rows_of(
    table: Table, mine: ColumnElement[bool], conditions: Sequence[Condition], cut: Cut, *, merges: bool
) -> Select[Any]:
    """A page of a table's rows for which all of that holds, found by their ``seq``.

    merges: whether the database may be asked for alternatives apart. They are where there is nothing but one of several
    things that must hold: where more must, what is rare may be found by that.
    """
    labels = [one for one in conditions if isinstance(one, Carrying)]
    if labels:
        others = [whole(one) for one in conditions if not isinstance(one, Carrying)]
        return labelled(table, labels, mine, others, cut)
    always = [mine, *cut.begins(table.c.seq)]
    only = conditions[0] if len(conditions) == 1 else None
    if merges and isinstance(only, Either) and not only.is_plain:
        chosen = select(table).where(table.c.seq.in_(_numbers_of(only, table.c.seq, always, cut)))
    else:
        chosen = select(table).where(*always, *map(whole, conditions))
    return cut.of(chosen, table.c.seq)


def _numbers_of(either: Either, number: Column[int], always: Sequence[ColumnElement[bool]], cut: Cut) -> Select[Any]:
    pages = (_page_of(part, number, always, cut) for part in either.parts)
    found = union_all(*(select(page.subquery()) for page in pages)).subquery("found")
    return cut.of(select(found.c.number).distinct(), found.c.number)


def _page_of(
    part: ColumnElement[bool] | OneOf, number: Column[int], always: Sequence[ColumnElement[bool]], cut: Cut
) -> Select[Any]:
    numbers = select(number.label("number")).where(*always)
    if not isinstance(part, OneOf):
        return cut.of(numbers.where(part), number)
    given = func.unnest(part.array).table_valued("value").render_derived()
    each = cut.of(numbers.where(part.column == given.c.value), number).correlate(given).lateral()
    return select(each.c.number).select_from(given.join(each, true()))

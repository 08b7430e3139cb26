"""Rows that carry a label, a page at a time, on a database that keeps the numbers of those that do in order.

A planner that gathers all rows that carry the label, to sort them, does so for a page of a hundred. So the statement
itself begins with the numbers. Where few carry the label, it looks at one row after the other until the page is full.
Where many do, none of them may be wanted: then numbers are brought together with numbers, which other indexes have in
order too, and only the rows of the page are looked at. Either way nothing is looked for before the first that carries
all the labels, or after the last: a label is often one month's, and what it is brought together with is years'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Column, ColumnElement, Select, Table, false, func, select, true

from fairpool.store.paging import Cut

FEW: Final = 5_000
"""Rows that can be looked at one after the other in a few milliseconds."""


@dataclass(frozen=True, slots=True)
class Carrying:
    """That a row carries a label.

    carrier: the numbers of those that carry one, by a name of their own. label: what holds of those that carry this
    one. count: how many those are, or more than `FEW`. span: the lowest and the highest of their numbers, None where
    there is none. number: the row's. among_few: whether something else is asked for that holds for few rows.
    """

    carrier: ColumnElement[int]
    label: tuple[ColumnElement[bool], ...]
    count: int
    span: tuple[int, int] | None
    number: Column[int]
    among_few: bool

    @property
    def condition(self) -> ColumnElement[bool]:
        """The same for a statement that begins with something else."""
        if self.count > FEW:
            return self.of(self.number)
        return self.number == func.any(func.array(self.carriers.scalar_subquery()))

    @property
    def carriers(self) -> Select[Any]:
        """The numbers of all that carry it."""
        return select(self.carrier).where(*self.label)

    def of(self, number: ColumnElement[int], *within: ColumnElement[bool]) -> ColumnElement[bool]:
        """That what has this number carries it. within: what is known of the number besides."""
        return self.carriers.where(self.carrier == number, *within).exists()

    def looked_up(self) -> ColumnElement[bool]:
        """The same, looked up for one row after the other: a planner makes no join of it."""
        return self.carriers.where(self.carrier == self.number).limit(1).scalar_subquery().is_not(None)


def first_of(labels: Sequence[Carrying]) -> Carrying:
    """Which label a statement had best begin with: the rarest."""
    return min(labels, key=lambda label: label.count)


def _overlap(labels: Sequence[Carrying]) -> tuple[int, int] | None:
    """From which number to which something may carry all of them."""
    spans = [label.span for label in labels if label.span is not None]
    if len(spans) < len(labels):
        return None
    return max(lowest for lowest, _ in spans), min(highest for _, highest in spans)


def labelled(
    table: Table, labels: Sequence[Carrying], mine: ColumnElement[bool], others: Sequence[ColumnElement[bool]], cut: Cut
) -> Select[Any]:
    """A page of the rows that carry all these labels, and for which all of that holds."""
    first, overlap = first_of(labels), _overlap(labels)

    def within(number: ColumnElement[int]) -> list[ColumnElement[bool]]:
        return [*cut.begins(number), false() if overlap is None else number.between(*overlap)]

    besides = [label.of(first.carrier, *within(label.carrier)) for label in labels if label is not first]
    carriers = first.carriers.where(*within(first.carrier), *besides)
    if others and first.count <= FEW:
        return _row_by_row(table, cut.ordered(carriers, first.carrier), [mine, *others], cut)
    if first.among_few:
        few = select(table).where(mine, *cut.begins(first.number), *others, *(label.looked_up() for label in labels))
        return cut.of(few, first.number)
    if others:
        # Between which numbers is said of both: a planner does not conclude it from their being equal.
        carriers = carriers.join(table, first.number == first.carrier).where(mine, *within(first.number), *others)
    return cut.ordered(select(table).where(first.number.in_(cut.of(carriers, first.carrier))), first.number)


def _row_by_row(
    table: Table, in_order: Select[Any], conditions: Sequence[ColumnElement[bool]], cut: Cut
) -> Select[Any]:
    # Both limits change nothing of what is found. They keep the planner from another order of work.
    carriers = in_order.limit(FEW).subquery("carriers")
    wanted = select(table).where(table.c.seq == carriers.c.seq, *conditions)
    row = wanted.limit(1).correlate(carriers).lateral("row")
    return cut.of(select(*row.c).select_from(carriers.join(row, true())), carriers.c.seq)

"""A page of a list: where it begins, in which order it comes, how many rows it has at most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Which page of a list in order of some number.

    cursor: the number after which it begins, if not with the first. rows: how many are read, one more than the page
    has: that one says that there is a next page.
    """

    cursor: int | None
    rows: int
    oldest_first: bool

    def begins(self, number: ColumnElement[int]) -> list[ColumnElement[bool]]:
        """What holds of the numbers from where it begins."""
        if self.cursor is None:
            return []
        return [number > self.cursor if self.oldest_first else number < self.cursor]

    def ordered(self, chosen: Select[Any], number: ColumnElement[int]) -> Select[Any]:
        """A selection in that order."""
        return chosen.order_by(number if self.oldest_first else number.desc())

    def of(self, chosen: Select[Any], number: ColumnElement[int]) -> Select[Any]:
        """A selection in that order, and cut off after the page."""
        return self.ordered(chosen, number).limit(self.rows)

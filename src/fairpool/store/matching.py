"""What a text that a person typed may mean: an id, a name, or the beginning of an id."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Column, ColumnElement, and_, false

MOST_MATCHES: Final = 10
"""Candidates that are shown for an ambiguous prefix."""

_LAST: Final = "\U0010ffff"


def begins_with(column: Column[Any], prefix: str) -> ColumnElement[bool]:
    """That the column's text begins so; as a range, so that an index serves it. Nothing begins with nothing."""
    return and_(column >= prefix, column < prefix + _LAST) if prefix else false()

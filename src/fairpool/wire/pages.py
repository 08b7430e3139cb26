"""Lists in pages."""

from __future__ import annotations

from typing import Generic, TypeVar

from fairpool.wire.model import View

Item = TypeVar("Item")

DEFAULT_PAGE = 100
MAX_PAGE = 1_000


class Page(View, Generic[Item]):
    """One page of a list.

    next_cursor: what to pass as ``cursor`` for the page after it; None on the last one.
    """

    items: list[Item]
    next_cursor: str | None = None

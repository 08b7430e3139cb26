"""What all calls of the API build upon: the transport, and lists page after page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from pydantic import BaseModel

from fairpool.client.transport import Query, Transport
from fairpool.wire.pages import MAX_PAGE, Page

Item = TypeVar("Item", bound=BaseModel)


class Calls:
    """A connection to one server."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    @property
    def url(self) -> str:
        """Where the server is."""
        return self.transport.url

    def close(self) -> None:
        """Close the kept connections."""
        self.transport.close()

    def pages(
        self,
        route: str,
        item: type[Item],
        *,
        query: Query | None = None,
        limit: int | None = None,
        path: dict[str, str] | None = None,
    ) -> Iterator[Item]:
        """The items of a list, page after page, at most `limit` of them."""
        left, cursor = limit, None
        while left is None or left > 0:
            size = MAX_PAGE if left is None else min(left, MAX_PAGE)
            asked: Query = {**(query or {}), "limit": size, "cursor": cursor}
            page = self.transport.call(route, Page[item], path=path, query=asked)  # type: ignore[valid-type]
            yield from page.items
            left = None if left is None else left - len(page.items)
            cursor = page.next_cursor
            if cursor is None:
                return

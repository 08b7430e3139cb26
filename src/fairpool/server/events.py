"""The event stream: history as server-sent events, from where a reader left off."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass

from fairpool.server.watching import EVERYTHING, Watch, wait
from fairpool.wire.events import Event

READ_AT_ONCE = 500
_HEARTBEAT_S = 15.0
"""After so much silence a comment is sent, so that proxies and readers know that the stream lives."""


@dataclass(frozen=True, slots=True)
class News:
    """Events, oldest first. last: the id up to which was read; not all in between is for the reader. more: whether
    there is more to read at once."""

    events: Sequence[Event]
    last: int
    more: bool


Read = Callable[[int, int], Awaitable[News | None]]
"""The events after an id, of at most so many entries; None where the reader may read no more."""


async def stream(read: Read, watch: Watch, *, after: int) -> AsyncIterator[bytes]:
    """Server-sent events after `after`, now and as they happen, until the reader hangs up or the server stops.

    It begins with the id after which it goes on: a reader whose connection breaks before the first event knows it then.
    """
    yield f"id: {after}\nretry: 1000\n\n".encode()
    with watch.watching(EVERYTHING) as changed:
        while True:
            changed.clear()
            found = await read(after, READ_AT_ONCE)
            if found is None:
                return
            after = found.last
            for event in found.events:
                yield encoded(event)
            if watch.closing:
                return
            if not found.more and not await wait(changed, _HEARTBEAT_S):
                yield b": nothing new\n\n"


def encoded(event: Event) -> bytes:
    """One event as the stream carries it: id, name, and the JSON in one data line."""
    return f"id: {event.id}\nevent: {event.kind}\ndata: {event.model_dump_json()}\n\n".encode()

"""The event stream goes on from any id, skips what does not match, and ends with the server."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from fairpool.server.events import READ_AT_ONCE, News, encoded, stream
from fairpool.server.watching import Watch
from fairpool.wire.events import Event


def event(number: int, kind: str = "request") -> Event:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return Event(id=number, at=at, kind=kind, object=f"o{number}", what="allocated", cause="a\nb")


class History:
    """A history that grows while it is read."""

    def __init__(self, *events: Event) -> None:
        self.events = list(events)
        self.hidden: set[int] = set()
        self.is_closed = False

    async def read(self, after: int, limit: int) -> News | None:
        if self.is_closed:
            return None
        read = [found for found in self.events if found.id > after]
        told = [found for found in read[:limit] if found.id not in self.hidden]
        return News(told, read[:limit][-1].id if read else after, more=len(read) > limit)


async def some(history: History, watch: Watch, count: int, *, after: int = 0) -> list[bytes]:
    found = []
    async for text in stream(history.read, watch, after=after):
        found.append(text)
        if len(found) == count:
            break
    return found


def test_a_reader_goes_on_after_the_last_event_it_saw() -> None:
    history = History(event(1), event(2), event(3))
    first, *rest = asyncio.run(some(history, Watch(), 2, after=2))
    assert first == b"id: 2\nretry: 1000\n\n"
    assert rest == [encoded(event(3))]


def test_an_event_is_one_block_with_its_id_and_name() -> None:
    lines = encoded(event(7)).decode().split("\n")
    assert lines[0:2] == ["id: 7", "event: request"]
    assert lines[2].startswith("data: {")
    assert lines[3:] == ["", ""]


def test_what_happens_later_is_told_when_it_happens() -> None:
    async def story() -> list[bytes]:
        watch = Watch()
        watch.attach(asyncio.get_running_loop())
        history = History(event(1))
        reading = asyncio.create_task(some(history, watch, 3))
        for _ in range(100):  # turns of the loop: the reader has read all there is and waits
            await asyncio.sleep(0)
        history.events.append(event(2))
        watch.tell(["o2"])
        return await reading

    assert asyncio.run(story())[1:] == [encoded(event(1)), encoded(event(2))]


def test_more_than_one_reading_is_told_whole_and_in_order() -> None:
    history = History(*(event(number) for number in range(1, 2 * READ_AT_ONCE + 2)))
    found = asyncio.run(some(history, Watch(), 2 * READ_AT_ONCE + 2))
    assert found[1:] == [encoded(told) for told in history.events]


def test_the_stream_ends_when_the_server_stops() -> None:
    async def story() -> list[bytes]:
        watch = Watch()
        watch.close()
        return await some(History(event(1)), watch, 99)

    assert asyncio.run(story())[1:] == [encoded(event(1))]


def test_what_is_not_for_the_reader_is_passed_over() -> None:
    history = History(event(1), event(2), event(3))
    history.hidden = {1, 2}
    _, told = asyncio.run(some(history, Watch(), 2))
    assert told == encoded(event(3))


def test_the_stream_ends_for_a_reader_who_may_read_no_more() -> None:
    async def story() -> list[bytes]:
        history = History(event(1))
        history.is_closed = True
        return [text async for text in stream(history.read, Watch(), after=0)]

    assert asyncio.run(story()) == [b"id: 0\nretry: 1000\n\n"]

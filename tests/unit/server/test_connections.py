"""A connection that goes beyond its bounds is closed, and costs no more than it took to see that."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from fairpool.server import connections
from fairpool.server.connections import MAX_AHEAD, MAX_HEAD_BYTES, Connection
from fairpool.server.passage import WHOLE
from tests.waiting import wait_until

CALL = b"GET /quick HTTP/1.1\r\nHost: x\r\n\r\n"
SLOW = b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n"


class App:
    """Answers its path; /slow waits until it is let go, /parted does so between its head and its body."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.whole: list[bool] = []
        self.go_on = threading.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.whole.append(scope.get(WHOLE, False))
        self.paths.append(scope["path"])
        if scope["path"] == "/slow":
            await asyncio.to_thread(self.go_on.wait, 20)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        if scope["path"] == "/parted":
            await asyncio.to_thread(self.go_on.wait, 20)
        await send({"type": "http.response.body", "body": b"ok"})


class Wire:
    """A transport that notes in which pieces bytes are given to the system."""

    pieces: list[bytes]

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport

    def write(self, data: bytes) -> None:
        self.pieces.append(data)
        self._transport.write(data)

    def writelines(self, parts: Iterable[bytes]) -> None:
        self.write(b"".join(parts))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Noted(Connection):
    """A connection over such a transport."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(Wire(transport))  # type: ignore[arg-type]


@contextmanager
def served(app: App, connection: type[Connection] = Connection) -> Iterator[int]:
    config = uvicorn.Config(app, port=0, http=connection, ws="none", lifespan="off", log_config=None, loop="uvloop")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        wait_until(lambda: server.started, what="the server to listen")
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        app.go_on.set()
        server.should_exit = True
        thread.join()


@pytest.fixture
def app() -> App:
    return App()


def told(port: int, *parts: bytes) -> bytes:
    """All that comes back on one connection, until it is closed from the other side."""

    async def story() -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            for part in parts:
                writer.write(part)
                await writer.drain()
            async with asyncio.timeout(20):
                return await reader.read()
        except ConnectionError:
            return b""
        finally:
            writer.close()

    return asyncio.run(story())


def test_a_few_calls_sent_ahead_are_answered_in_their_order(app: App) -> None:
    with served(app) as port:
        last = b"GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        assert told(port, CALL * 3 + last).count(b"200 OK") == 4
    assert app.paths == ["/quick"] * 3 + ["/last"]


def test_whoever_sends_many_calls_ahead_gets_the_answer_that_is_under_way_and_no_more(app: App) -> None:
    def let_go() -> None:
        wait_until(lambda: app.paths, what="the call")
        app.go_on.set()

    with served(app) as port:
        threading.Thread(target=let_go).start()
        answer = told(port, SLOW + CALL * 500)
    assert answer.count(b"200 OK") == 1
    assert app.paths == ["/slow"]
    assert MAX_AHEAD < 500


@pytest.mark.parametrize(
    "head",
    [
        b"GET /" + b"x" * MAX_HEAD_BYTES + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX-Large: " + b"x" * MAX_HEAD_BYTES + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n" + b"".join(b"X-%d: 1\r\n" % n for n in range(MAX_HEAD_BYTES // 4)) + b"\r\n",
    ],
)
def test_a_head_without_end_is_not_read(app: App, head: bytes) -> None:
    with served(app) as port:
        assert told(port, head) == b""
        assert told(port, CALL.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")).endswith(b"ok")
    assert app.paths == ["/quick"]


def test_a_head_that_does_not_come_to_an_end_is_not_waited_for(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_S", 0.2)
    with served(app) as port:
        assert told(port, b"GET / HTTP/1.1\r\nHost: x\r\n") == b""
        assert told(port) == b""
    assert app.paths == []


def test_the_head_of_a_later_call_is_not_waited_for_either(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_S", 0.2)
    with served(app) as port:
        assert told(port, CALL, b"GET / HTTP/1.1\r\nHo").count(b"200 OK") == 1
        assert told(port, CALL + b"GET / HTTP/1.1\r\nHo").count(b"200 OK") == 1


def test_a_call_says_whether_all_of_it_has_come(app: App) -> None:
    head = b"POST /%d HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nConnection: close\r\n\r\n"

    async def in_two_parts(port: int) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head % 2)
        await writer.drain()
        await asyncio.to_thread(wait_until, lambda: "/2" in app.paths, what="the head")
        writer.write(b"{}")
        writer.close()

    with served(app) as port:
        assert told(port, head % 1 + b"{}").endswith(b"ok")
        asyncio.run(in_two_parts(port))
    assert app.whole == [True, False]


def test_a_call_that_takes_long_is_not_cut_off_by_the_time_for_its_head(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEAD_S", 0.1)
    with served(app) as port:
        threading.Timer(0.4, app.go_on.set).start()
        assert told(port, SLOW.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")).endswith(b"ok")


def test_what_is_no_http_is_told_so_and_closed(app: App) -> None:
    with served(app) as port:
        assert told(port, b"\x16\x03\x01 hello\r\n\r\n").startswith(b"HTTP/1.1 400")


@pytest.fixture
def pieces(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    found: list[bytes] = []
    monkeypatch.setattr(Wire, "pieces", found, raising=False)
    return found


def test_an_answer_leaves_in_one_piece(app: App, pieces: list[bytes]) -> None:
    with served(app, Noted) as port:
        told(port, CALL + CALL.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    assert [(piece[:15], piece[-2:]) for piece in pieces] == [(b"HTTP/1.1 200 OK", b"ok")] * 2


def test_a_head_whose_body_takes_time_is_there_before_it(app: App, pieces: list[bytes]) -> None:
    def let_go() -> None:
        wait_until(lambda: pieces, what="the head")
        app.go_on.set()

    with served(app, Noted) as port:
        threading.Thread(target=let_go).start()
        answer = told(port, b"GET /parted HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert answer.endswith(b"\r\n\r\nok")
    assert pieces[1:] == [b"ok"]


def test_an_answer_without_a_body_leaves_as_well(app: App) -> None:
    with served(app) as port:
        last = b"HEAD /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        answer = told(port, CALL.replace(b"GET", b"HEAD") + last)
    assert answer.count(b"200 OK") == 2
    assert answer.endswith(b"\r\n\r\n")

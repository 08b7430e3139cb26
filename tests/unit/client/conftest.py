"""A server that answers what a test tells it to, over a real socket."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from fairpool.wire.problems import MEDIA_TYPE


@dataclass(frozen=True, kw_only=True)
class Call:
    """What the server was asked."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What it answers. hang_up: instead, the connection is closed without a word."""

    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    hang_up: bool = False


HANG_UP = Answer(hang_up=True)


def problem(status: int, slug: str, detail: str = "", **headers: str) -> Answer:
    """A refusal."""
    told = {"type": slug, "status": status, "detail": detail}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status=status, body=json.dumps(told).encode(), headers={"Content-Type": MEDIA_TYPE, **named})


class Scripted:
    """Gives its answers in turn, the last one again and again, and keeps what it was asked."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.connections = 0
        self._answers: deque[Answer] = deque([Answer()])
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def answers(self, *answers: Answer) -> None:
        """What it says from now on."""
        self._answers = deque(answers)

    def next(self) -> Answer:
        """The answer whose turn it is."""
        return self._answers.popleft() if len(self._answers) > 1 else self._answers[0]

    def close(self) -> None:
        """Listen no more."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _handler_of(scripted: Scripted) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            scripted.connections += 1

        def handle_one(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            scripted.calls.append(Call(method=self.command, path=self.path, headers=headers, body=body))
            answer = scripted.next()
            if answer.hang_up:
                self.close_connection = True
                return
            self.send_response(answer.status)
            for name, value in {"Content-Type": "application/json", **answer.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = handle_one  # noqa: N815 (its names there)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (its name there)
            """Tests read the calls instead."""

    return Handler


@pytest.fixture
def server() -> Iterator[Scripted]:
    """A server that answers `{}` until it is told otherwise."""
    scripted = Scripted()
    yield scripted
    scripted.close()

"""A listener on this machine's own address that a browser brings one answer to, and that then goes away."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from fairpool.client.errors import ClientError
from fairpool.wire import sign_in_page

_ONE_CALL_S: Final = 5
"""How long one connection may take: whoever connects and says nothing should not keep the browser out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the browser brought: a one-time code, or why there is none."""

    code: str = ""
    error: str = ""
    description: str = ""


class Loopback:
    """Listens until the answer to its own sign-in comes. Anything else that calls is told that there is nothing.

    finish: what follows from the answer; the page that it returns is what the browser shows. What it raises, `wait`
        raises, and the browser is told.
    """

    def __init__(self, finish: Callable[[Answer], str]) -> None:
        self.state = secrets.token_urlsafe(32)
        self.answer: Answer | None = None
        self._finish = finish
        self._failed: Exception | None = None
        self._server = _Server(("127.0.0.1", 0), _handler(self))

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._server.server_address[1])

    def wait(self, seconds: float) -> bool:
        """Whether the answer came before the time was over."""
        give_up_at = time.monotonic() + seconds
        while self.answer is None and (left := give_up_at - time.monotonic()) > 0:
            self._server.timeout = min(left, 1.0)  # so that Ctrl-C is heard
            self._server.handle_request()
        if self._failed is not None:
            raise self._failed
        return self.answer is not None

    def hear(self, target: str) -> Answer | None:
        """What a call says, if it is the answer to this sign-in: the first that comes."""
        parts = urlsplit(target)
        said = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path != "/" or not secrets.compare_digest(said.get("state", "").encode(), self.state.encode()):
            return None
        if self.answer is not None:
            return None
        told = {name: said.get(name, "") for name in ("code", "error")}
        self.answer = Answer(**told, description=said.get("error_description", ""))
        return self.answer

    def end(self, answer: Answer) -> str:
        """The page at the end of the sign-in."""
        try:
            return self._finish(answer)
        except Exception as error:  # noqa: BLE001 (`wait` raises it again)
            self._failed = error
            told = error if isinstance(error, ClientError) else ClientError("the program that waited for you failed")
            return sign_in_page.not_signed_in(told.message, hint=told.hint)

    def close(self) -> None:
        """Stop listening."""
        self._server.server_close()


@contextmanager
def listening(finish: Callable[[Answer], str]) -> Iterator[Loopback]:
    """A listener for the block. finish: as of `Loopback`."""
    loopback = Loopback(finish)
    try:
        yield loopback
    finally:
        loopback.close()


class _Server(HTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Says nothing: whoever calls may go away again, and this is the terminal of somebody who waits."""


def _handler(loopback: Loopback) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _ONE_CALL_S

        def do_GET(self) -> None:
            answer = loopback.hear(self.path)
            if answer is None:
                self._send(404, sign_in_page.nothing_here())
            else:
                self._send(200, loopback.end(answer))

        def _send(self, status: int, page: str) -> None:
            body = page.encode()
            self.send_response(status)
            for name, value in sign_in_page.HEADERS.items():
                self.send_header(name, value)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(body)
            self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (http.server's name)
            """Says nothing: the code stands in the address."""

    return Handler

"""A listener on this machine's own address that a browser brings one answer to, and that then goes away."""

from __future__ import annotations

import html
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

_PAGE: Final = (
    "<!doctype html><html lang=en><meta charset=utf-8><title>Fairpool</title>"
    "<body style='font-family:sans-serif;margin:4em auto;max-width:32em'><h1>{title}</h1><p>{text}</p></body></html>"
)
_ONE_CALL_S: Final = 5
"""How long one connection may take: whoever connects and says nothing should not keep the browser out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the browser brought: a one-time code, or why there is none."""

    code: str = ""
    error: str = ""
    description: str = ""


class Loopback:
    """Listens until the answer to its own sign-in comes. Anything else that calls is told that there is nothing."""

    def __init__(self) -> None:
        self.state = secrets.token_urlsafe(32)
        self.answer: Answer | None = None
        self._server = HTTPServer(("127.0.0.1", 0), _handler(self))

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._server.server_address[1])

    def wait(self, seconds: float) -> Answer | None:
        """The answer, or None when the time is over."""
        give_up_at = time.monotonic() + seconds
        while self.answer is None and (left := give_up_at - time.monotonic()) > 0:
            self._server.timeout = min(left, 1.0)  # so that Ctrl-C is heard
            self._server.handle_request()
        return self.answer

    def hear(self, target: str) -> Answer | None:
        """What a call says, if it is the answer to this sign-in."""
        parts = urlsplit(target)
        said = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path != "/" or not secrets.compare_digest(said.get("state", "").encode(), self.state.encode()):
            return None
        if self.answer is None:
            told = {name: said.get(name, "") for name in ("code", "error")}
            self.answer = Answer(**told, description=said.get("error_description", ""))
        return self.answer

    def close(self) -> None:
        """Stop listening."""
        self._server.server_close()


@contextmanager
def listening() -> Iterator[Loopback]:
    """A listener for the block."""
    loopback = Loopback()
    try:
        yield loopback
    finally:
        loopback.close()


def _handler(loopback: Loopback) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _ONE_CALL_S

        def do_GET(self) -> None:
            answer = loopback.hear(self.path)
            if answer is None:
                self._send(404, "Nothing here", "This page belongs to a sign-in that is over, or to none.")
            elif answer.code:
                self._send(200, "You are signed in", "Close this window and go back to the terminal.")
            else:
                told = answer.description or answer.error or "the server sent no code"
                self._send(200, "You are not signed in", told + ". The terminal says what to do.")

        def _send(self, status: int, title: str, text: str) -> None:
            body = _PAGE.format(title=html.escape(title), text=html.escape(text)).encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.send_header("Referrer-Policy", "no-referrer")
            self.send_header("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(body)
            self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (http.server's name)
            """Says nothing: the code stands in the address."""

    return Handler

"""A proxy before a server, for what can go wrong with connections: a test says what happens to those it passes on."""

from __future__ import annotations

import socket
import threading
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Protocol

import urllib3

_AT_ONCE = 1 << 16


class Line(Protocol):
    """One connection that is passed on."""

    def asked(self, data: bytes) -> None:
        """The caller has sent this; the server gets it next."""

    def answered(self, data: bytes) -> tuple[bytes, bool]:
        """What the caller gets of this, and whether the connection goes on after that."""


class Proxy(ABC):
    """Passes connections on to a server of this machine. url: where it listens itself."""

    def __init__(self, server: str) -> None:
        self.lead_to(server)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    @abstractmethod
    def line(self) -> Line:
        """What happens to the next connection."""

    def lead_to(self, server: str) -> None:
        """Pass connections on to the server of that URL from now on."""
        self._port = urllib3.util.parse_url(server).port or 0

    def close(self) -> None:
        """Take no connections any more."""
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                caller, _ = self._listening.accept()
                threading.Thread(target=self._pass_on, args=(caller, self.line()), daemon=True).start()

    def _pass_on(self, caller: socket.socket, line: Line) -> None:
        with caller, suppress(OSError), socket.create_connection(("127.0.0.1", self._port), timeout=90) as server:
            threading.Thread(target=_ask, args=(caller, server, line), daemon=True).start()
            goes_on = True
            while goes_on and (data := server.recv(_AT_ONCE)):
                passed, goes_on = line.answered(data)
                caller.sendall(passed)
            caller.shutdown(socket.SHUT_RDWR)
            server.shutdown(socket.SHUT_RDWR)


def _ask(caller: socket.socket, server: socket.socket, line: Line) -> None:
    with suppress(OSError):
        while data := caller.recv(_AT_ONCE):
            line.asked(data)
            server.sendall(data)
        server.shutdown(socket.SHUT_RDWR)

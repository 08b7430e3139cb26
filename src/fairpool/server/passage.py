"""One call on its way through the server: its id, when it arrived, when its answer began, and how."""

from __future__ import annotations

import time
from typing import Final

from starlette.types import Message, Scope, Send

from fairpool.server.access_log import HEADER, request_id

BEGAN: Final = "fairpool.began"
"""In the scope of a call: when it arrived, by time.perf_counter."""

WAITED: Final = "fairpool.waited_s"
"""In the scope of a call: how long it has waited because its caller asked it to, in seconds."""


WHOLE: Final = "fairpool.whole"
"""In the scope of a call: set once all of it has arrived, so that reading its body waits for nothing."""


def header(scope: Scope, name: bytes) -> str | None:
    """What the header of that name, in small letters, says first; None where it is not there."""
    for key, value in scope["headers"]:
        if key == name:
            return str(value, "latin-1")
    return None


class Passage:
    """One call on its way: its id, and when and how its answer began."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self.id = request_id(scope)
        # Where the call is passed on to another server, it keeps its id there.
        others = [pair for pair in scope["headers"] if pair[0] != HEADER]
        scope["headers"] = [*others, (HEADER, self.id.encode())]
        self.status = 0
        self._scope = scope
        self._send = send
        self._began = scope[BEGAN] = time.perf_counter()
        self._answered: float | None = None

    async def send(self, message: Message) -> None:
        """Pass on what the application says; every answer carries the id of its call."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self._answered = time.perf_counter()
            others = [pair for pair in message.get("headers", ()) if pair[0] != HEADER]
            message = {**message, "headers": [*others, (HEADER, self.id.encode())]}
        await self._send(message)

    def took_s(self) -> float:
        """From the call's arrival to the beginning of its answer, without what the caller asked to wait."""
        until = time.perf_counter() if self._answered is None else self._answered
        return max(0.0, until - self._began - float(self._scope.get(WAITED, 0.0)))

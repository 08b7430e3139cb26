"""A connection with bounds: how long a call may take to be said, how much its head may hold, how many are said ahead.

The parser beneath has none of these. Without them a client that never asks for an answer could keep the server busy
with reading, and one that says a header a minute could keep a connection for ever.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from fairpool.server.passage import WHOLE

HEAD_S: Final = 20.0
"""From the first letter of a call to the end of its head; also from connecting to the first call."""

MAX_HEAD_BYTES: Final = 64 * 2**10
"""Of the address and all headers of a call."""

MAX_AHEAD: Final = 4
"""Calls that a client may send on one connection before their turn comes. Ordinary clients wait for each answer."""


class Misused(Exception):
    """A client goes beyond a bound: nothing more that it sends is read."""


class _Outward:
    """What answers are written to. The head of an answer waits for its body, which comes before the loop's next turn:
    one piece costs one call of the system, and wakes its reader once."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held = b""
        self._turn: asyncio.Handle | None = None

    def write(self, data: bytes) -> None:
        """Send these bytes, in this turn of the loop or the next."""
        if self._held:
            held, self._held = self._held, b""
            self._transport.writelines((held, data))
            return
        self._held = data
        if self._turn is None:
            self._turn = self._loop.call_soon(self._turns)

    def close(self) -> None:
        """Send what waits, then close the connection."""
        self._flush()
        self._transport.close()

    def is_closing(self) -> bool:
        """See asyncio's."""
        return self._transport.is_closing()

    def _turns(self) -> None:
        self._turn = None
        self._flush()

    def _flush(self) -> None:
        held, self._held = self._held, b""
        if held and not self._transport.is_closing():
            self._transport.write(held)


class Connection(HttpToolsProtocol):
    """See uvicorn's."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._in_head = False
        self._head_bytes = 0
        self._misused = False
        self._patience: asyncio.TimerHandle | None = None
        self._running: RequestResponseCycle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See uvicorn's."""
        super().connection_made(transport)
        self._outward = _Outward(transport, self.loop)
        self._begin_to_wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """See uvicorn's."""
        self._end_of_waiting()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """A call begins."""
        super().on_message_begin()
        self._in_head, self._head_bytes = True, 0
        self._end_of_waiting()

    def on_url(self, url: bytes) -> None:
        """A part of the address."""
        self._head_bytes += len(url)
        if self._head_bytes > MAX_HEAD_BYTES:
            self._refuse()
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header."""
        self._head_bytes += len(name) + len(value)
        if self._head_bytes > MAX_HEAD_BYTES:
            self._refuse()
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head of a call is there."""
        self._in_head = False
        self._end_of_waiting()
        if len(self.pipeline) >= MAX_AHEAD:
            self._end_with_this_call()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """All of a call is there."""
        super().on_message_complete()
        self.scope[WHOLE] = True  # type: ignore[typeddict-unknown-key]

    def data_received(self, data: bytes) -> None:
        """See uvicorn's."""
        if self._misused:
            return
        super().data_received(data)
        # Most heads come whole, and need no waiting for.
        if self._in_head and self._patience is None:
            self._begin_to_wait()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        cycle.transport = self._outward  # type: ignore[assignment]  # all of a transport that an answer needs
        super()._start_asgi_task(cycle, app)

    def send_400_response(self, msg: str) -> None:
        """What cannot be read is told so, unless its sender has lost the right to an answer."""
        if not self._misused:
            super().send_400_response(msg)

    def _refuse(self) -> None:
        self._misused = True
        self.transport.abort()
        raise Misused  # ends the parsing of whatever else has arrived

    def _end_with_this_call(self) -> None:
        """Read nothing more, and close once the call that is under way is answered: not before, since who is cut off at
        once comes back at once."""
        self._misused = True
        self.flow.pause_reading()
        self.pipeline.clear()
        if self._running is not None:
            self._running.keep_alive = False
        raise Misused

    def _begin_to_wait(self) -> None:
        self._patience = self.loop.call_later(HEAD_S, self.transport.abort)

    def _end_of_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

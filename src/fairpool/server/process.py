"""Running the application under uvicorn until it is told to stop, or until nobody has needed it for a while."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import time
from collections.abc import Callable, Iterator

import uvicorn
from starlette.types import ASGIApp

from fairpool.server import warming
from fairpool.server.connections import Connection
from fairpool.server.services import Services

log = logging.getLogger(__name__)

GRACEFUL_STOP_S = 10
"""How long calls that are under way may take to finish after the server was told to stop."""

_HAND_OVER_S = 1.0
"""How long after that another server must wait to decide, for calls that were already under way here."""

_BACKLOG = 2048
"""Connections that may wait to be accepted: a thousand steps of one run may call at once."""


class Process(uvicorn.Server):
    """One server process.

    on_ready: called once the server takes calls. idle_s: stop when nobody called for so long and nothing is queued,
    allocated or running; None for never.
    """

    def __init__(
        self, app: ASGIApp, services: Services, *, on_ready: Callable[[], None], idle_s: float | None = None
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                loop="uvloop",
                http=Connection,
                ws="none",
                lifespan="off",
                access_log=False,
                log_config=None,
                server_header=False,
                proxy_headers=False,
                backlog=_BACKLOG,
                timeout_graceful_shutdown=GRACEFUL_STOP_S,
                # A client that keeps its connection open and calls every 15 s should find it open.
                timeout_keep_alive=75,
            )
        )
        self._services = services
        self._on_ready = on_ready
        self._idle_s = idle_s
        self._idle_watch: asyncio.Task[None] | None = None
        self._warming: asyncio.Task[None] | None = None

    def run_on(self, listening: socket.socket) -> None:
        """Serve on that socket until stopped. Leaves signals alone afterwards, so that the caller can tidy up."""
        with asyncio.Runner(loop_factory=self.config.get_loop_factory()) as runner:
            runner.run(self.serve(sockets=[listening]))

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop gracefully on SIGTERM and SIGINT, and do not raise them again afterwards as uvicorn would."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        try:
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)
                # Whoever asks twice should not cut the tidying up short.
                signal.signal(number, signal.SIG_IGN)

    def stop(self) -> None:
        """Begin to stop: take no new calls, let those under way finish, wake those that wait."""
        if self.should_exit:
            self.force_exit = True
        self.should_exit = True
        self._services.workspaces.close()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to take calls, then say so."""
        self._services.workspaces.attach(asyncio.get_running_loop())
        self._services.forwarding.attach(asyncio.get_running_loop())
        await super().startup(sockets=sockets)
        if self.started:
            self._on_ready()
            self._warming = asyncio.create_task(asyncio.to_thread(warming.warm))
        if self._idle_s is not None:
            self._idle_watch = asyncio.create_task(self._stop_when_idle(self._idle_s))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finish what is under way, and let another server decide as soon as that is done."""
        self._services.workspaces.close()
        if self._idle_watch is not None:
            self._idle_watch.cancel()
        handing_over = asyncio.create_task(self._hand_over())
        await super().shutdown(sockets=sockets)
        await handing_over
        await self._services.forwarding.close()

    async def _hand_over(self) -> None:
        give_up_at = time.monotonic() + _HAND_OVER_S
        while self._services.metrics.under_way and time.monotonic() < give_up_at:  # noqa: ASYNC110 (nothing announces it)
            await asyncio.sleep(0.01)
        await asyncio.to_thread(self._services.workspaces.hand_over)

    async def _stop_when_idle(self, idle_s: float) -> None:
        while True:
            await asyncio.sleep(min(idle_s / 4, 30))
            quiet_s = time.monotonic() - self._services.metrics.last_call
            if self._services.metrics.under_way == 0 and quiet_s >= idle_s and not self._services.has_work():
                log.info("nothing to do for %.0f s: stopping", quiet_s)
                self.stop()
                return

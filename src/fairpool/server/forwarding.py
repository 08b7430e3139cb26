"""Calls that need the scheduler, passed on to the server that is it.

A call goes on as it came: method, path, query, body, and the headers that mean something. The leader lets the caller in
by the token that let it in here. A call goes on once: who gets one that it cannot answer either says so, and nothing
circles. Where the leader goes away the caller is told to ask again; what became of the call nobody knows then, and its
idempotency key tells.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

import aiohttp
from starlette.responses import Response
from starlette.types import Scope
from yarl import URL

from fairpool.server.failures import not_leading
from fairpool.server.vouching import HOP, Vouching, was_passed_on
from fairpool.wire.routes import ROUTES

log = logging.getLogger(__name__)

_PASSED_ON: Final = frozenset(
    {
        b"authorization",
        b"accept",
        b"content-type",
        b"content-encoding",
        b"fairpool-workspace",
        b"idempotency-key",
        b"if-match",
        b"last-event-id",
        b"prefer",
        b"traceparent",
        b"user-agent",
        b"x-request-id",
    }
)
_OWN: Final = frozenset({"connection", "content-length", "date", "keep-alive", "server", "transfer-encoding"})
"""Headers of an answer that belong to one connection; the others are passed back."""

_CONNECT_S: Final = 2.0
_ANSWER_S: Final = 30.0
"""How long a leader may take for a call that does not wait; one that has died is noticed by its lease, long before."""

_CONNECTIONS: Final = 2048
"""As many as may call at once: each long poll keeps one."""

_KEEP_ALIVE_S: Final = 60.0
"""A little less than servers keep a connection open, so that it is not closed under a call."""


class Forwarding:
    """Passes calls on. For the event loop's thread, but for `leader_changed`. address: where this server is found.
    vouching: tells the leader for whom."""

    def __init__(self, address: str = "", vouching: Vouching | None = None) -> None:
        self.vouching = vouching or Vouching()
        self._address = address
        self._loop: asyncio.AbstractEventLoop | None = None
        self._session: aiohttp.ClientSession | None = None
        self._under_way: dict[asyncio.Timeout, tuple[str, str]] = {}
        self._introducing: set[asyncio.Task[None]] = set()

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Say on which loop calls are answered."""
        self._loop = loop

    async def close(self) -> None:
        """Close the kept connections."""
        if self._session is not None:
            await self._session.close()

    def introduce(self, authorization: bytes, *, leader: str) -> None:
        """Have the leader see a token that was used here, so that it notes when; returns at once. On the loop's thread.
        Where that fails, the next use tells."""
        if leader and leader != self._address:
            task = asyncio.get_running_loop().create_task(self._introduce(authorization, leader))
            self._introducing.add(task)
            task.add_done_callback(self._introducing.discard)

    async def _introduce(self, authorization: bytes, leader: str) -> None:
        headers = {"Authorization": authorization.decode("latin-1")}
        try:
            async with (
                asyncio.timeout(_CONNECT_S + _ANSWER_S),
                self._connections().get(leader + ROUTES["whoami"].url(), headers=headers, allow_redirects=False),
            ):
                pass
        except (aiohttp.ClientError, TimeoutError) as error:
            log.debug("the leader at %s was not told of a token's use: %s", leader, error)

    def leader_changed(self, workspace: str, address: str) -> None:
        """Give up the workspace's calls that another server was to answer: it may hang for as long as it likes. From
        any thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._cut_off, workspace, address)

    def _cut_off(self, workspace: str, address: str) -> None:
        now = asyncio.get_running_loop().time()
        for limit, (concerned, asked) in self._under_way.items():
            if concerned == workspace and asked != address:
                limit.reschedule(now)

    async def forward(self, scope: Scope, body: bytes, *, workspace: str, leader: str, wait_s: float) -> Response:
        """What the server at `leader` answers. Raises Refused where there is none, or it cannot be reached.

        wait_s: for how long the caller lets itself be kept waiting.
        """
        if was_passed_on(scope):
            raise not_leading("the server that was asked on behalf of another does not decide any more")
        if not leader:
            raise not_leading("no server decides at the moment")
        if leader == self._address:  # for seconds that of a server that was here before; for long, that of another
            raise not_leading(
                f"the server that decides says that it is found at {leader}, which is this server's own address; if "
                "that lasts, give each server an address of its own (FAIRPOOL_ADVERTISE)"
            )
        try:
            async with asyncio.timeout(_CONNECT_S + _ANSWER_S + wait_s) as limit:
                self._under_way[limit] = workspace, leader
                try:
                    return await self._ask(scope, leader, body)
                finally:
                    del self._under_way[limit]
        except aiohttp.ClientConnectorError as error:
            log.warning("the leader at %s cannot be reached: %s", leader, error)
            raise not_leading("the server that decides cannot be reached; nothing was changed") from None
        except (aiohttp.ClientError, TimeoutError) as error:
            log.warning("no answer from the leader at %s: %s", leader, str(error) or type(error).__name__)
            raise not_leading("the server that decides went away before it answered") from None

    async def _ask(self, scope: Scope, leader: str, body: bytes) -> Response:
        headers = [
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"] if name in _PASSED_ON
        ]
        target = leader + scope["raw_path"].decode("ascii")
        if scope["query_string"]:
            target += "?" + scope["query_string"].decode("ascii")
        async with self._connections().request(
            scope["method"],
            URL(target, encoded=True),
            data=body or None,
            headers=[*headers, (HOP.decode(), self.vouching.word(scope, by=self._address))],
            allow_redirects=False,
        ) as answer:
            passed_back = {name: value for name, value in answer.headers.items() if name.lower() not in _OWN}
            return Response(await answer.read(), status_code=answer.status, headers=passed_back)

    def _connections(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=_CONNECTIONS, keepalive_timeout=_KEEP_ALIVE_S),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S),
                cookie_jar=aiohttp.DummyCookieJar(),
                skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
                auto_decompress=False,
            )
        return self._session

"""One call to a receiver: signed, not redirected, and over in a bounded time."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Final

import aiohttp

from fairpool.core.errors import InvalidInput
from fairpool.server.webhooks.messages import Message, signature
from fairpool.server.webhooks.targets import GuardedResolver, NotAllowedThere, check_url

ANSWER_S: Final = 15.0
"""How long a receiver may take. Whoever has more to do answers first and does it then."""

_CONNECT_S: Final = 5.0
_READ_BYTES: Final = 64 * 2**10
"""How much of an answer is read, so that the connection can be used again; what it says does not matter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a call ended. status: the receiver's, where it answered. gone: it wants to hear nothing more (410)."""

    delivered: bool
    status: int | None = None
    detail: str = ""
    took_s: float = 0
    gone: bool = False


class Sender:
    """Calls receivers. On one event loop. agent: as whom it calls."""

    def __init__(self, *, allow_private: bool, agent: str) -> None:
        self._allow_private = allow_private
        self._agent = agent
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close the kept connections."""
        if self._session is not None:
            await self._session.close()

    async def send(self, url: str, secret: str, message: Message) -> Outcome:
        """Call the receiver once."""
        began = time.monotonic()
        try:
            check_url(url, allow_private=self._allow_private)
            status = await self._post(url, secret, message)
        except InvalidInput as error:
            return Outcome(delivered=False, detail=error.message)
        except (aiohttp.ClientError, OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            return Outcome(delivered=False, detail=_why(error), took_s=time.monotonic() - began)
        took_s = time.monotonic() - began
        if 200 <= status < 300:
            return Outcome(delivered=True, status=status, took_s=took_s)
        detail = f"it answered {status}" + (": redirects are not followed" if 300 <= status < 400 else "")
        return Outcome(delivered=False, status=status, detail=detail, took_s=took_s, gone=status == 410)

    async def _post(self, url: str, secret: str, message: Message) -> int:
        sent_at_s = int(time.time())
        headers = {
            "Content-Type": "application/json",
            "User-Agent": self._agent,
            "webhook-id": message.id,
            "webhook-timestamp": str(sent_at_s),
            "webhook-signature": signature(secret, message, sent_at_s),
        }
        async with self._open().post(url, data=message.body, headers=headers, allow_redirects=False) as answer:
            await answer.content.read(_READ_BYTES)
            return answer.status

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                # No limit over all receivers: those that hang must not take the others' connections.
                connector=aiohttp.TCPConnector(
                    limit=0, resolver=GuardedResolver(allow_private=self._allow_private), use_dns_cache=False
                ),
                timeout=aiohttp.ClientTimeout(total=ANSWER_S, sock_connect=_CONNECT_S),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
                max_line_size=8190,
            )
        return self._session


def _why(error: BaseException) -> str:
    """What went wrong, without the address."""
    if isinstance(error, TimeoutError):
        return f"no answer within {ANSWER_S:g} s"
    inner: BaseException | None = error
    while inner is not None:
        if isinstance(inner, NotAllowedThere):
            return str(inner)
        inner = inner.__cause__ or getattr(inner, "os_error", None)
    if isinstance(error, aiohttp.ClientSSLError):
        return "its certificate is not trusted"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "its name has no address"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"it cannot be reached: {error.os_error.strerror or 'no connection'}"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "it closed the connection without an answer"
    return f"the call failed: {type(error).__name__}"

"""The body of a call: bounded in size, in what it holds and in time, and parsed where nobody waits for that."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Final, TypeVar

from starlette.requests import Request

from fairpool.server.passage import WHOLE, header
from fairpool.server.problems import Refused
from fairpool.wire.problems import Slug
from fairpool.wire.reading import quoted
from fairpool.wire.text import MalformedText, loads

Found = TypeVar("Found")

BODY_S: Final = 60.0
"""How long a body may take to come, whole."""

MAX_VALUES: Final = 500_000
"""Values in one body: ten thousand requests with labels. Making them takes time, however few bytes each is."""

_AT_ONCE: Final = 2**15
"""Bytes that are parsed between two calls. What is larger is parsed on a thread of its own, one body at a time."""

_DRAINED_BYTES: Final = 64 * 2**20
"""How much of a body that is too large is read and thrown away, so that its sender reads the refusal at all."""


class SentBody:
    """The body of one call. limit: bytes that are read. lane: where large ones wait for each other."""

    def __init__(self, request: Request, *, limit: int, lane: asyncio.Lock) -> None:
        self._request = request
        self._limit = limit
        self._lane = lane
        self._read: bytes | None = None

    async def whole(self) -> bytes:
        """The body as it came; read once. Raises Refused for one that is too large, or takes too long."""
        if self._read is None and self._request.scope.get(WHOLE):
            self._read = await self._received()
        if self._read is None:
            try:
                async with asyncio.timeout(BODY_S):
                    self._read = await self._received()
            except TimeoutError:
                raise Refused(
                    Slug.MALFORMED,
                    f"the body did not come within {BODY_S:g} s",
                    headers={"Connection": "close"},
                ) from None
        return self._read

    async def read(self, make: Callable[[object], Found]) -> tuple[object, Found]:
        """The JSON value that it is, and what is made of it. Raises Refused, and what `make` raises."""
        data = await self.whole()
        self._check_media()
        values = sum(map(data.count, (b",", b"[", b"{")))
        if values > MAX_VALUES:
            raise Refused(
                Slug.TOO_LARGE,
                f"the body holds more than {MAX_VALUES} values",
                guidance="send fewer items at once",
                numbers={"limit": MAX_VALUES, "size": values},
            )
        try:
            if len(data) <= _AT_ONCE:
                return _parsed(data, make)
            async with self._lane:
                return await asyncio.to_thread(_parsed, data, make)
        except MalformedText as error:
            raise Refused(
                Slug.MALFORMED,
                f"line {error.line}, column {error.column}: {error.message}",
                numbers={"line": error.line, "column": error.column},
            ) from None

    def _check_media(self) -> None:
        scope = self._request.scope
        packing = header(scope, b"content-encoding") or "identity"
        told = _unreadable((header(scope, b"content-type") or "application/json").lower())
        if not told and packing.lower() != "identity":
            told = f"a body that is packed with {quoted(packing)} is not read here"
        if told:
            guidance = "send JSON in UTF-8, not packed, with 'Content-Type: application/json'"
            raise Refused(Slug.MEDIA, told, guidance=guidance)

    async def _received(self) -> bytes:
        limit = self._limit
        declared = header(self._request.scope, b"content-length") or ""
        size = int(declared) if declared.isdigit() and len(declared) < 16 else 0
        parts: list[bytes] = []
        seen, more = 0, True
        while more and (seen <= limit or seen <= _DRAINED_BYTES):
            message = await self._request.receive()
            if message["type"] == "http.disconnect":
                raise Refused(Slug.MALFORMED, "the body ended early")
            chunk, more = message.get("body", b""), message.get("more_body", False)
            seen += len(chunk)
            if max(seen, size) <= limit:
                parts.append(chunk)
        if max(seen, size) > limit:
            raise Refused(
                Slug.TOO_LARGE,
                f"the body has {'more than ' if seen > size else ''}{max(seen, size)} bytes; at most {limit} are read",
                guidance="send fewer items at once",
                numbers={"limit": limit, "size": max(seen, size)},
            )
        return b"".join(parts)


def _unreadable(kind: str) -> str:
    """Why a body of that ``Content-Type`` is not read; "" where it is."""
    if kind == "application/json":
        return ""
    media, _, rest = kind.partition(";")
    charset = re.search(r'charset="?([^";\s]*)', rest)
    if media.strip() not in ("application/json", "application/merge-patch+json"):
        return f"a body of type {quoted(media.strip())} is not read here"
    if charset is not None and charset[1] not in ("utf-8", "utf8", "us-ascii"):
        return f"a body in {quoted(charset[1])} is not read here"
    return ""


def _parsed(data: bytes, make: Callable[[object], Found]) -> tuple[object, Found]:
    sent = loads(data)
    return sent, make(sent)

"""Calling an ASGI application in process, as a server would."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp, Message

TOKEN = "the-token"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def ask(
    app: ASGIApp,
    method: str,
    path: str,
    *,
    body: bytes | object = b"",
    query: str = "",
    headers: Mapping[str, str] | None = None,
    again: Mapping[str, str] | None = None,
) -> Answer:
    """One call and its answer. A body that is not bytes is sent as JSON. again: headers that are sent besides."""
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = {"host": "127.0.0.1:80", "authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
    given |= {name.lower(): value for name, value in (headers or {}).items()}
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "scheme": "http",
        "query_string": query.encode(),
        "headers": [
            (name.encode(), value.encode("latin-1"))
            for name, value in (*given.items(), *(again or {}).items())
            if value
        ],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    messages: list[Message] = []
    waiting: list[Message] = [{"type": "http.request", "body": sent, "more_body": False}]

    async def receive() -> Message:
        return waiting.pop(0) if waiting else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        messages.append(message)

    asyncio.run(_call(app, scope, receive, send))
    start = messages[0]
    found = {name.decode(): value.decode() for name, value in start["headers"]}
    return Answer(start["status"], found, b"".join(message.get("body", b"") for message in messages[1:]))


async def _call(app: ASGIApp, *arguments: Any) -> None:
    await app(*arguments)

"""A real server process with a real database file, and calls to it over a real socket."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import urllib3

from fairpool.wire import local_server
from fairpool.wire.routes import API
from tests.waiting import wait_until


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def etag(self) -> str:
        return self.headers["etag"]


class Caller:
    """Calls one server; paths are below the API's root unless they begin with two slashes."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self.token = token
        self.pool = urllib3.PoolManager(maxsize=64, retries=False, timeout=90)

    def __call__(
        self, method: str, path: str, body: object = None, *, headers: Mapping[str, str] | None = None
    ) -> Answer:
        sent: bytes | None = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        given = {"Authorization": f"Bearer {self.token}"} | ({"Content-Type": "application/json"} if sent else {})
        where = path[1:] if path.startswith("//") else API + path
        answer = self.pool.request(method, self.url + where, body=sent, headers=given | dict(headers or {}))
        return Answer(answer.status, {name.lower(): value for name, value in answer.headers.items()}, answer.data)

    def ok(self, method: str, path: str, body: object = None, *, headers: Mapping[str, str] | None = None) -> Any:
        """As a call, and fails unless it succeeds; the JSON of the answer."""
        answer = self(method, path, body, headers=headers)
        assert answer.status < 300, (method, path, answer.status, answer.body.decode())
        return answer.json if answer.body else None


@contextmanager
def serving(directory: Path, *arguments: str) -> Iterator[Caller]:
    """The folder's server, started for the block and stopped after it."""
    caller = begin(directory, *arguments)
    try:
        yield caller
    finally:
        end(directory)


def begin(directory: Path, *arguments: str) -> Caller:
    """Start the folder's server and return what calls it."""
    found = local_server.start(directory, *arguments)
    token = local_server.read_token(directory)
    assert token is not None
    return Caller(found.url, token)


def end(directory: Path, number: signal.Signals = signal.SIGTERM) -> None:
    """End the folder's server with that signal, and wait until it is gone."""
    found = local_server.find(directory)
    if found is None:
        return
    os.kill(found.pid, number)
    wait_until(lambda: not local_server.is_alive(directory), what="the server to end")

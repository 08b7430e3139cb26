"""How the SDK reaches a server: the one that is configured, or a local one that is started when it is needed."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import urllib3
from pydantic import ValidationError

from fairpool.sdk import console
from fairpool.sdk.api import Api
from fairpool.sdk.errors import Refused, Unreachable
from fairpool.wire import local_server
from fairpool.wire.problems import Problem
from fairpool.wire.routes import ROUTES

SERVER_ENV: Final = "FAIRPOOL_SERVER"
TOKEN_ENV: Final = "FAIRPOOL_TOKEN"  # noqa: S105 (the variable's name)
TRY_AGAIN: Final = frozenset({429, 502, 503, 504, 507})
"""Statuses that say nothing of the call itself: too much to do, starting, no room on the disk for now."""

CONNECT_S: Final = 5.0
ANSWER_S: Final = 60.0
SILENCE_S: Final = 45.0
"""The server says something at least every 15 seconds on a stream; silence for so long means that it is gone."""


class Connection:
    """Calls by the name of their route. Safe to use from several threads."""

    def __init__(self, url: str | None = None, token: str | None = None) -> None:
        self._configured = url
        self._token = token
        self._url = url
        self._lock = threading.Lock()
        self._pool = urllib3.PoolManager(maxsize=8, retries=False)

    def call(
        self, route: str, body: str | None = None, *, query: Mapping[str, str] | None = None, **parameters: str
    ) -> bytes:
        """The answer's body. Raises Unreachable or Refused."""
        response = self._request(route, body, query or {}, parameters, stream=False)
        return bytes(response.data)

    def stream(self, route: str, *, query: Mapping[str, str]) -> Iterator[bytes]:
        """The data of server-sent events; returns once the server has begun to answer."""
        return _data_of_events(self._request(route, None, query, {}, stream=True))

    def _request(
        self, route: str, body: str | None, query: Mapping[str, str], parameters: dict[str, str], *, stream: bool
    ) -> urllib3.BaseHTTPResponse:
        found = ROUTES[route]
        url, token = self._server()
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            response = self._pool.request(
                found.method,
                url + found.url(**parameters),
                body=body,
                fields=dict(query) or None,
                headers=headers,
                preload_content=not stream,
                timeout=urllib3.Timeout(connect=CONNECT_S, read=SILENCE_S if stream else ANSWER_S),
            )
        except urllib3.exceptions.HTTPError as error:
            self._forget()
            raise Unreachable(
                f"the server at {url} does not answer ({type(error).__name__}); fairpool doctor"
            ) from error
        if response.status >= 400:
            raise _refusal(response)
        return response

    def _server(self) -> tuple[str, str | None]:
        """Where the server is, and what it wants to see; a local one is started where none is configured."""
        with self._lock:
            if self._configured is not None:
                return self._configured.rstrip("/"), self._token
            folder = local_server.data_dir()
            if self._url is None:
                found = local_server.find(folder)
                if found is None:
                    try:
                        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                        found = local_server.start(folder)
                    except (local_server.NotStarted, OSError) as error:
                        raise Unreachable(
                            f"no server is configured, and a local one does not start: {error}"
                        ) from error
                    console.note(f"started a local server at {found.url} (fairpool server stop ends it)")
                self._url, self._token = found.url.rstrip("/"), local_server.read_token(folder)
            return self._url, self._token

    def _forget(self) -> None:
        """The local server may have been started again elsewhere."""
        with self._lock:
            self._url = None


def _start(folder: Path) -> local_server.ServerFile:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        found = local_server.start(folder)
    except (local_server.NotStarted, OSError) as error:
        raise Unreachable(f"no server is configured, and a local one does not start: {error}") from error
    console.say(f"started a local server at {found.url} (fairpool server stop ends it)")
    return found


def _refusal(response: urllib3.BaseHTTPResponse) -> Refused | Unreachable:
    data = response.data if response.data else response.read()
    try:
        problem = Problem.model_validate_json(data)
        text = problem.detail or problem.title or problem.type
        details = "; ".join(f"{wrong.field}: {wrong.message}" for wrong in problem.errors)
        text = f"{text} ({details})" if details and details not in text else text
        text = f"{text}; {problem.help}" if problem.help else text
    except ValidationError:
        text = f"the server answered with status {response.status}"
    if response.status in TRY_AGAIN:
        return Unreachable(text)
    return Refused(text, code=response.status)


def _data_of_events(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    rest = b""
    try:
        for chunk in response.stream(65_536, decode_content=True):
            *blocks, rest = (rest + chunk).split(b"\n\n")
            for block in blocks:
                data = b"\n".join(line[5:].strip() for line in block.split(b"\n") if line.startswith(b"data:"))
                if data:
                    yield data
    except urllib3.exceptions.HTTPError as error:
        raise Unreachable(f"the stream of events broke ({type(error).__name__})") from error
    finally:
        response.release_conn()


def connect() -> Api:
    """The server that the environment names, or the local one."""
    from fairpool.sdk.http_api import HttpApi

    return HttpApi(Connection(os.environ.get(SERVER_ENV) or None, os.environ.get(TOKEN_ENV) or None))

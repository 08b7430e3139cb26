"""HTTP calls over kept-alive connections: retried only where that is safe, refusals as `Problem`."""

from __future__ import annotations

import copy
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.client import BadStatusLine
from typing import TypeVar
from uuid import uuid4

import urllib3
from pydantic import BaseModel
from urllib3.exceptions import HTTPError, LocationParseError

from fairpool.client.errors import NotUnderstood, Problem, Unreachable, WrongSetting
from fairpool.client.patience import RETRIES, Patience
from fairpool.wire.problems import MEDIA_TYPE, Slug
from fairpool.wire.problems import Problem as Document
from fairpool.wire.reading import printable
from fairpool.wire.routes import ROUTES, WORKSPACE_HEADER
from fairpool.wire.text import loads

View = TypeVar("View", bound=BaseModel)
Query = Mapping[str, str | int | float | bool | Sequence[str] | None]

CONNECT_S = 5.0
READ_S = 30.0
SAID_AFTER_S = 1.0
"""After so long a wait it is said that the server is being waited for."""

_RETRIED_STATUS = frozenset({429, 502, 503, 504})
_DID_NOTHING = frozenset({Slug.OVERLOADED, Slug.TOO_MANY})
"""Refusals before anything was done: whatever was asked can be asked again."""
_ONCE = frozenset({"sign_in_exchange", "sign_in_poll"})
"""What is not asked again where it may have been done: the second time it would be refused."""


Address = tuple[str, str | None]
"""A server's URL (of several servers of one installation, separated by commas), and the token that they want to see."""


class Transport:
    """The server's address and the connections to it. Safe to use from several threads.

    Of several servers one is called, the next one when it does not answer or cannot reach the one that decides.
    workspace: the one that calls are about; the token's where it is left out. say: told once when a server has to be
    waited for, and when it is back. find_again: where the server is by now, asked once nothing listens at the address
    any more: a local server comes back on another port. None where it is not known.
    """

    def __init__(
        self,
        url: str,
        token: str | None,
        *,
        workspace: str | None = None,
        retries: int = RETRIES,
        find_again: Callable[[], Address | None] | None = None,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._say = say
        self._waiting = False
        self._retries = retries
        self._find_again = find_again
        self._moving = threading.Lock()
        self._headers = {"Accept": "application/json", "User-Agent": "fairpool"}
        if workspace is not None:
            self._headers[WORKSPACE_HEADER] = workspace
        self._move((url, token))
        self._pool = urllib3.PoolManager(maxsize=16, retries=False)

    def within(self, workspace: str) -> Transport:
        """The same server, by the same token and connections, about another workspace."""
        other = copy.copy(self)
        other._headers = {**self._headers, WORKSPACE_HEADER: workspace}
        return other

    def close(self) -> None:
        """Close the kept connections."""
        self._pool.clear()

    def each(self) -> tuple[Transport, ...]:
        """This one where it has one server; of several, one to each of them alone, which waits for nobody."""
        if len(self._servers) == 1:
            return (self,)
        token = self._headers.get("Authorization", "").removeprefix("Bearer ")
        return tuple(Transport(url, token or None, retries=0) for url in self._servers)

    def _move(self, address: Address) -> None:
        self._servers, token = _checked(address)
        self.url = self._servers[0]
        # A new dictionary, so that a call on another thread sees the old headers or the new ones.
        told = {"Authorization": f"Bearer {token}"} if token else {}
        self._headers = {**self._headers, **told}

    def _look_again(self, tried: str) -> None:
        """Find out where the server is by now, or take the next one, unless another thread has since `tried`."""
        with self._moving:
            if self.url != tried:
                return
            if len(self._servers) > 1:
                self.url = self._servers[(self._servers.index(tried) + 1) % len(self._servers)]
            elif self._find_again is not None and (address := self._find_again()) is not None:
                self._move(address)

    def call(
        self,
        route: str,
        answer: type[View],
        *,
        path: Mapping[str, str] | None = None,
        query: Query | None = None,
        body: BaseModel | None = None,
        version: int | None = None,
        idempotency_key: str | None = None,
        wait_s: float = 0,
    ) -> View:
        """Call a route and read its answer. What creates or applies carries an idempotency key, and can be retried.

        version: refuse if the object is at another one by now. wait_s: how long the server may take to answer.
        Raises Problem, Unreachable, NotUnderstood.
        """
        data = self.raw(
            route,
            path=path,
            query=query,
            body=body,
            version=version,
            idempotency_key=idempotency_key,
            wait_s=wait_s,
        )
        try:
            return answer.model_validate(loads(data))
        except ValueError as error:  # no JSON, or not what the model says
            raise NotUnderstood(
                f"the answer of {self.url} to {ROUTES[route].method} {ROUTES[route].template} is not understood: "
                + str(error).partition("\n")[0],
                hint="fairpool version --server compares the versions; FAIRPOOL_SERVER names the server",
            ) from None

    def raw(
        self,
        route: str,
        *,
        path: Mapping[str, str] | None = None,
        query: Query | None = None,
        body: BaseModel | None = None,
        version: int | None = None,
        idempotency_key: str | None = None,
        wait_s: float = 0,
    ) -> bytes:
        """As `call`, without reading the answer."""
        known = ROUTES[route]
        empty = [name for name, value in (path or {}).items() if not value]
        if empty:
            told = f"{known.method} {known.template} is asked of '': possible: a name, an id or a unique id prefix"
            raise Problem(Document(type=Slug.INVALID, status=422, detail=told))
        headers: dict[str, str] = {}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if version is not None:
            headers["If-Match"] = f'"{version}"'
        if known.method == "POST" and (route.endswith("_create") or route == "apply"):
            headers["Idempotency-Key"] = idempotency_key or uuid4().hex
        # What changes says what is to be so, and is so after the second time as after the first; what is created has a
        # key (in a bulk each item one of its own); releases, cancels and renewals are idempotent.
        safe = route not in _ONCE
        sent = body.model_dump_json(exclude_unset=True).encode() if body is not None else None
        target = known.url(**(path or {})) + _encoded(query)
        return self._send(known.method, target, sent, headers, safe=safe, timeout_s=READ_S + wait_s)

    def _send(
        self, method: str, target: str, sent: bytes | None, headers: dict[str, str], *, safe: bool, timeout_s: float
    ) -> bytes:
        timeout = urllib3.Timeout(connect=CONNECT_S, read=timeout_s)
        patience = Patience(self._retries, len(self._servers))
        while True:
            base = self.url
            told = {**self._headers, **headers}
            try:
                response = self._pool.request(
                    method, base + target, body=sent, headers=told, timeout=timeout, redirect=False
                )
            except HTTPError as error:
                wait_s = patience.after_silence() if safe or _never_sent(error) else None
                if wait_s is None:
                    raise Unreachable(f"no answer from {base}: {_why(error)}", hint=_WHICH) from None
                self._pause(base, wait_s, patience, _why(error))
                if _never_sent(error) or len(self._servers) > 1:
                    self._look_again(base)
                continue
            if response.status < 400:
                self._answers_again()
                return response.data
            problem = _problem(response)
            again = response.status in _RETRIED_STATUS and (safe or problem.slug in _DID_NOTHING)
            again = again and problem.slug != Slug.PROVIDER  # no server of ours: somebody in front of it should hear
            wait_s = patience.after_refusal(response.headers.get("Retry-After")) if again else None
            if wait_s is None:
                raise problem
            self._pause(base, wait_s, patience, problem.message)
            if problem.slug == Slug.NOT_LEADING:
                self._look_again(base)

    def _pause(self, base: str, wait_s: float, patience: Patience, why: str) -> None:
        if patience.waited_s > SAID_AFTER_S and not self._waiting:
            self._waiting = True
            self._say(f"waiting for the server at {base}: {why}")
        time.sleep(wait_s)

    def _answers_again(self) -> None:
        if self._waiting:
            self._waiting = False
            self._say(f"the server at {self.url} answers again")

    def lines(
        self, route: str, *, query: Query | None = None, headers: Mapping[str, str] | None = None
    ) -> Iterator[str]:
        """The lines of an answer without an end, as they come; ends when the connection does. Raises as `call`."""
        base = self.url
        try:
            response = self._pool.request(
                "GET",
                base + ROUTES[route].url() + _encoded(query),
                headers={**self._headers, "Accept": "text/event-stream", **(headers or {})},
                preload_content=False,
                timeout=urllib3.Timeout(connect=CONNECT_S, read=60),
                redirect=False,
            )
        except HTTPError as error:
            if _never_sent(error):
                self._look_again(base)
            raise Unreachable(f"no answer from {base}: {_why(error)}") from None
        try:
            if response.status >= 400:
                raise _problem(response)
            rest = b""
            for chunk in response.stream(65536, decode_content=True):
                *whole, rest = (rest + chunk).split(b"\n")
                for line in whole:
                    yield line.decode("utf-8").rstrip("\r")
        except HTTPError as error:
            raise Unreachable(f"the connection to {base} ended: {_why(error)}") from None
        finally:
            response.close()


def _encoded(query: Query | None) -> str:
    pairs: list[tuple[str, str]] = []
    for name, value in (query or {}).items():
        if value is None or value is False:
            continue
        if isinstance(value, str):
            pairs.append((name, value))
        elif isinstance(value, Sequence):
            pairs.extend((name, item) for item in value)
        else:
            pairs.append((name, "true" if value is True else str(value)))
    if not pairs:
        return ""
    from urllib.parse import urlencode

    return "?" + urlencode(pairs)


def _problem(response: urllib3.BaseHTTPResponse) -> Problem:
    kind = response.headers.get("Content-Type", "").partition(";")[0]
    if kind == MEDIA_TYPE:
        try:
            return Problem(Document.model_validate(json.loads(response.data)))
        except ValueError:
            pass
    text = response.data[:200].decode("utf-8", "replace").strip().partition("\n")[0]
    detail = f"the server answered {response.status}, not as Fairpool does{': ' + printable(text) if text else ''}"
    return Problem(Document(type="", status=response.status, detail=detail, help=_WHICH))


_WHICH = "fairpool doctor shows which server is meant and why"


def _checked(address: Address) -> tuple[tuple[str, ...], str | None]:
    """The servers and the token. Raises WrongSetting for what cannot be the address of one, or a token of one."""
    said, token = address
    servers = tuple(part.strip() for part in said.split(",") if part.strip()) or (said,)
    for url in servers:
        try:
            parts = urllib3.util.parse_url(url)
        except LocationParseError:
            parts = urllib3.util.Url()
        if parts.scheme not in ("http", "https") or not parts.host:
            possible = "http(s)://HOST:PORT (several are separated by commas), or local"
            raise WrongSetting(f"the server {printable(url)!a} is no address; possible: {possible}", hint=_WHICH)
    if token and not (token.isascii() and token.isprintable()):
        raise WrongSetting("the token holds characters that no token has", hint="fairpool doctor shows where it is set")
    return tuple(url.rstrip("/") for url in servers), token


def _never_sent(error: HTTPError) -> bool:
    return isinstance(error, urllib3.exceptions.NewConnectionError | urllib3.exceptions.ConnectTimeoutError)


def _why(error: HTTPError) -> str:
    if isinstance(error, urllib3.exceptions.NewConnectionError):
        return "nothing listens there"
    if isinstance(error, urllib3.exceptions.TimeoutError):
        return "it took too long"
    if isinstance(error, urllib3.exceptions.ProtocolError) and isinstance(error.args[-1], BadStatusLine):
        return "what listens there does not speak HTTP"
    return str(error).rpartition(": ")[2] or type(error).__name__

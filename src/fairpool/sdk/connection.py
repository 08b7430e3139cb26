"""`fairpool.sdk.api.Api` through `fairpool.client`: its errors as the SDK's; a local server may come back elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

from fairpool.client import connecting, settings
from fairpool.client.api import Client
from fairpool.client.errors import ClientError, Problem
from fairpool.client.errors import Unreachable as NoAnswer
from fairpool.sdk.api import Api
from fairpool.sdk.errors import Refused, ServerError, Unreachable
from fairpool.wire.events import Event
from fairpool.wire.explanations import Explanation
from fairpool.wire.requests import BulkItem, LeaseBulkResult, RequestCreate, RequestView
from fairpool.wire.runs import RunCreate, RunUpdate, RunView, StepCreate, StepUpdate, StepView
from fairpool.wire.stacks import ComponentCreate, ComponentView, StackView
from fairpool.wire.vaults import EnvironmentView

T = TypeVar("T")
TRY_AGAIN: Final = frozenset({429, 502, 503, 504, 507})
"""Statuses that say nothing of the call itself: too much to do, starting, no room on the disk for now."""


class Connected:
    """The calls of the SDK. After one without an answer the server is looked for again, and started if it is local."""

    def __init__(self, connect: Callable[[], Client] = connecting.connect) -> None:
        self._connect = connect
        self._client: Client | None = None
        self._lock = threading.Lock()

    def create_requests(self, requests: Sequence[RequestCreate]) -> list[BulkItem]:
        """Submit many requests at once."""
        return self._call(lambda client: client.submit_many(requests))

    def get_request(self, request: str) -> RequestView:
        """One request as it is now."""
        return self._call(lambda client: client.request(request))

    def explain(self, request: str) -> Explanation:
        """Why a request waits."""
        return self._call(lambda client: client.explain(request))

    def environment(self, request: str) -> EnvironmentView:
        """What the vault of its team gives to a granted request."""
        return self._call(lambda client: client.environment(request))

    def release(self, request: str) -> RequestView:
        """Let go of what a request holds."""
        return self._call(lambda client: client.release(request))

    def cancel(self, request: str, reason: str) -> RequestView:
        """Withdraw a request."""
        return self._call(lambda client: client.cancel(request, reason=reason))

    def renew(self, requests: Sequence[str]) -> LeaseBulkResult:
        """Renew the leases of many requests."""
        return self._call(lambda client: client.renew_many(requests))

    def request_events(self, after: int | None) -> Iterator[Event]:
        """What happens to requests; returns once the server has begun to answer."""
        query = {"kind": "request", "after": after}

        def begin(client: Client) -> Iterator[str]:
            lines = client.transport.lines("events", query=query)
            next(lines, None)  # the server says something at once
            return lines

        return self._events(self._call(begin))

    def create_run(self, run: RunCreate) -> RunView:
        """A run begins."""
        return self._call(lambda client: client.create_run(run))

    def update_run(self, run: str, update: RunUpdate) -> None:
        """Something of a run changed."""
        self._call(lambda client: client.update_run(run, update))

    def create_step(self, run: str, step: StepCreate) -> StepView:
        """A step begins."""
        return self._call(lambda client: client.create_step(run, step))

    def update_step(self, step: str, update: StepUpdate) -> None:
        """Something of a step changed."""
        self._call(lambda client: client.update_step(step, update))

    def stacks(self) -> list[StackView]:
        """All stacks."""
        return self._call(lambda client: client.stacks())

    def components(self) -> list[ComponentView]:
        """All components."""
        return self._call(lambda client: client.components())

    def policy_subjects(self) -> list[str]:
        """Whom there are policies for."""
        return self._call(lambda client: [policy.subject for policy in client.policies()])

    def create_component(self, component: ComponentCreate) -> None:
        """Register a component."""
        self._call(lambda client: client.create_component(component))

    def _call(self, action: Callable[[Client], T]) -> T:
        try:
            with self._lock:
                client = self._client = self._client or self._connect()
            return action(client)
        except ClientError as error:
            raise self._translated(error) from error

    def _events(self, lines: Iterator[str]) -> Iterator[Event]:
        try:
            for line in lines:
                if line.startswith("data: "):
                    yield Event.model_validate_json(line.removeprefix("data: "))
        except ClientError as error:
            raise self._translated(error) from error

    def _translated(self, error: ClientError) -> ServerError:
        text = f"{error.message} ({error.hint})" if error.hint else error.message
        if isinstance(error, NoAnswer):
            with self._lock:
                self._client = None
            return Unreachable(text)
        if isinstance(error, Problem):
            wrong = "; ".join(f"{field.field}: {field.message}" for field in error.document.errors)
            text = f"{text}: {wrong}" if wrong and wrong not in text else text
            return Unreachable(text) if error.status in TRY_AGAIN else Refused(text, code=error.status)
        return Refused(text, code=0)


def connect() -> Api:
    """The configured server, or this user's local one."""
    return Connected()


def setting(name: str) -> str | None:
    """A setting of the client (``stack``, ``component``) from the environment or a configuration file."""
    try:
        found = settings.resolve().get(name)
    except ClientError as error:
        raise Refused(f"{error.message} ({error.hint})" if error.hint else error.message, code=0) from error
    return None if found is None else found.value

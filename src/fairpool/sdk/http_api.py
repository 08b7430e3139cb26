"""`fairpool.sdk.api.Api` over HTTP."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from pydantic import BaseModel

from fairpool.sdk.connection import Connection
from fairpool.wire.events import Event
from fairpool.wire.explanations import Explanation
from fairpool.wire.pages import Page
from fairpool.wire.requests import (
    BulkItem,
    BulkResult,
    LeaseBulkRenew,
    LeaseBulkResult,
    RequestBulkCreate,
    RequestCancel,
    RequestCreate,
    RequestRelease,
    RequestView,
)
from fairpool.wire.runs import RunCreate, RunUpdate, RunView, StepCreate, StepUpdate, StepView
from fairpool.wire.stacks import ComponentView, StackView

Model = TypeVar("Model", bound=BaseModel)


class HttpApi:
    """Each method is one call of the HTTP API (lists: one per page)."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def create_requests(self, requests: Sequence[RequestCreate]) -> list[BulkItem]:
        """Submit many requests at once."""
        data = self._connection.call("request_bulk", _json(RequestBulkCreate(requests=list(requests))))
        return BulkResult.model_validate_json(data).items

    def get_request(self, request: str) -> RequestView:
        """One request as it is now."""
        return RequestView.model_validate_json(self._connection.call("request_get", id=request))

    def explain(self, request: str) -> Explanation:
        """Why a request waits."""
        return Explanation.model_validate_json(self._connection.call("request_explain", id=request))

    def release(self, request: str) -> RequestView:
        """Let go of what a request holds."""
        data = self._connection.call("request_release", _json(RequestRelease()), id=request)
        return RequestView.model_validate_json(data)

    def cancel(self, request: str, reason: str) -> RequestView:
        """Withdraw a request."""
        data = self._connection.call("request_cancel", _json(RequestCancel(reason=reason)), id=request)
        return RequestView.model_validate_json(data)

    def renew(self, requests: Sequence[str]) -> LeaseBulkResult:
        """Renew the leases of many requests."""
        data = self._connection.call("lease_bulk", _json(LeaseBulkRenew(requests=list(requests))))
        return LeaseBulkResult.model_validate_json(data)

    def request_events(self, after: int | None) -> Iterator[Event]:
        """What happens to requests, from now or from after an event on."""
        query = {"kind": "request"} if after is None else {"kind": "request", "after": str(after)}
        stream = self._connection.stream("events", query=query)
        return (Event.model_validate_json(data) for data in stream)

    def create_run(self, run: RunCreate) -> RunView:
        """A run begins."""
        return RunView.model_validate_json(self._connection.call("run_create", _json(run)))

    def update_run(self, run: str, update: RunUpdate) -> None:
        """Something of a run changed."""
        self._connection.call("run_update", _json(update), ref=run)

    def create_step(self, run: str, step: StepCreate) -> StepView:
        """A step begins."""
        return StepView.model_validate_json(self._connection.call("step_create", _json(step), ref=run))

    def update_step(self, step: str, update: StepUpdate) -> None:
        """Something of a step changed."""
        self._connection.call("step_update", _json(update), id=step)

    def stacks(self) -> list[StackView]:
        """All stacks."""
        return self._all("stack_list", StackView)

    def components(self) -> list[ComponentView]:
        """All components."""
        return self._all("component_list", ComponentView)

    def _all(self, route: str, model: type[Model]) -> list[Model]:
        found: list[Model] = []
        cursor: str | None = None
        while True:
            query = {"limit": "1000"} if cursor is None else {"limit": "1000", "cursor": cursor}
            page = Page[model].model_validate_json(self._connection.call(route, query=query))  # type: ignore[valid-type]
            found += page.items
            cursor = page.next_cursor
            if cursor is None:
                return found


def _json(body: BaseModel) -> str:
    return body.model_dump_json(exclude_unset=True)

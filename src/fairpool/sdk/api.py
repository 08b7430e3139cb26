"""What the SDK asks of a server: a narrow port, which the HTTP client fills."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from fairpool.wire.events import Event
from fairpool.wire.explanations import Explanation
from fairpool.wire.requests import BulkItem, LeaseBulkResult, RequestCreate, RequestView
from fairpool.wire.runs import RunCreate, RunUpdate, RunView, StepCreate, StepUpdate, StepView
from fairpool.wire.stacks import ComponentCreate, ComponentView, StackView
from fairpool.wire.vaults import EnvironmentView


class Api(Protocol):
    """The calls. Each raises Unreachable or Refused."""

    def create_requests(self, requests: Sequence[RequestCreate]) -> list[BulkItem]:
        """Submit many requests at once; each succeeds or fails for itself."""

    def get_request(self, request: str) -> RequestView:
        """One request as it is now."""

    def explain(self, request: str) -> Explanation:
        """Why a request waits."""

    def environment(self, request: str) -> EnvironmentView:
        """What the vault of its team gives to a granted request."""

    def release(self, request: str) -> RequestView:
        """Let go of what a request holds."""

    def cancel(self, request: str, reason: str) -> RequestView:
        """Withdraw a request."""

    def renew(self, requests: Sequence[str]) -> LeaseBulkResult:
        """Renew the leases of many requests."""

    def request_events(self, after: int | None) -> Iterator[Event]:
        """What happens to requests, from now or from after an event on; ends or raises when the connection does."""

    def create_run(self, run: RunCreate) -> RunView:
        """A run begins."""

    def update_run(self, run: str, update: RunUpdate) -> None:
        """Something of a run changed."""

    def create_step(self, run: str, step: StepCreate) -> StepView:
        """A step begins."""

    def update_step(self, step: str, update: StepUpdate) -> None:
        """Something of a step changed."""

    def stacks(self) -> list[StackView]:
        """All stacks."""

    def components(self) -> list[ComponentView]:
        """All components."""

    def policy_subjects(self) -> list[str]:
        """Whom there are policies for."""

    def create_component(self, component: ComponentCreate) -> None:
        """Register a component; Refused with code 409 where there is one of that name."""

"""A server in memory: one pool of GPUs, first come first served, and what a test makes it say."""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from fairpool.sdk.errors import Refused
from fairpool.wire.events import Event
from fairpool.wire.explanations import Explanation
from fairpool.wire.requests import (
    AllocationView,
    BulkItem,
    DeviceView,
    EvictionView,
    LeaseBulkResult,
    LeaseView,
    PlacementView,
    ReasonView,
    RequestCreate,
    RequestView,
)
from fairpool.wire.runs import RunCreate, RunUpdate, RunView, StepCreate, StepUpdate, StepView
from fairpool.wire.stacks import ComponentCreate, ComponentView, StackView
from fairpool.wire.values import RequestStatus, RunStatus
from fairpool.wire.vaults import EnvironmentView


class FakeServer:
    """Fills `fairpool.sdk.api.Api`. governed: whether grants come from a pool."""

    def __init__(self, *, gpus: int = 0, governed: bool = True) -> None:
        self.gpus = gpus
        self.governed = governed
        self.requests: dict[str, RequestView] = {}
        self.created: list[RequestCreate] = []
        self.runs: dict[str, dict[str, Any]] = {}
        self.steps: dict[str, dict[str, Any]] = {}
        self.stack_views: list[StackView] = []
        self.component_views: list[ComponentView] = []
        self.subjects_with_policies: list[str] = []
        self.vault: EnvironmentView | None = None  # what every grant's vault gives
        self.shut = False  # the vault cannot be opened
        self.closed = False
        self._lock = threading.RLock()
        self._ids = itertools.count(1)
        self._streams: list[queue.SimpleQueue[Event | None]] = []

    # what the SDK calls

    def create_requests(self, requests: Sequence[RequestCreate]) -> list[BulkItem]:
        with self._lock:
            made = [self._create(create) for create in requests]
            self._grant()
            return [BulkItem(index=index, request=self.requests[name]) for index, name in enumerate(made)]

    def get_request(self, request: str) -> RequestView:
        with self._lock:
            if request not in self.requests:
                raise Refused("no such request", code=404)
            return self.requests[request]

    def explain(self, request: str) -> Explanation:
        return Explanation(request=request, status=self.requests[request].status, summary="the pool is full")

    def environment(self, request: str) -> EnvironmentView:
        if self.shut or self.vault is None:
            raise Refused("a secret was sealed with a key that this server does not have", code=409)
        return self.vault.model_copy(update={"request": request})

    def release(self, request: str) -> RequestView:
        with self._lock:
            preempted = self.requests[request].status is RequestStatus.PREEMPTING
            self.say(request, RequestStatus.PREEMPTED if preempted else RequestStatus.RELEASED)
            self._grant()
            return self.requests[request]

    def cancel(self, request: str, reason: str) -> RequestView:
        with self._lock:
            if not self.requests[request].status.is_final:
                self.say(request, RequestStatus.CANCELLED)
            self._grant()
            return self.requests[request]

    def renew(self, requests: Sequence[str]) -> LeaseBulkResult:
        with self._lock:
            return LeaseBulkResult(
                items=[
                    LeaseView(request=name, status=self.requests[name].status)
                    for name in requests
                    if name in self.requests
                ]
            )

    def request_events(self, after: int | None) -> Iterator[Event]:
        stream: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._streams.append(stream)
        return iter(stream.get, None)

    def create_run(self, run: RunCreate) -> RunView:
        name = f"run-{next(self._ids)}"
        self.runs[name] = {"status": RunStatus.PENDING, "name": run.name, "stack": run.stack}
        return RunView(id=name, name=run.name, version=1, status=RunStatus.PENDING, created_at=now())

    def update_run(self, run: str, update: RunUpdate) -> None:
        self.runs[run].update(update.model_dump(exclude_none=True))

    def create_step(self, run: str, step: StepCreate) -> StepView:
        name = f"step-{next(self._ids)}"
        self.steps[name] = {"run": run, "component": step.component, "name": step.name}
        return StepView(
            id=name, run=run, name=step.name, version=1, status=RunStatus.PENDING, created_at=now(), index=step.index
        )

    def update_step(self, step: str, update: StepUpdate) -> None:
        self.steps[step].update(update.model_dump(exclude_none=True))

    def stacks(self) -> list[StackView]:
        return self.stack_views

    def components(self) -> list[ComponentView]:
        return self.component_views

    def policy_subjects(self) -> list[str]:
        return self.subjects_with_policies

    def create_component(self, component: ComponentCreate) -> None:
        self.component_views.append(
            ComponentView(
                id=f"cmp-{component.name}",
                name=component.name,
                version=1,
                kind=component.kind,
                flavor=component.flavor,
            )
        )

    # what tests make it say

    def hang_up(self) -> None:
        """End all event streams."""
        for stream in self._streams:
            stream.put(None)

    def preempt(self, request: str, *, grace_s: float = 30) -> None:
        """Tell the owner to let go."""
        eviction = EvictionView(
            cause="req-production",
            because="reclaim",
            deadline_at=now() + timedelta(seconds=grace_s),
            pool="gpus",
            policy="component:prod",
        )
        self.say(request, RequestStatus.PREEMPTING, eviction=eviction)

    def say(self, request: str, status: RequestStatus, **changes: Any) -> None:
        """Change a request, and tell everybody."""
        with self._lock:
            view = self.requests[request]
            self.requests[request] = view.model_copy(update={"status": status, "version": view.version + 1, **changes})
            event = Event(id=next(self._ids), at=now(), kind="request", object=request, what=status.value)
            for stream in self._streams:
                stream.put(event)

    def of(self, name: str) -> list[RequestView]:
        """The requests of the step with that label, oldest first."""
        return [view for view in self.requests.values() if view.name == name]

    def with_status(self, status: RequestStatus) -> list[RequestView]:
        """The requests in that status."""
        return [view for view in list(self.requests.values()) if view.status is status]

    def _create(self, create: RequestCreate) -> str:
        name = f"req-{next(self._ids)}"
        self.created.append(create)
        demand = dict(create.demand or {})
        impossible = self.governed and demand.get("gpu", 0) > self.gpus
        self.requests[name] = RequestView(
            id=name,
            version=1,
            status=RequestStatus.REJECTED if impossible else RequestStatus.QUEUED,
            name=create.name,
            demand=demand,
            retry_of=create.retry_of,
            created_at=now(),
            queued_at=now(),
            reasons=[ReasonView(code="EXCEEDS_POOL_CAPACITY", message="more GPUs than there are")]
            if impossible
            else [],
        )
        return name

    def _grant(self) -> None:
        for name, view in self.requests.items():
            if view.status is not RequestStatus.QUEUED or self.closed:
                continue
            wanted = int(view.demand.get("gpu", 0))
            free = [index for index in range(self.gpus) if index not in self._taken()]
            if self.governed and wanted > len(free):
                continue
            devices = [DeviceView(index=index) for index in free[:wanted]] if self.governed else []
            held = AllocationView(
                pool="gpus" if self.governed else None,
                policy="pol-1" if self.governed else None,
                subject="component:local" if self.governed else None,
                parts=[PlacementView(devices=devices)] if self.governed else [],
                granted_at=now(),
                vault=self.vault.vault if self.vault is not None else None,
            )
            self.say(name, RequestStatus.ALLOCATED, allocation=held)

    def _taken(self) -> set[int]:
        return {
            device.index
            for view in self.requests.values()
            if view.status.holds and view.allocation is not None
            for part in view.allocation.parts
            for device in part.devices
        }


def now() -> datetime:
    return datetime.now(UTC)

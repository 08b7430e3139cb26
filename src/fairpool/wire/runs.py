"""Runs of pipelines and commands, and their steps, over HTTP."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from fairpool.wire.amounts import Amounts, SomeAmounts
from fairpool.wire.model import Body, Count, Labels, Line, Prose, Ref, Report, View
from fairpool.wire.values import RequestStatus, RunStatus


class RunCreate(Body):
    """A run begins. kind: ``pipeline`` or ``command``. stack: by name or id; None for the active one.

    user: whose it is, where the token is nobody's in particular; else it is the token's owner's. team: as which of the
    owner's teams; as all of them if left out.
    """

    name: Line
    kind: Line = "pipeline"
    stack: Ref | None = None
    labels: Labels = Field(default_factory=dict, max_length=64)
    user: Line = ""
    team: Ref | None = None


class RunUpdate(Body):
    """What changes of a run; fields that are left out stay. error: why it failed, for people."""

    status: RunStatus | None = None
    error: Report | None = None


class StepCreate(Body):
    """A step of a run begins. index: its place among the steps of that name. log: where its output is kept."""

    name: Line
    index: Count = 0
    component: Line = ""
    log: Prose = ""
    settings: SomeAmounts = Field(default_factory=dict)


class StepUpdate(Body):
    """What changes of a step; fields that are left out stay.

    request: the request of its current attempt. attempt: which one it is, from 1..
    """

    status: RunStatus | None = None
    request: Ref | None = None
    attempt: Count | None = None
    log: Prose | None = None
    error: Report | None = None
    checkpoint: Prose | None = None


class StepRequestView(View):
    """One attempt of a step: the request that it made. waited_s, ran_s: up to now where it is not over."""

    id: str
    status: RequestStatus
    pool: str | None = None
    policy: str | None = None
    devices: list[str] = Field(default_factory=list)
    waited_s: float = 0.0
    ran_s: float = 0.0


class StepView(View):
    """A step as it is now, with the requests that it made, the newest last."""

    id: str
    run: str
    name: str
    version: int
    index: int = 0
    status: RunStatus
    component: str = ""
    attempt: int = 0
    request: str | None = None
    requests: list[StepRequestView] = Field(default_factory=list)
    settings: Amounts = Field(default_factory=dict)
    log: str = ""
    error: str = ""
    checkpoint: str = ""
    created_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None


class RunView(View):
    """A run as it is now. steps: only where one run is asked for. counts: how many of its steps are in which status."""

    id: str
    name: str
    version: int
    kind: str = "pipeline"
    status: RunStatus
    stack: str | None = None
    user: str = ""
    labels: dict[str, str] = Field(default_factory=dict)
    error: str = ""
    counts: dict[str, int] = Field(default_factory=dict)
    steps: list[StepView] = Field(default_factory=list)
    created_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None

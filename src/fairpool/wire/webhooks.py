"""Webhooks over HTTP: where they call, what they are told, and how that goes."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import ConfigDict, Field

from fairpool.wire.amounts import Amounts
from fairpool.wire.model import Body, Flag, Prose, Seconds, View

_HIDDEN = ConfigDict(hide_input_in_errors=True)
"""An address may hold what its receiver knows its callers by."""


class WebhookCreate(Body):
    """A webhook. url: what is called. events: what it is told, such as ``request.granted``.

    waiting_longer_than_s: with the event ``request.waiting``. pool, team: only requests there, of that team; any if
    left out.
    """

    model_config = _HIDDEN

    name: str
    url: str = Field(repr=False)
    events: list[str]
    waiting_longer_than_s: Seconds = 0
    pool: str = ""
    team: str = ""
    enabled: Flag = True
    description: Prose = ""


class WebhookUpdate(Body):
    """What changes of a webhook; fields that are left out stay. enabled: true begins again one that was given up."""

    model_config = _HIDDEN

    url: str | None = Field(default=None, repr=False)
    events: list[str] | None = None
    waiting_longer_than_s: Seconds | None = None
    pool: str | None = None
    team: str | None = None
    enabled: Flag | None = None
    description: Prose | None = None


class DeliveryView(View):
    """How telling the receiver goes.

    status: ``ok``; ``retrying`` after a failure; ``failing`` where it was given up; ``disabled``. failures: tries in a
    row. told_to: the last event that is dealt with.
    """

    status: Literal["ok", "retrying", "failing", "disabled"] | str
    failures: int = 0
    last_error: str = ""
    next_try_at: datetime | None = None
    told_to: int = 0


class WebhookView(View):
    """A webhook as it is now, without its secret. warnings: what it names and there is not any more, in words."""

    kind: str = "webhook"
    id: str
    name: str
    version: int
    url: str = Field(repr=False)
    events: list[str]
    waiting_longer_than_s: int = 0
    pool: str = ""
    team: str = ""
    enabled: bool = True
    description: str = ""
    created_at: datetime | None = None
    updated_at: datetime | None = None
    delivery: DeliveryView | None = None
    warnings: list[str] = Field(default_factory=list)


class NewWebhook(WebhookView):
    """A webhook that was just made. secret: signs what the receiver is told; this is the only time that it is told."""

    secret: str = Field(default="", repr=False)


class WebhookTrial(View):
    """What became of a test: whether the receiver took it, with which status, in how many milliseconds."""

    delivered: bool
    status: int | None = None
    detail: str = ""
    took_ms: float = 0


class RequestNews(View):
    """What a receiver is told of a request. event: the id of the history entry."""

    workspace: str
    event: int
    request: str
    name: str = ""
    status: str
    cause: str = ""
    actor: str = ""
    run: str | None = None
    subjects: list[str] = Field(default_factory=list)
    demand: Amounts = Field(default_factory=dict)
    pool: str | None = None
    policy: str | None = None
    profile: str | None = None
    submitted_at: datetime
    granted_at: datetime | None = None
    waited_s: float = 0


class WebhookMessage(View):
    """The body of a call to a receiver: what happened, when, and to which request."""

    type: str
    timestamp: datetime
    data: RequestNews | None = None

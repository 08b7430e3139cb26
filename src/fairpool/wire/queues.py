"""Queues over HTTP."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from fairpool.wire.amounts import Amounts
from fairpool.wire.model import View
from fairpool.wire.policies import ProfileDefaultsView
from fairpool.wire.requests import ReasonView
from fairpool.wire.values import Verdict


class QueuePoolView(View):
    """One pool of a queue, with the policy through which it gives.

    used: what all of the policy's requests hold. reason: why nothing can ever be had there, where that is so.
    components: the only ones whose work the pool takes; empty for all.
    """

    pool: str
    policy: str
    priority: int = 0
    reserved: Amounts = Field(default_factory=dict)
    limit: Amounts = Field(default_factory=dict)
    used: Amounts = Field(default_factory=dict)
    dedicated: bool = False
    components: list[str] = Field(default_factory=list)
    reason: ReasonView | None = None


class LineView(View):
    """A queued request. positions: its place in the order of each pool where it waits, 1 for the first."""

    request: str
    name: str = ""
    queued_at: datetime
    positions: dict[str, int] = Field(default_factory=dict)


class QueueView(View):
    """What a team, or another subject, sees of a profile.

    pools: in the order in which they are tried. pending, running: how many requests wait and hold something.
    waiting_since: when the one that has waited longest was first queued. members: who may use it, by name.
    """

    name: str
    subject: str
    profile: str
    demand: Amounts
    defaults: ProfileDefaultsView = Field(default_factory=ProfileDefaultsView)
    pools: list[QueuePoolView]
    pending: int = 0
    running: int = 0
    waiting_since: datetime | None = None
    members: list[str] = Field(default_factory=list)


class QueueDescription(QueueView):
    """A queue with what would become of its next request, and where the caller's own stand.

    next: whether a request that says nothing but the profile would start now, later or never; None where its pools take
    only work of certain components. summary: why, in a sentence.
    """

    next: Verdict | None = None
    summary: str = ""
    requests: list[LineView] = Field(default_factory=list)

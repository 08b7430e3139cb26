"""Why a request waits, and what would help, over HTTP (S37)."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from fairpool.wire.amounts import Amounts
from fairpool.wire.model import View
from fairpool.wire.requests import AllocationView, EvictionView, ReasonView
from fairpool.wire.values import RequestStatus, Verdict


class HolderView(View):
    """Who holds something that is missing. ends_at: when it lets go at the latest, where that is known."""

    request: str
    name: str = ""
    subject: str | None = None
    holds: Amounts = Field(default_factory=dict)
    in_share: bool | None = None
    status: RequestStatus = RequestStatus.ALLOCATED
    since: datetime | None = None
    ends_at: datetime | None = None


class CandidateView(View):
    """One pool and policy through which the request could be granted.

    position: its place among those that wait there, from 1; ahead: how many go before it.
    reasons: the conditions that fail now. help: what would let it start, in sentences.
    """

    pool: str
    policy: str
    subject: str = ""
    position: int | None = None
    ahead: int | None = None
    entitled: bool = False
    reasons: list[ReasonView] = Field(default_factory=list)
    holders: list[HolderView] = Field(default_factory=list)
    help: list[str] = Field(default_factory=list)


class EstimateView(View):
    """When a waiting request might start if nothing more arrives, and what that rests on.

    about: as likely before as after; None where nothing can be said, and `basis` says why. low, high: the start lies
    between them in about 8 of 10 cases; both are `about` where all run times are declared. high: None where nothing
    is known of how late it may be. A low without an about: it starts later than that, and nothing more was looked at.
    as_of: the moment at which it was looked ahead; several who ask within seconds get the same answer.
    """

    low: datetime | None = None
    about: datetime | None = None
    high: datetime | None = None
    basis: str
    as_of: datetime | None = None


class Explanation(View):
    """Why a request is where it is. summary: in one sentence, for a person.

    evicting: requests that have been told to let go for it.
    """

    request: str
    status: RequestStatus
    summary: str = ""
    candidates: list[CandidateView] = Field(default_factory=list)
    reasons: list[ReasonView] = Field(default_factory=list)
    allocation: AllocationView | None = None
    eviction: EvictionView | None = None
    evicting: list[str] = Field(default_factory=list)
    estimate: EstimateView | None = None


class CheckResult(View):
    """Whether a request that was not submitted would run: now, later or never, and why (``POST /requests:check``)."""

    verdict: Verdict
    explanation: Explanation

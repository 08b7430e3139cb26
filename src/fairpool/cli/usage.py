"""What was used in a period, from recorded requests: who held how much for how long. Pure, but for reading them.

A request counts with the part of the period in which it held something. Amounts are multiplied by time exactly, in
whole microseconds, and rounded to thousandths of an hour at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import chain, takewhile
from typing import TYPE_CHECKING

from fairpool.wire.values import RequestStatus

if TYPE_CHECKING:
    from fairpool.client.api import Client
    from fairpool.wire.requests import RequestView

HOUR_US = 3_600_000_000
OWNERS = ("team", "user", "service-account", "component")
"""Kinds of subjects: whose work it counts as, where several are named."""

_THOUSANDTH = Decimal("0.001")
_US = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """From `since` on, until before `until`."""

    since: datetime
    until: datetime

    def held_us(self, view: RequestView) -> int:
        """For how long of the period a request held something."""
        if view.allocation is None:
            return 0
        ended_at = min(view.ended_at or self.until, self.until)
        return max(0, (ended_at - max(view.allocation.granted_at, self.since)) // _US)

    def holds(self, moment: datetime) -> bool:
        """Whether a moment lies in it."""
        return self.since <= moment < self.until


@dataclass(slots=True, kw_only=True)
class Used:
    """What a group of requests used. by: what they have in common. amount_us: of each key, amounts times microseconds.
    started, waited: how many of them started in the period, and how long these waited together."""

    by: Mapping[str, str]
    requests: int = 0
    amount_us: dict[str, Decimal] = field(default_factory=dict)
    started: int = 0
    waited: timedelta = timedelta()
    evicted: int = 0

    def hours(self, key: str) -> Decimal:
        """Of one resource, times hours: GPU-hours."""
        return (self.amount_us.get(key, Decimal()) / HOUR_US).quantize(_THOUSANDTH)

    @property
    def mean_wait_s(self) -> float | None:
        """How long those that started in the period waited, on average; None where none did."""
        return self.waited.total_seconds() / self.started if self.started else None

    def as_data(self) -> dict[str, object]:
        """As JSON."""
        wait_s = self.mean_wait_s
        return {
            **self.by,
            "requests": self.requests,
            "hours": {key: float(self.hours(key)) for key in sorted(self.amount_us)},
            "started": self.started,
            "mean_wait_s": None if wait_s is None else round(wait_s, 3),
            "evicted": self.evicted,
        }


def team_of(view: RequestView) -> str:
    """Whose work it counts as: of several teams the first by name; where there is none the user, the service account or
    the component."""
    owner = min(view.subjects, key=lambda text: (OWNERS.index(text.partition(":")[0]), text), default="")
    return owner.removeprefix("team:")


GROUPINGS: Mapping[str, Callable[[RequestView], str]] = {
    "team": team_of,
    "pool": lambda view: (view.allocation.pool if view.allocation is not None else None) or "",
    "profile": lambda view: view.profile or "",
}
"""What requests may be grouped by."""


def used(views: Iterable[RequestView], period: Period, by: Sequence[str]) -> list[Used]:
    """What was used in the period, by these things in common, in their order; requests of others are left out."""
    groups: dict[tuple[str, ...], Used] = {}
    for view in views:
        if view.foreign or view.allocation is None or not period.held_us(view):
            continue
        key = tuple(GROUPINGS[name](view) for name in by)
        group = groups.setdefault(key, Used(by=dict(zip(by, key, strict=True))))
        _count(group, view, period)
    return [groups[key] for key in sorted(groups)]


def _count(group: Used, view: RequestView, period: Period) -> None:
    assert view.allocation is not None
    held_us = period.held_us(view)
    group.requests += 1
    for key, amount in view.demand.items():
        group.amount_us[key] = group.amount_us.get(key, Decimal()) + Decimal(amount) * held_us
    if period.holds(view.allocation.granted_at):
        group.started += 1
        group.waited += view.allocation.granted_at - view.created_at
    if view.status is RequestStatus.PREEMPTED and view.ended_at is not None and period.holds(view.ended_at):
        group.evicted += 1


def recorded(client: Client, period: Period) -> list[RequestView]:
    """The requests that may have held something in the period: those that came in it or since, as they are now, and
    those that ran when it began or waited then."""
    newer = takewhile(lambda view: view.created_at >= period.since, client.requests(view="all"))
    found = {view.id: view for view in newer if view.created_at < period.until}
    then = client.requests(view="live", at=period.since.isoformat())
    older = (view.id for view in then if view.id not in found and not view.foreign)
    return list(chain(found.values(), map(client.request, older)))

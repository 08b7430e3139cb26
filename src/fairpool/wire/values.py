"""The closed sets of words that API v1 uses."""

from __future__ import annotations

from enum import StrEnum


class RequestStatus(StrEnum):
    """Where a request is in its life."""

    QUEUED = "queued"
    ALLOCATED = "allocated"
    PREEMPTING = "preempting"
    RELEASED = "released"
    PREEMPTED = "preempted"
    REJECTED = "rejected"
    CANCELLED = "cancelled"
    EXPIRED = "expired"

    @property
    def is_final(self) -> bool:
        """Whether nothing can happen to the request any more."""
        return self not in (RequestStatus.QUEUED, RequestStatus.ALLOCATED, RequestStatus.PREEMPTING)

    @property
    def holds(self) -> bool:
        """Whether the request holds resources."""
        return self in (RequestStatus.ALLOCATED, RequestStatus.PREEMPTING)


class RunStatus(StrEnum):
    """Where a run, or one of its steps, is."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """Whether it is over."""
        return self not in (RunStatus.PENDING, RunStatus.RUNNING)


class Shown(StrEnum):
    """Which requests a list shows: those that wait, those that hold something, both, or finished ones too."""

    QUEUED = "queued"
    ACTIVE = "active"
    LIVE = "live"
    ALL = "all"


class OnWork(StrEnum):
    """What deleting a pool does about the work that waits or runs there (S10)."""

    REFUSE = "refuse"
    DRAIN = "drain"
    LET_GO = "let-go"


class Verdict(StrEnum):
    """Whether a request that is only checked would start now, later, or never."""

    NOW = "now"
    LATER = "later"
    NEVER = "never"

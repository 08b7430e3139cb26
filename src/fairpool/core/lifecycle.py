"""The one transition table of requests (section 9): (status, what happens) -> next status, with what to do about it."""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import Final

from fairpool.core.errors import IllegalTransition
from fairpool.core.ids import RequestId
from fairpool.core.requests import Status


class Happening(StrEnum):
    """What can happen to a request."""

    GRANT = "granted"
    REJECT = "rejected"
    EVICT = "told to let go"
    RELEASE = "released"
    DEADLINE = "ended by its deadline"
    CANCEL = "cancelled"
    EXPIRE = "expired"

    __hash__ = str.__hash__  # as that of Status


TABLE: Final = MappingProxyType(
    {
        (Status.QUEUED, Happening.GRANT): Status.ALLOCATED,
        (Status.QUEUED, Happening.REJECT): Status.REJECTED,
        (Status.QUEUED, Happening.CANCEL): Status.CANCELLED,
        (Status.QUEUED, Happening.EXPIRE): Status.EXPIRED,
        (Status.ALLOCATED, Happening.RELEASE): Status.RELEASED,
        (Status.ALLOCATED, Happening.EVICT): Status.PREEMPTING,
        (Status.ALLOCATED, Happening.EXPIRE): Status.EXPIRED,
        (Status.ALLOCATED, Happening.CANCEL): Status.CANCELLED,
        # However an evicted request lets go, early or at the deadline, alive or dead, it ends as preempted.
        (Status.PREEMPTING, Happening.RELEASE): Status.PREEMPTED,
        (Status.PREEMPTING, Happening.DEADLINE): Status.PREEMPTED,
        (Status.PREEMPTING, Happening.EXPIRE): Status.PREEMPTED,
        (Status.PREEMPTING, Happening.CANCEL): Status.PREEMPTED,
    }
)

HAPPENING_OF: Final = MappingProxyType(
    {
        Status.RELEASED: Happening.RELEASE,
        Status.CANCELLED: Happening.CANCEL,
        Status.EXPIRED: Happening.EXPIRE,
        Status.PREEMPTED: Happening.DEADLINE,
    }
)
"""Which happening an event that asks for a final status is."""


def after(request: RequestId, status: Status, happening: Happening) -> Status:
    """The next status. Raises IllegalTransition where the table has none."""
    following = TABLE.get((status, happening))
    if following is None:
        raise IllegalTransition(request, status.value, happening.value)
    return following

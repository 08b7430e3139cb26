"""What can happen to a world. One class per event; `World.apply` takes any of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from fairpool.core.ids import Instant, PolicyId, PoolId, RequestId
from fairpool.core.policies import Policy, Profile
from fairpool.core.pools import Pool
from fairpool.core.requests import Request, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """A request joins the queue. Whether it can run at all is for the next plan to say."""

    request: Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A request's owner, an operator or a lapsed lease ended it.

    how: `released` (the owner is done; of a preempting request this makes it `preempted`), `cancelled`, `expired`.
    """

    request: RequestId
    how: Status


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSet:
    """A pool appears, or takes the place of the one with the same id: capacity, nodes, node states, settings."""

    pool: Pool


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolDropped:
    """A pool goes (S10). Queued requests lose their candidates here; what runs there goes on unaccounted."""

    pool: PoolId


@dataclass(frozen=True, slots=True, kw_only=True)
class BorrowersEvicted:
    """An operator asks that borrowers leave until the pool fits its capacity again (S9)."""

    pool: PoolId


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySet:
    """A policy appears, or takes the place of the one with the same id."""

    policy: Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyDropped:
    """A policy goes. What runs through it goes on, in nobody's share; its queued requests are checked again."""

    policy: PolicyId


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileSet:
    """A profile appears or changes."""

    profile: Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileDropped:
    """A profile goes, by name."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsChanged:
    """The workspace's own settings: whether a request that no policy governs is rejected (S15)."""

    require_policy: bool


Event = (
    Submitted
    | Ended
    | PoolSet
    | PoolDropped
    | BorrowersEvicted
    | PolicySet
    | PolicyDropped
    | ProfileSet
    | ProfileDropped
    | SettingsChanged
)


class Transition(NamedTuple):
    """That a request went from one status to another; `before` is None for a request that is new."""

    request: RequestId
    before: Status | None
    after: Status
    at: Instant

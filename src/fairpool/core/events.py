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
class Redirected:
    """A live request is made as others, or asks for its profile or pool by another name: somebody joined or left a
    team, something was renamed. It keeps its id, the time it was first queued, and its place.

    request: the same request but for `subjects`, `profile` and `pool`. What one that runs already holds stays as it is.
    """

    request: Request


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
    """A policy appears, or takes the place of the one with the same id. It may speak of another subject than before:
    its queued requests are checked again, and what runs through it goes on and counts as before."""

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


RuleEvent = (
    Redirected
    | PoolSet
    | PoolDropped
    | BorrowersEvicted
    | PolicySet
    | PolicyDropped
    | ProfileSet
    | ProfileDropped
    | SettingsChanged
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """Several changes of the rules at once, in this order, all or none.

    What lies between them is seen by nobody: numbers are checked against each other only when all have happened, and
    queued requests are looked at once, at the end. So reservations can be exchanged, and a pool renamed together with
    the requests that ask for it, which keep even what is being freed for them.
    """

    events: tuple[RuleEvent, ...]


Event = Submitted | Ended | RuleEvent | Together


class Transition(NamedTuple):
    """That a request went from one status to another; `before` is None for a request that is new."""

    request: RequestId
    before: Status | None
    after: Status
    at: Instant

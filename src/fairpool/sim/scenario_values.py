"""What a scenario says, as values: what is set up, what happens when, and what is expected then."""

from __future__ import annotations

from dataclasses import dataclass

from fairpool.core.events import Event
from fairpool.core.ids import PolicyId
from fairpool.core.policies import Policy, Profile, Subject
from fairpool.core.pools import NodeState
from fairpool.core.reasons import Code
from fairpool.core.requests import Because, Request, Status

# `for`, `node` and the like name things as the file does: requests by their id there, pools by name.


@dataclass(frozen=True, slots=True, kw_only=True)
class Submit:
    """A request arrives. Its id and the time it was queued are the run's to give.

    The id of a request that was preempted means that request queued again, with its place in the queue (S24).
    """

    request: Request


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """An owner lets go (`released`) or withdraws (`cancelled`)."""

    request: str
    how: Status


@dataclass(frozen=True, slots=True, kw_only=True)
class SetCapacity:
    """Some keys of a pool get another capacity, in thousandths; 0 removes the key (S9)."""

    pool: str
    capacity: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPolicy:
    """A policy appears, or takes the place of the one of the same subject and pool."""

    policy: Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class DropPolicy:
    """A policy goes."""

    policy: PolicyId


@dataclass(frozen=True, slots=True, kw_only=True)
class GivePolicy:
    """A policy speaks of another subject from now on; all else about it stays."""

    policy: PolicyId
    to: Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class SetProfile:
    """A profile appears or changes."""

    profile: Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class DropProfile:
    """A profile goes."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirect:
    """A request is made as others, or asks for another profile or pool by name. None: as before."""

    request: str
    subjects: tuple[Subject, ...] | None = None
    profile: str | None = None
    pool: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetNode:
    """A node changes its state (S6)."""

    pool: str
    name: str
    state: NodeState


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictBorrowers:
    """An operator asks that borrowers leave until the pool fits its capacity again (S9)."""

    pool: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainPool:
    """A pool grants nothing more (S10)."""

    pool: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DropPool:
    """A pool goes; what runs there goes on, unaccounted (S10)."""

    pool: str


RuleAction = (
    SetCapacity
    | SetPolicy
    | DropPolicy
    | GivePolicy
    | SetProfile
    | DropProfile
    | Redirect
    | SetNode
    | EvictBorrowers
    | DrainPool
    | DropPool
)
Action = Submit | End | RuleAction


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """An action and where it stands in the file."""

    action: Action
    line: int
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectRequest:
    """What one request should be like. None: not asked.

    nodes: the nodes of its parts, in any order; node: the one node that all of its parts share.
    evicted_for, because: of a request that lets go or had to.
    """

    line: int
    request: str
    status: Status | None = None
    pool: str | None = None
    policy: Subject | None = None
    node: str | None = None
    nodes: tuple[str, ...] | None = None
    devices: int | None = None
    evicted_for: str | None = None
    because: Because | None = None
    reasons: frozenset[Code] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectOnlyAllocated:
    """Exactly these requests are `allocated`."""

    line: int
    requests: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectAllocated:
    """So many of the requests that were submitted together under one name are `allocated`."""

    line: int
    name: str
    requests: frozenset[str]
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectUsage:
    """So much of each named key is in use in a pool, evictions under way included (S19)."""

    line: int
    pool: str
    usage: tuple[tuple[str, int], ...]


Expectation = ExpectRequest | ExpectOnlyAllocated | ExpectAllocated | ExpectUsage


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step: the time moves (to `at`, or on by `advance`; microseconds), then `deeds` happen at once in their order,
    then the planner runs, then `expectations` are looked at."""

    number: int
    line: int
    at: int | None = None
    advance: int = 0
    deeds: tuple[Deed, ...] = ()
    expectations: tuple[Expectation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One story."""

    title: str
    file: str
    line: int
    setup: tuple[Event, ...]
    steps: tuple[Step, ...]

    @property
    def checks_something(self) -> bool:
        """Whether anything is expected at all."""
        return any(step.expectations for step in self.steps)

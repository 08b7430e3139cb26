"""Short ways to write down pools, policies, requests and worlds. Amounts are in units, as people write them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypedDict, Unpack

from fairpool.core import amounts
from fairpool.core import events as ev
from fairpool.core.ids import Instant, PolicyId, PoolId, RequestId
from fairpool.core.planner import decide
from fairpool.core.policies import DEFAULT_GRACE_S, Policy, Possible, Profile, Subject
from fairpool.core.pools import DEFAULT_MAX_BYPASS_S, Node, Ordering, Placement, Pool, PoolState
from fairpool.core.requests import Demand, Request
from fairpool.core.world import World

START = Instant(0)

Units = Mapping[str, object]
"""Amounts in units by key: ``{"gpu": 0.5}``."""


class PoolSettings(TypedDict, total=False):
    """What a pool may be told besides its capacity."""

    state: PoolState
    ordering: Ordering
    backfill: bool
    placement: Placement
    max_bypass_s: int
    components: frozenset[str]


def pool(
    name: str = "p",
    capacity: Units | None = None,
    *,
    nodes: Mapping[str, Units] | None = None,
    **settings: Unpack[PoolSettings],
) -> Pool:
    """A pool whose id is its name: ``pool("p", {"gpu": 8})``, ``pool(nodes={"n1": {"gpu": 4}})``."""
    return Pool(
        id=PoolId(name),
        name=name,
        capacity=amounts.vector(capacity or {}),
        nodes=tuple(Node(name=node, capacity=amounts.vector(units)) for node, units in (nodes or {}).items()),
        state=settings.get("state", PoolState.ACTIVE),
        ordering=settings.get("ordering", Ordering.FAIR),
        backfill=settings.get("backfill", True),
        placement=settings.get("placement", Placement.PACK),
        max_bypass_s=settings.get("max_bypass_s", DEFAULT_MAX_BYPASS_S),
        components=settings.get("components", frozenset()),
    )


class PolicySettings(TypedDict, total=False):
    """What a policy may be told besides its amounts. weight: in units, 1 where left out."""

    priority: int
    weight: float
    dedicated: bool
    grace_s: int
    min_runtime_s: int
    profiles: tuple[str, ...] | None
    also: tuple[str, ...]
    possible: Possible | None


def policy(
    subject: str = "team:t",
    reserved: Units | None = None,
    limit: Units | None = None,
    *,
    pool: str = "p",
    **settings: Unpack[PolicySettings],
) -> Policy:
    """A policy whose id names its pool and subject: ``policy("team:red", {"gpu": 4}, priority=10)``."""
    return Policy(
        id=PolicyId(f"{pool}/{subject}"),
        pool=PoolId(pool),
        subject=Subject.parse(subject),
        priority=settings.get("priority", 0),
        reserved=amounts.vector(reserved or {}),
        limit=tuple(sorted((key, int(amounts.amount(value))) for key, value in (limit or {}).items())),
        weight=int(amounts.amount(settings.get("weight", 1))),
        dedicated=settings.get("dedicated", False),
        grace_s=settings.get("grace_s", DEFAULT_GRACE_S),
        min_runtime_s=settings.get("min_runtime_s", 0),
        profiles=settings.get("profiles"),
        also=tuple(PoolId(each) for each in settings.get("also", ())),
        possible=settings.get("possible"),
    )


class RequestSettings(TypedDict, total=False):
    """What a request may be told besides what it wants."""

    queued_at: Instant
    preemptible: bool
    priority: int
    profile: str
    pool: str
    max_runtime_s: int | None
    wait_timeout_s: int | None


def request(
    name: str, subject: str | tuple[str, ...] = "team:t", *parts: Units, **settings: Unpack[RequestSettings]
) -> Request:
    """A request: ``request("r1", "team:red", {"gpu": 2})``; several parts are placed one by one (S3)."""
    subjects = (subject,) if isinstance(subject, str) else subject
    return Request(
        id=RequestId(name),
        subjects=tuple(Subject.parse(each) for each in subjects),
        demand=Demand(tuple(amounts.vector(part) for part in parts or ({"gpu": 1},))),
        queued_at=settings.get("queued_at", Instant(0)),
        preemptible=settings.get("preemptible", True),
        priority=settings.get("priority", 0),
        profile=settings.get("profile", ""),
        pool=settings.get("pool", ""),
        max_runtime_s=settings.get("max_runtime_s"),
        wait_timeout_s=settings.get("wait_timeout_s"),
    )


def world(*things: Pool | Policy | Profile | Request, require_policy: bool = False, now: Instant = START) -> World:
    """A world that holds these things, given in an order in which each may refer to what came before."""
    made = World()
    if require_policy:
        made.apply(ev.SettingsChanged(require_policy=True), now)
    for thing in things:
        made.apply(_event(thing), now)
    return made


def _event(thing: Pool | Policy | Profile | Request) -> ev.Event:
    match thing:
        case Pool():
            return ev.PoolSet(pool=thing)
        case Policy():
            return ev.PolicySet(policy=thing)
        case Profile():
            return ev.ProfileSet(profile=thing)
        case Request():
            return ev.Submitted(request=thing)


def settled(*things: Pool | Policy | Profile | Request, later: Iterable[Request] = (), now: Instant = START) -> World:
    """A world that has decided: about `things` first, then about each request of `later`, one by one."""
    made = world(*things, now=now)
    decide(made, now)
    for each in later:
        made.apply(ev.Submitted(request=each), now)
        decide(made, now)
    return made

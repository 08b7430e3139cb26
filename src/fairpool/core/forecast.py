"""When a waiting request will start, as far as is known: the planner run forward over what is known to end (S37)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from fairpool.core.ids import Instant, RequestId
from fairpool.core.planner import decide
from fairpool.core.requests import Status
from fairpool.core.world import World

MAX_STEPS = 200  # ends looked at; an estimate beyond so many endings would be worth little


class Basis(StrEnum):
    """What an estimate rests on."""

    GRACE_PERIOD = "grace period"  # an eviction is under way: not later than its deadline
    MAX_RUNTIME = "declared run times"  # running work ends when it said it would at the latest


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """That a request starts at about `at`, no later where everybody keeps to what `basis` says."""

    at: Instant
    basis: Basis


def estimate_start(world: World, request: RequestId, now: Instant) -> Estimate | None:
    """When the request starts if nothing more arrives and running work takes what it declared; None when unknown."""
    basis = Basis.GRACE_PERIOD
    with world.what_if():
        decide(world, now)
        for _ in range(MAX_STEPS):
            if world.status_of(request) in (Status.ALLOCATED, Status.PREEMPTING):
                return Estimate(at=now, basis=basis)
            if world.status_of(request) is None:
                return None
            upcoming = _next_end(world, now)
            if upcoming is None:
                return None
            now, ended = upcoming
            if ended is not None:
                world.let_go(ended)
                basis = Basis.MAX_RUNTIME
            decide(world, now)
    return None


def _next_end(world: World, now: Instant) -> tuple[Instant, RequestId | None] | None:
    """The next thing that time brings: a declared end (with whose), or a deadline that the decision itself handles."""
    ends = [(max(at, now), request) for books in world.books.values() for request, at in books.ends.items()]
    first = min(ends, default=None)
    moment = world.moments.next()
    if moment is not None and moment > now and (first is None or moment < first[0]):
        return moment, None
    return first

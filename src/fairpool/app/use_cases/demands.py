"""Demands as the core counts them: with the step slot that the server adds (S1)."""

from __future__ import annotations

from functools import lru_cache

from fairpool.core.amounts import STEP_RUN, WHOLE, of
from fairpool.core.policies import Profile
from fairpool.core.requests import Demand


@lru_cache(maxsize=10_000)
def with_step_slot(demand: Demand) -> Demand:
    """S1: every request takes one `step_run`, said by the server and never by the author."""
    first = of({**dict(demand.parts[0]), STEP_RUN: WHOLE})
    rest = tuple(tuple(pair for pair in part if pair[0] != STEP_RUN) for part in demand.parts[1:])
    return Demand((first, *rest))


def demand_of(profile: Profile, count: int = 1) -> Demand:
    """What a request for `count` parts of the profile asks for."""
    return with_step_slot(Demand.of(profile.demand, count))

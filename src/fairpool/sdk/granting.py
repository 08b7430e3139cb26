"""From settings to a request, and from what was granted to what a process sees of it."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping, Sequence
from typing import Final

from fairpool.sdk import devices
from fairpool.sdk.connection import setting
from fairpool.sdk.errors import InvalidUse
from fairpool.sdk.orchestrators.base import Grant
from fairpool.sdk.settings import ResourceSettings
from fairpool.wire.reading import InvalidBody, read
from fairpool.wire.requests import DEFAULT_LEASE_S, RequestCreate, RequestView

SUBJECTS_ENV: Final = "FAIRPOOL_SUBJECTS"
"""Further subjects of this program's requests, separated by commas: ``team:vision,user:ada``."""

LEASE_ENV: Final = "FAIRPOOL_LEASE_S"
"""Seconds for which a program is believed alive without a word from it (S35); 60 if it is not set."""

REQUEST: Final = "FAIRPOOL_REQUEST"
POOL: Final = "FAIRPOOL_POOL"
NAMES: Final = devices.CUDA


def request_for(
    settings: ResourceSettings,
    *,
    subjects: Sequence[str],
    name: str,
    pool: str | None = None,
    run: str | None = None,
    step: str | None = None,
    retry_of: str | None = None,
) -> RequestCreate:
    """The request that asks for what the settings say (S1, S3, S4), once: it carries a key of its own."""
    demand = settings.to_demand()
    return _read(
        {
            "demand": demand if demand or settings.profile is None else None,
            "node_count": settings.node_count or 1,
            "subjects": list(subjects),
            "pool": pool,
            "profile": settings.profile,
            # Unsaid, it is the profile's to say.
            "preemptible": settings.given().get("preemptible"),
            "priority": settings.priority or 0,
            "max_runtime_s": settings.max_runtime_s,
            "wait_timeout_s": settings.wait_timeout_s,
            "retry_of": retry_of,
            "lease_s": lease_s(),
            "name": name,
            "run": run,
            "step": step,
            "idempotency_key": uuid.uuid4().hex,
        }
    )


def _read(fields: dict[str, object]) -> RequestCreate:
    try:
        return read(RequestCreate, fields)
    except InvalidBody as error:
        told = [f"{problem.field}: {problem.message}; possible: {problem.possible}" for problem in error.problems]
        raise InvalidUse("; ".join(told)) from None


def subjects_around(*teams: str) -> tuple[str, ...]:
    """The subjects that the surroundings add: the teams chosen, else that of FAIRPOOL_TEAM, and FAIRPOOL_SUBJECTS."""
    chosen = teams or tuple(filter(None, [setting("team")]))
    named = tuple(f"team:{team.removeprefix('team:')}" for team in chosen)
    return (*named, *(text.strip() for text in os.environ.get(SUBJECTS_ENV, "").split(",") if text.strip()))


def team_of(subjects: Sequence[str]) -> str | None:
    """The one team that is named there; None for none or several, which then all count."""
    teams = {text.removeprefix("team:") for text in subjects if text.startswith("team:")}
    return teams.pop() if len(teams) == 1 else None


def lease_s() -> int:
    """How long the leases of this program are. Raises InvalidUse for what is no whole number of seconds."""
    text = os.environ.get(LEASE_ENV, "") or str(DEFAULT_LEASE_S)
    if not text.isdecimal() or not 1 <= int(text) <= 86_400:
        raise InvalidUse(f"{LEASE_ENV} is {text!r}; possible: whole seconds from 1 to 86400")
    return int(text)


def grant_of(view: RequestView) -> Grant:
    """What a request was granted."""
    held = view.allocation
    if held is None or held.pool is None:
        return Grant(request_id=view.id)
    indices: dict[str, tuple[int, ...]] = {}
    for part in held.parts:
        found = {*indices.get(part.node, ()), *(device.index for device in part.devices)}
        indices[part.node] = tuple(sorted(found))
    return Grant(request_id=view.id, pool=held.pool, policy=held.subject or held.policy, devices=indices)


def environment_of(grant: Grant, *, surroundings: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables that show a process exactly what it was granted.

    What no policy governs keeps its surroundings: nobody said which devices are its own (S15).
    """
    told = {REQUEST: grant.request_id}
    if not grant.governed:
        return told
    # A process runs on one node; with several parts on several nodes, the first is where it runs.
    here = next(iter(grant.devices.values()), ())
    return {**told, POOL: grant.pool or "", **devices.visible(here, surroundings=surroundings)}

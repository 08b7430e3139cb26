"""The figures of a report, as JSON has them. What each means stands in its description, and so in the schema.

Lengths of time are seconds, amounts are units of the report's resource (GPUs), and hours are units times hours.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

SCHEMA_VERSION = 1
"""Grows when a field goes or changes its meaning; new fields leave it as it is."""


def _sound(text: object) -> object:
    """Text that can be written in UTF-8: halves of pairs, which a trace in JSON may hold, are replaced."""
    return text.encode("utf-8", "replace").decode("utf-8") if isinstance(text, str) else text


Text = Annotated[str, BeforeValidator(_sound)]
"""Text of whatever origin."""


class _Figures(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Waits(_Figures):
    """How long jobs waited: all the time from being asked for to their end in which they did not run, after evictions
    too. Of one that has not ended, until the replay did."""

    jobs: int = Field(description="how many jobs these figures are of; refused ones are not")
    mean_s: float
    median_s: float
    p95_s: float = Field(description="95 of 100 waited no longer; between two jobs, interpolated")
    worst_s: float
    at_once: float = Field(description="the share, from 0 to 1, that did not wait at all")
    distribution: list[tuple[float, float]] = Field(
        default=[], description="pairs of a length of time and the share of jobs that waited no longer"
    )


class Group(_Figures):
    """Jobs that have something in common."""

    kind: Literal["all", "team", "pool", "profile"]
    name: Text = Field(description="'' of the jobs that have none: no profile, or no pool since they never started")
    jobs: int
    finished: int = Field(description="ran to their end, or as long as they had said")
    running: int
    waiting: int
    refused: int = Field(description="could never run, waited longer than they would, or lost their right")
    waits: Waits | None = Field(description="none where every job was refused")
    evictions: int = Field(description="how often jobs of the group had to let go for another")
    lost_hours: float = Field(description="units times hours of work that had to be done again")


class PoolUse(_Figures):
    """How one pool was used over time."""

    pool: Text
    capacity: float
    mean: float = Field(description="units in use, on average over the span")
    peak: float = Field(description="the most units in use at any moment")
    used: list[float] = Field(description="units in use, on average over each interval of the axis")
    reserved: list[float] | None = Field(
        description="units reserved, on average over each interval; none where a policy spans several pools"
    )


class TeamUse(_Figures):
    """What one subject's policies used, and how that stands to what is reserved for them."""

    team: Text
    reserved: float = Field(description="units reserved, on average over the span")
    used_hours: float
    borrowed_hours: float = Field(description="of what it used, what was above its reservations (S20)")
    lent_hours: float = Field(description="of its unused reservations, what others borrowed")


class Lending(_Figures):
    """What was borrowed altogether, and of whom. What is above a reservation takes what is reserved for nobody first,
    then of the unused reservations, from each in proportion to what of it is unused."""

    borrowed_hours: float
    from_unreserved_hours: float
    lent_hours: float
    lent: list[float] = Field(description="units lent, on average over each interval of the axis")
    from_unreserved: list[float]


class Evictions(_Figures):
    """How often work was told to let go."""

    count: int
    reclaims: int = Field(description="for somebody entitled")
    by_priority: int = Field(description="for somebody of higher priority")
    by_operator: int
    lost_hours: float = Field(description="units times hours of work that had to be done again")
    over_time: list[int] = Field(description="how many in each interval of the axis")


class Fairness(_Figures):
    """Finish-time fairness of one team: each job's time from being asked for to its end, divided by what it would be
    were its team alone on its reservation, first come first served. At most 1: sharing did not hurt it."""

    team: Text
    reservation: Text = Field(description="what it would be alone on; '' where nothing is reserved")
    jobs: int = Field(description="jobs that ended both here and alone")
    left_out: int = Field(description="jobs that did not: larger than the reservation, or not at their end here")
    within: float | None = Field(description="the share of jobs whose figure is at most 1")
    mean: float | None
    median: float | None
    p95: float | None
    worst: float | None
    later_jobs: int = Field(description="jobs that ended later than alone")


class Figures(_Figures):
    """One replay."""

    name: Text = Field(description="what the rules are called")
    decisions: int = Field(description="how often the planner was asked")
    groups: list[Group]
    pools: list[PoolUse]
    teams: list[TeamUse]
    lending: Lending
    evictions: Evictions
    fairness: list[Fairness] = Field(description="empty where it was not asked for")


FateName = Literal["waiting", "running", "done", "rejected", "cancelled", "expired"]
FATES: tuple[FateName, ...] = get_args(FateName)
"""The names of the ledger's fates, by their numbers."""


class Fared(_Figures):
    """How one job fared in one replay."""

    fate: FateName
    started_at: datetime | None
    ended_at: datetime | None
    wait_s: float
    evictions: int
    pool: Text


class Change(_Figures):
    """One job in both replays."""

    job: Text
    team: Text
    asks: Text
    submitted_at: datetime
    run_s: float
    first: Fared
    second: Fared
    later_s: float | None = Field(
        description="how much later it ends in the second, negative where sooner; none where it runs in only one"
    )
    at_least: bool = Field(description="one of the replays did not reach its end: it is later by that at least")
    explanation: list[Text] = Field(
        description="how it fared under the first rules, how under the second, and what of them differs for it"
    )


class Comparison(_Figures):
    """The second replay against the first, for the same jobs."""

    differences: list[Text] = Field(description="what differs between the rules, one sentence each")
    later: int = Field(description="jobs that end later in the second")
    sooner: int
    same: int
    unknown: int = Field(description="jobs that neither replay brought to an end, or only one of two cut short")
    mean_later_s: float | None = Field(description="over the jobs that ended in both; negative where sooner")
    lose: list[Change]
    gain: list[Change]


class Axis(_Figures):
    """The intervals of everything that is told over time: equally long ones from `begins_at` on."""

    begins_at: datetime
    step_s: float
    intervals: int


class Report(_Figures):
    """Everything that a simulation tells."""

    schema_version: int = SCHEMA_VERSION
    title: Text
    trace: Text
    command: Text = Field(description="what repeats this report")
    version: Text = Field(description="of Fairpool")
    seed: int | None
    options: dict[Text, Text]
    resource: str = Field(description="the resource key that amounts are of")
    unit: str = Field(description="how a unit of it is called: GPU")
    begins_at: datetime
    ends_at: datetime
    stopped: bool = Field(description="the replay was ended before the jobs were: figures are of what was reached")
    cut_short: bool = Field(
        default=False,
        description="the report was ended while it replayed again, and lacks some fairness or explanation",
    )
    axis: Axis
    replays: list[Figures] = Field(description="one, or two that are compared")
    comparison: Comparison | None

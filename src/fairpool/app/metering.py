"""What rounds did, as numbers: noted while a round runs, told once it is committed.

Nothing here looks at requests that merely wait: what it costs follows from what a round changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from fairpool.app.memory import Memory
from fairpool.app.records import HistoryEntry, Kind, RequestRecord
from fairpool.core.ids import SECOND, Instant, RequestId
from fairpool.core.plan import Plan
from fairpool.core.requests import Status


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantMade:
    """A grant of this round. Pool and policy by name, "" for work that no policy governs; waited_s: from its arrival
    (a retry's: of the attempt, not of the first one)."""

    pool: str
    policy: str
    profile: str
    waited_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundReport:
    """What one committed round did.

    decisions: how long each took, in seconds. commit_s: None where there was nothing to write.
    evictions: by pool and why. rejections: by code; a request that is impossible in several ways counts in each.
    submitted: requests that arrived. ended: those that became final, by status.
    """

    decisions: Sequence[float] = ()
    commit_s: float | None = None
    grants: Sequence[GrantMade] = ()
    evictions: Mapping[tuple[str, str], int] = field(default_factory=dict)
    rejections: Mapping[str, int] = field(default_factory=dict)
    submitted: int = 0
    ended: Mapping[str, int] = field(default_factory=dict)


class Meter(Protocol):
    """Counts what the scheduler does. Called on its thread; must return at once."""

    def round(self, report: RoundReport) -> None:
        """A round is over and committed."""

    def failed(self) -> None:
        """A round could not be committed."""


class Unmetered:
    """Counts nothing."""

    def round(self, report: RoundReport) -> None:
        """See `Meter`."""

    def failed(self) -> None:
        """See `Meter`."""


class Tally:
    """What a round does, noted as it goes."""

    def __init__(self) -> None:
        self.commit_s: float | None = None
        self._took: list[float] = []
        self._plans: list[Plan] = []

    def decided(self, plan: Plan, began: Instant, ended: Instant) -> None:
        """The round has taken a decision."""
        self._took.append((ended - began) / SECOND)
        if not plan.is_empty:
            self._plans.append(plan)

    def committed(self, began: Instant, ended: Instant) -> None:
        """The round is durable."""
        self.commit_s = (ended - began) / SECOND

    def report(self, memory: Memory, entries: Sequence[HistoryEntry]) -> RoundReport:
        """All of it, once committed. entries: the round's lines of history."""
        happened = Counter(entry.change.what for entry in entries if entry.change.kind is Kind.REQUEST)
        return RoundReport(
            decisions=self._took,
            commit_s=self.commit_s,
            grants=[_grant(record) for record in self._of(memory, "grants")],
            evictions=Counter(_eviction(record) for record in self._of(memory, "evictions")),
            rejections=Counter(
                code
                for plan in self._plans
                for reject in plan.rejects
                for code in {reason.code.value for reason in reject.reasons}
            ),
            submitted=happened[Status.QUEUED.value],
            ended={status.value: happened[status.value] for status in Status if status.is_final and happened[status]},
        )

    def _of(self, memory: Memory, part: str) -> Iterator[RequestRecord]:
        for plan in self._plans:
            for entry in plan.grants if part == "grants" else plan.evictions:
                record = memory.record(RequestId(entry.request))
                if record is not None and record.state.grant is not None:
                    yield record


def _grant(record: RequestRecord) -> GrantMade:
    grant = record.state.grant
    assert grant is not None
    return GrantMade(
        pool=grant.pool_name,
        policy=grant.subject,
        profile=record.request.profile,
        waited_s=max(0, grant.granted_at - record.submission.created_at) / SECOND,
    )


def _eviction(record: RequestRecord) -> tuple[str, str]:
    grant = record.state.grant
    assert grant is not None
    return grant.pool_name, grant.eviction.because.value if grant.eviction is not None else ""

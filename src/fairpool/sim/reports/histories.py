"""What happened to a few jobs of a replay, one after the other: stretches of waiting and of running."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from fairpool.core.ids import Instant
from fairpool.sim.ledger import NEVER, Evicted, Ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A time in which a job waited, or ran. until: the replay's end where it went on until then."""

    since: Instant
    until: Instant
    running: bool

    @property
    def length_us(self) -> int:
        """How long."""
        return self.until - self.since


@dataclass(slots=True, kw_only=True)
class History:
    """One job."""

    stretches: list[Stretch] = field(default_factory=list)
    evictions: list[Evicted] = field(default_factory=list)

    @property
    def longest_wait(self) -> Stretch | None:
        """The longest stretch of waiting that took any time; the first of equals."""
        waits = [stretch for stretch in self.stretches if not stretch.running and stretch.length_us]
        return max(waits, key=lambda stretch: (stretch.length_us, -stretch.since), default=None)


def histories(ledger: Ledger, jobs: Collection[int]) -> dict[int, History]:
    """What happened to these jobs, by number. One pass over the moves."""
    found = {job: History() for job in jobs if job < len(ledger.jobs)}
    since = {job: ledger.jobs[job].submitted_at for job in found}
    running = dict.fromkeys(found, False)
    for place, job in enumerate(ledger.move_job):
        if job in found:
            at, starts = Instant(ledger.move_at[place]), ledger.move_sign[place] > 0
            found[job].stretches.append(Stretch(since=since[job], until=at, running=not starts))
            since[job], running[job] = at, starts
    for job, history in found.items():
        if ledger.ended[job] == NEVER:
            history.stretches.append(Stretch(since=since[job], until=ledger.ended_at, running=running[job]))
        elif since[job] < ledger.ended[job]:  # it went away unserved
            history.stretches.append(Stretch(since=since[job], until=Instant(ledger.ended[job]), running=False))
    for evicted in ledger.evictions:
        if evicted.job in found:
            found[evicted.job].evictions.append(evicted)
    return found

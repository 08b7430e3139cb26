"""Replays for `simulation`: a trace or recorded demand under one or two sets of rules, without any server."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import FrameType

from fairpool.admin.simulated_rules import read_rules, rules_of
from fairpool.app.errors import AppError
from fairpool.app.ports import Stored
from fairpool.core.amounts import MCPU
from fairpool.core.errors import CoreError
from fairpool.core.ids import Instant
from fairpool.sim.jobs import Job, Order, in_order
from fairpool.sim.ledger import Ledger
from fairpool.sim.owners import Owners
from fairpool.sim.replay import Replay
from fairpool.sim.reports.outcome import Outcome
from fairpool.sim.scaling import scaled
from fairpool.sim.traces.formats import read_trace
from fairpool.store.memory import MemoryStore
from fairpool.wire.manifests.kinds import Document


class NothingToSimulate(Exception):
    """No job, or rules that a job cannot be asked under; says which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Rules to replay under. name: for people. paths: files and folders; or documents, where a server told them."""

    name: str
    paths: tuple[Path, ...] = ()
    documents: tuple[Document, ...] = ()

    def read(self, at: Instant) -> Stored:
        """What they put in force at that moment. Raises RulesFault."""
        return read_rules(self.paths, at) if self.paths else rules_of(self.documents, at, self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What is asked for: a file, or jobs that were recorded.

    since, until: only jobs asked for in this time. scale: how often each job is there, see `scaled`.
    """

    path: Path | None = None
    recorded: Sequence[Job] = ()
    named: str = ""
    processors_as: str = MCPU
    since: Instant | None = None
    until: Instant | None = None
    scale: Fraction = Fraction(1)
    seed: int = 0
    order: Order = Order.TRACE

    def jobs(self) -> list[Job]:
        """The jobs by time of arrival. Raises TraceFault, NothingToSimulate."""
        if self.path is not None:
            found: Sequence[Job] = read_trace(self.path, self.named, processors_as=self.processors_as)
        else:
            found = self.recorded
        chosen = [job for job in found if self._is_wanted(job)]
        jobs = in_order(chosen if self.scale == 1 else scaled(chosen, self.scale, self.seed), self.order)
        if not jobs:
            raise NothingToSimulate(f"none of {len(found):,} jobs was asked for in that time")
        return jobs

    def _is_wanted(self, job: Job) -> bool:
        early = self.since is not None and job.submitted_at < self.since
        late = self.until is not None and job.submitted_at >= self.until
        return not early and not late


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How a replay goes. cut: end it at `Demand.until`, rather than with the last job."""

    owners: Owners = field(default_factory=Owners)
    cut: bool = False


Told = Callable[[str, int, int], None]
"""Hears what is being done, how many jobs there are, and how many have arrived."""


def replay(demand: Demand, rules: Sequence[Rules], course: Course, told: Told) -> tuple[list[Outcome], bool]:
    """The jobs under each of these rules; and whether somebody stopped it before its end.

    Raises TraceFault, RulesFault, NothingToSimulate.
    """
    jobs = demand.jobs()
    read = [(one, one.read(jobs[0].submitted_at)) for one in rules]  # what is wrong is said before the long part
    outcomes: list[Outcome] = []
    with stoppable() as stopping:
        for one, stored in read:
            ledger = _replayed(jobs, stored, demand, course, stopping, partial(told, one.name, len(jobs)))
            outcomes.append(Outcome(name=one.name, rules=stored, ledger=ledger, owners=course.owners))
            if stopping:
                break
    return outcomes, bool(stopping)


def _replayed(
    jobs: Sequence[Job],
    stored: Stored,
    demand: Demand,
    course: Course,
    stopping: list[int],
    told: Callable[[int], None],
) -> Ledger:
    replay = Replay(stored, jobs, owners=course.owners, reader=MemoryStore().reader)

    def look(ledger: Ledger) -> None:
        told(len(ledger.jobs))
        if stopping:
            replay.stop()

    try:
        return replay.run(demand.until if course.cut else None, look)
    except (AppError, CoreError) as error:
        job = replay.ledger.jobs[-1].name if replay.ledger.jobs else jobs[0].name
        raise NothingToSimulate(f"job {job} cannot be asked for under these rules: {error}") from None


@contextmanager
def stoppable() -> Iterator[list[int]]:
    """Ctrl-C asks for an end, so that what was reached can be told; a second one interrupts."""
    asked: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        asked.append(number)
        signal.signal(signal.SIGINT, before)

    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, note)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)

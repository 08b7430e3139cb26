"""Two servers over one database, each with a scheduler of its own, that die, stand still and come back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from fairpool.app.leading import Leading
from fairpool.app.records import HistoryEntry
from fairpool.app.scheduler import Command, Scheduler, Work
from fairpool.core.audit import audit
from fairpool.core.ids import SECOND, Instant
from fairpool.testing import SequentialIds
from tests.simulation.faults import Chance, FailingStore, SkewedClock, Time

Reply = Callable[[Future[Any]], None]
"""What becomes of an answer."""

LONGEST_SLEEP_US = SECOND


class Told:
    """What a server has told those who wait: only what is committed may be there."""

    def __init__(self) -> None:
        self.entries: list[HistoryEntry] = []

    def publish(self, entries: Sequence[HistoryEntry]) -> None:
        self.entries.extend(entries)

    def elsewhere(self, leader: str) -> None:
        """Another server leads."""


class Server:
    """One process. `tick` is its scheduler's thread; what it had in memory goes with it when it dies."""

    def __init__(self, name: str, store: FailingStore, time: Time, chance: Chance, ids: SequentialIds) -> None:
        self.name, self.store, self.time, self.chance, self.ids = name, store, time, chance, ids
        self.clock = SkewedClock(time, chance)
        self.told = Told()
        self.inbox: list[tuple[Work[Any], Reply]] = []
        self.stands_until = Instant(0)
        self.due: Instant | None = None
        self.is_stopped = False  # in the middle of a round
        self.lives = 0
        self.start()

    def start(self) -> None:
        """A new process."""
        self.lives += 1
        leading = Leading(self.store, holder=f"{self.name}, life {self.lives}")
        self.scheduler = Scheduler(self.store, self.clock, self.ids, self.told, leading=leading)
        self.inbox.clear()  # who had called hears nothing

    @property
    def leads(self) -> bool:
        return self.scheduler.is_leading

    @property
    def knows(self) -> bool:
        """Whether it leads and has everything in memory."""
        return self.leads and self.scheduler._memory is not None

    def call(self, actor: str, command: Command[Any], reply: Reply) -> None:
        """A message arrives."""
        self.inbox.append((Work(Future(), actor=actor, command=command), reply))

    def tick(self) -> Instant:
        """One round; when the next one is due."""
        self.clock.may_step()
        now = self.time.now
        if now < self.stands_until and not self.chance.calm:
            return self.stands_until
        if self.chance.goes_wrong("server dies", 0.01):
            self.start()
            return Instant(now + 2 * SECOND)
        if self.chance.goes_wrong("server stands still", 0.01):
            self.stands_until = Instant(now + self.chance.random.choice([2, 4, 15]) * SECOND)
            return self.stands_until
        batch, self.inbox = self.inbox, []
        self.scheduler.cycle([work for work, _ in batch])
        self._check()
        for work, reply in batch:
            reply(work.future)
        wake_at = self.scheduler.wake_at
        if wake_at is None or not self.leads:
            return Instant(now + LONGEST_SLEEP_US)
        return Instant(min(max(wake_at - self.clock.off_us, now + SECOND // 20), now + LONGEST_SLEEP_US))

    def _check(self) -> None:
        """After every round: no invariant is broken in the memory of whoever leads."""
        if self.knows:
            violations = audit(self.scheduler.memory.world, self.clock.now())
            assert not violations, f"{self.name}: {violations}"

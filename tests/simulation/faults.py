"""What goes wrong, drawn from one seed: stores that fail, clocks that step, messages that get lost, late or doubled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from fairpool.app.ports import Leases, Reader, Store, Stored
from fairpool.app.records import Batch, Leadership
from fairpool.app.store_errors import StoreFull, StoreUnavailable
from fairpool.core.ids import SECOND, Instant

SKEW_US = SECOND // 2
"""How far a server's clock may be off: two differ by a second at most, as the page for operators asks for."""


@dataclass
class Chance:
    """Draws, and counts what it made go wrong. calm: nothing goes wrong any more."""

    random: Random
    calm: bool = False
    faults: Counter[str] = field(default_factory=Counter)

    def goes_wrong(self, what: str, likely: float) -> bool:
        """Whether that happens now."""
        if self.calm or self.random.random() >= likely:
            return False
        self.faults[what] += 1
        return True


class Time:
    """The time of the simulated world, which no server knows."""

    def __init__(self, start: Instant) -> None:
        self.now = start


class SkewedClock:
    """The clock of one server: off by a bit, and stepping, forward and back."""

    def __init__(self, time: Time, chance: Chance) -> None:
        self.time, self.chance, self.off_us = time, chance, 0

    def now(self) -> Instant:
        return Instant(self.time.now + self.off_us)

    def may_step(self) -> None:
        if self.chance.calm:
            self.off_us = 0
        elif self.chance.goes_wrong("clock steps", 0.02):
            self.off_us = self.chance.random.randint(-SKEW_US, SKEW_US)


class FailingStore:
    """A real store that sometimes cannot be reached, is full, or does not say whether a commit went through."""

    def __init__(self, store: Store, chance: Chance, time: Time) -> None:
        self.store, self.chance, self.time = store, chance, time
        self.away_until = Instant(0)
        self.stand_still: Callable[[int], None] = lambda seconds: None

    def _reached(self) -> None:
        if self.time.now < self.away_until and not self.chance.calm:
            raise StoreUnavailable("the database is away")
        if self.chance.goes_wrong("database goes away", 0.004):
            self.away_until = Instant(self.time.now + self.chance.random.choice([1, 5, 20]) * SECOND)
            raise StoreUnavailable("the database has gone away")

    @property
    def leases(self) -> Leases:
        return self

    @property
    def reader(self) -> Reader:
        return self.store.reader

    def commit(self, batch: Batch, token: int) -> int:
        self._reached()
        if self.chance.goes_wrong("disk full", 0.01):
            raise StoreFull("no room on the disk")
        if self.chance.goes_wrong("commit lost", 0.01):
            raise StoreUnavailable("the connection broke before the commit")
        if self.chance.goes_wrong("server stands still before its commit", 0.04):
            self.stand_still(self.chance.random.choice([1, 5, 9]))
        last = self.store.commit(batch, token)
        if self.chance.goes_wrong("answer of a commit lost", 0.01):
            raise StoreUnavailable("the connection broke, and nobody knows whether it was committed")
        return last

    def erase(self, token: int) -> bool:
        return self.store.erase(token)

    def load(self) -> Stored:
        self._reached()
        return self.store.load()

    def close(self) -> None:
        self.store.close()

    def acquire(self, holder: str, now: Instant, ttl_s: float, address: str = "") -> Leadership:
        self._reached()
        return self.store.leases.acquire(holder, now, ttl_s, address)

    def renew(self, token: int, now: Instant, ttl_s: float) -> Leadership:
        self._reached()
        return self.store.leases.renew(token, now, ttl_s)

    def release(self, token: int) -> None:
        self.store.leases.release(token)

    def current(self) -> Leadership | None:
        self._reached()
        return self.store.leases.current()

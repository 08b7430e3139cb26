"""The thread that runs one round after the other, as long as a server lives.

What arrives while a round commits makes up the next one, so many submissions share a commit. Who only asks never keeps
a decision waiting for longer than a few milliseconds: questions get so much of each round, and what takes longer to
find out goes on between rounds, in slices.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from fairpool.app.errors import NotLeading, Overloaded
from fairpool.app.forecaster import Foreseen, Wanted
from fairpool.app.leading import Heartbeat
from fairpool.app.ports import Clock
from fairpool.app.scheduler import Ask, Command, Scheduler, Work
from fairpool.core.ids import SECOND, Instant

Result = TypeVar("Result")

GATHER_S = 0.002
"""How long a round waits for as many calls as the last one answered, besides those that came meanwhile."""

MAX_WAITING = 20_000
"""Commands that may wait for the next round; more are refused, so that memory and waiting times stay bounded."""

MAX_BATCH = 2_000
"""Commands in one round: enough to share a commit, few enough that nobody waits long for it."""

ASKING_US = 5_000
"""How long one round looks things up for those who ask, so that those who want a decision have their turn."""

REST_S = 0.002
"""A pause between two slices of looking ahead, as long as a slice: other threads want to compute as well."""


class SchedulerLoop:
    """The scheduler's thread, and the one that keeps its lease alive meanwhile.

    opening: commands that whoever begins to lead runs first.
    """

    def __init__(self, scheduler: Scheduler, clock: Clock, *, opening: Sequence[Command[Any]] = ()) -> None:
        self._scheduler = scheduler
        self._clock = clock
        self._opening = tuple(opening)
        self._opened: int | None = None  # the leadership whose opening is done
        self._waiting: deque[Work[Any]] = deque()
        self._asking: deque[Work[Any]] = deque()  # that only asks
        self._wanted = 1  # how many must wait for the scheduler's thread to be woken
        self._condition = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="fairpool-scheduler", daemon=True)
        self._heartbeat = Heartbeat(scheduler.leading, clock)

    def start(self) -> None:
        """Begin to decide, or to follow who does; returns after the first round, so that what follows finds a ready
        server. Raises what the store raises when it cannot be loaded."""
        self._scheduler.lead()
        self._scheduler.cycle([])
        for done in self._open():
            done.result()
        self._heartbeat.start()
        self._thread.start()

    def stop(self) -> None:
        """Finish what has arrived, give the leadership back, and end."""
        with self._condition:
            self._stopping = True
            self._condition.notify()
        self._thread.join()
        self._heartbeat.stop()
        self._scheduler.resign()

    @property
    def is_leading(self) -> bool:
        """Whether this process is the scheduler."""
        return self._scheduler.is_leading

    def is_led(self, now: Instant) -> bool:
        """Whether some process is the scheduler, as was last seen."""
        leader = self._scheduler.leading.leader
        return self.is_leading or (leader is not None and leader.until > now)

    @property
    def waiting(self) -> int:
        """How many calls wait for a round."""
        return len(self._waiting) + len(self._asking)

    @property
    def leader_address(self) -> str:
        """Where the scheduler takes calls, as was last seen; "" while there is none, or where it does not say."""
        leader = self._scheduler.leading.leader
        return leader.address if leader is not None else ""

    def do(self, actor: str, command: Command[Result], source: str = "") -> Future[Result]:
        """Have a command run in the next round; the future is answered once it is committed."""
        return self._enqueue(Work(Future(), actor=actor, source=source, command=command))

    def ask(self, ask: Ask[Result]) -> Future[Result]:
        """Have something looked up between rounds."""
        return self._enqueue(Work(Future(), ask=ask))

    def foresee(self, wanted: Wanted) -> Future[Foreseen | None]:
        """Have it looked up when a request starts; None for one that does not wait."""
        return self._enqueue(Work(Future(), wanted=wanted))

    def _enqueue(self, work: Work[Result]) -> Future[Result]:
        with self._condition:
            if self._stopping:
                work.future.set_exception(NotLeading("the server is stopping: ask again in a moment"))
            elif self.waiting >= MAX_WAITING:
                work.future.set_exception(Overloaded(f"{self.waiting} calls are waiting: ask again in a moment"))
            else:
                (self._asking if work.command is None else self._waiting).append(work)
                if self.waiting >= self._wanted:
                    self._condition.notify()
        return work.future

    def _run(self) -> None:
        answered = 0
        while True:
            with self._condition:
                expected = answered + self.waiting
                while not self.waiting and not self._stopping:
                    timeout_s = self._idle_s()
                    if timeout_s <= 0 or not self._condition.wait(timeout_s):
                        break
                if self._stopping and not self.waiting:
                    return
                self._gather(min(expected, MAX_BATCH))
                batch, asking = _taken(self._waiting), _taken(self._asking)
            if batch or asking or not self._scheduler.is_looking_ahead or self._wakes_in_s() <= 0:
                left = self._scheduler.cycle([*batch, *asking], ASKING_US)
                with self._condition:
                    self._asking.extendleft(reversed(left))
                answered = len(batch) + len(asking) - len(left)
                self._open()
            self._scheduler.look_ahead()

    def _open(self) -> list[Future[Any]]:
        """Run the opening commands where this process has begun to lead."""
        token = self._scheduler.leading.token
        if token is None or token == self._opened or not self._opening:
            return []
        work: list[Work[Any]] = [Work(Future(), actor="system", command=command) for command in self._opening]
        self._scheduler.cycle(work)
        if all(item.future.exception() is None for item in work):
            self._opened = token
        return [item.future for item in work]

    def _gather(self, expected: int) -> None:
        """Those who were answered in the last round are about to call again: a round costs hardly more for them all."""
        if 0 < self.waiting < expected and not self._stopping:
            self._wanted = expected
            self._condition.wait(GATHER_S)
            self._wanted = 1

    def _idle_s(self) -> float:
        """For how long nothing is to be done if nobody calls."""
        return min(self._wakes_in_s(), REST_S) if self._scheduler.is_looking_ahead else self._wakes_in_s()

    def _wakes_in_s(self) -> float:
        wake_at = self._scheduler.wake_at
        return 1.0 if wake_at is None else max(0.0, min(60.0, (wake_at - self._clock.now()) / SECOND))


def _taken(waiting: deque[Work[Any]]) -> list[Work[Any]]:
    """As many as one round takes."""
    return [waiting.popleft() for _ in range(min(len(waiting), MAX_BATCH))]

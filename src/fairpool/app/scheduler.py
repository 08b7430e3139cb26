"""One round of deciding and remembering: take what has arrived, apply it, plan, commit, and only then tell anyone.

`Scheduler.cycle` is synchronous and deterministic; tests and the simulator call it as the server's thread does
(`scheduler_loop`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from fairpool.app import experience
from fairpool.app.errors import AppError, NotLeading
from fairpool.app.forecaster import Forecaster, Wanted
from fairpool.app.leading import FOLLOW_EVERY_S, Leading
from fairpool.app.memory import Memory
from fairpool.app.metering import Meter, Tally, Unmetered
from fairpool.app.ports import Clock, IdSource, Notifier, Store
from fairpool.app.records import HistoryEntry
from fairpool.app.store_errors import (
    ConstraintViolated,
    InvariantBroken,
    StaleLeader,
    StoreError,
    StoreUnavailable,
    StoreUnusable,
)
from fairpool.app.transaction import SCHEDULER, Transaction
from fairpool.app.use_cases import pools, windows
from fairpool.core import events as ev
from fairpool.core.errors import CoreError, InvalidRules
from fairpool.core.ids import SECOND, Instant, RequestId, seconds
from fairpool.core.planner import decide
from fairpool.core.pools import PoolState
from fairpool.core.requests import Status

_log = logging.getLogger(__name__)

Result = TypeVar("Result")

MAX_DECISIONS = 100
"""Decisions in one round; only grace periods of zero seconds need more than two."""

Command = Callable[[Transaction], Callable[[], Result]]
"""Changes something and returns what to answer once that is committed. It checks everything before it changes any."""

Ask = Callable[[Memory, Instant], Result]
"""Looks at the memory and changes nothing."""


@dataclass(slots=True)
class Work(Generic[Result]):
    """Something to be done in the next round, and where the answer goes."""

    future: Future[Result]
    actor: str = ""
    source: str = ""
    command: Command[Result] | None = None
    ask: Ask[Result] | None = None
    wanted: Wanted | None = None  # when it starts; answered once somebody has looked ahead


class Scheduler:
    """The one that decides. Not thread-safe: the loop's thread, or a test, calls it."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        ids: IdSource,
        notifier: Notifier,
        *,
        leading: Leading,
        meter: Meter | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._notifier = notifier
        self._meter = meter or Unmetered()
        self._memory: Memory | None = None
        self._experience: experience.Experience | None = None  # as long as this process schedules
        self._trouble: type[Exception] | None = None  # what went wrong last, so that the log says it once
        self._seen = ("", 0)  # who led and what was committed when this process last looked
        self._forecaster = Forecaster(clock)
        self.leading = leading
        self.wake_at: Instant | None = None

    @property
    def memory(self) -> Memory:
        """What is known. Raises NotLeading where this process does not schedule."""
        if self._memory is None:
            raise NotLeading("this server is not ready to decide yet: ask again in a moment")
        return self._memory

    @property
    def is_leading(self) -> bool:
        """Whether this process is the scheduler, as far as it knows."""
        return self.leading.token is not None

    def lead(self) -> bool:
        """Become or stay the scheduler; whether it is. Raises StoreError."""
        now = self._clock.now()
        try:
            leads = self.leading.keep(now)
        except StoreUnavailable:
            # Owners could not renew their leases meanwhile: once it is back, all of them begin anew (S35).
            self._memory = None
            raise
        if not leads:
            self._memory = self._experience = None
            self._follow()
            self.wake_at = Instant(now + seconds(FOLLOW_EVERY_S))
            return False
        if self._memory is None:
            stored = self._store.load()
            if self._experience is None:
                self._experience = experience.recalled(self._store.reader)
            self._memory = Memory(stored, self._clock.now(), self._experience)
            self._look(stored.history_seq)
        return True

    def _follow(self) -> None:
        """Tell those who wait here of what another server has committed."""
        self._look(self._store.reader.history.last_seq())
        self._trouble = None

    def _look(self, history_seq: int) -> None:
        leader = self.leading.leader
        seen, self._seen = self._seen, (leader.address if leader is not None else "", history_seq)
        if seen != self._seen:
            self._tell(lambda: self._notifier.elsewhere(self._seen[0]))

    def resign(self) -> None:
        """Give the leadership back, so that another can take it at once."""
        self.leading.resign()
        self._memory = self._experience = None
        self._forecaster.give_up(NotLeading("the server is stopping: ask again in a moment"))

    @property
    def is_looking_ahead(self) -> bool:
        """Whether somebody waits to hear when something starts."""
        return self._forecaster.is_busy

    def look_ahead(self) -> None:
        """Look ahead for a few milliseconds, for those who want to know when something starts."""
        if self._memory is not None:
            self._forecaster.go_on(self._memory)

    def cycle(self, work: Sequence[Work[Any]], asking_us: int | None = None) -> list[Work[Any]]:
        """One round. Every future in `work` is answered when it returns, or will be by `look_ahead`. asking_us: for how
        long things are looked up at most; what there was no time for is returned."""
        asking = [item for item in work if item.command is None]
        try:
            self._must_lead()
        except Exception as error:  # noqa: BLE001 (whoever asked must hear of it, whatever it is)
            self._give_up(work, error)
            self._forecaster.give_up(error)
            return []
        self._round([item for item in work if item.command is not None], self._clock.now())
        try:
            if asking:
                self._must_lead()  # a round that failed has thrown the memory away
            return self._look_up(asking, asking_us)
        except Exception as error:  # noqa: BLE001 (the same)
            self._give_up(asking, error)
            return []

    def _must_lead(self) -> None:
        """Raises NotLeading where another does; StoreError."""
        if not self.lead():
            raise NotLeading("another server is the scheduler: ask again in a moment")

    def _look_up(self, work: Sequence[Work[Any]], asking_us: int | None) -> list[Work[Any]]:
        """Answer who only asks; those that there was no time for are returned."""
        began = self._clock.now()
        for number, item in enumerate(work):
            now = self._clock.now()
            if asking_us is not None and now - began > asking_us:
                return list(work[number:])
            if item.ask is not None:
                _answer(item, partial(item.ask, self.memory, now))
            elif item.wanted is not None:
                self._forecaster.want(item.wanted, item.future, self.memory)
        return []

    def _round(self, work: Sequence[Work[Any]], now: Instant) -> None:
        transaction, tally = Transaction(self.memory, self._ids, self._store.reader, now), Tally()
        try:
            windows.turn(transaction)
            answers = self._run(work, transaction)
            self._decide(transaction, now, tally)
            entries = self._commit(transaction, now, tally)
        except Exception as error:  # noqa: BLE001 (whatever it was, the memory may be ahead of the store)
            self._memory = None  # a restart is the same thing
            self._meter.failed()
            if len(work) > 1 and not isinstance(error, StaleLeader | StoreUnavailable | StoreUnusable):
                self._in_halves(work)
            else:
                self._give_up(work, error)
            return
        if entries:
            self._tell(lambda: self._notifier.publish(entries))
        transaction.memory.experience.saw_all(transaction.memory.ended.values())
        self._count(tally, transaction.memory, entries)
        for item, answer in answers:
            _answer(item, answer)

    def _tell(self, tell: Callable[[], None]) -> None:
        try:
            tell()
        except Exception:  # noqa: BLE001 (what is committed stays committed)
            _log.exception("those who wait could not be told")

    def _count(self, tally: Tally, memory: Memory, entries: Sequence[HistoryEntry]) -> None:
        try:
            self._meter.round(tally.report(memory, entries))
        except Exception:  # noqa: BLE001 (what is committed stays committed)
            _log.exception("what a round did could not be counted")

    def _in_halves(self, work: Sequence[Work[Any]]) -> None:
        """One of these spoils the round: find it by halves, so that it fails alone and the others go through."""
        half = len(work) // 2
        self.cycle(work[:half])
        self.cycle(work[half:])

    def _give_up(self, work: Sequence[Work[Any]], error: Exception) -> None:
        now = self._clock.now()
        if isinstance(error, StaleLeader):
            _log.warning("a commit was refused: %s", error)
            self.leading.step_down()
            self.wake_at = Instant(now + seconds(FOLLOW_EVERY_S))
        elif not isinstance(error, NotLeading):  # then `wake_at` says when to look who leads
            self._note_trouble(error)
            self.wake_at = Instant(now + SECOND)
        for item in work:
            _answer(item, partial(_raise, error))

    def _note_trouble(self, error: Exception) -> None:
        """Log what went wrong, once until something has worked again. A caller's mistakes only the caller hears."""
        bug = isinstance(error, InvariantBroken) or not isinstance(error, StoreError | AppError | CoreError)
        mistake = isinstance(error, AppError | CoreError | ConstraintViolated) and not bug
        if type(error) is self._trouble or mistake:
            return
        self._trouble = type(error)
        if bug:
            _log.error("a round failed: %s", error, exc_info=error)
        else:
            _log.warning("nothing can be decided for now: %s", error)

    def _run(self, work: Sequence[Work[Any]], transaction: Transaction) -> list[tuple[Work[Any], Callable[[], Any]]]:
        """Run the commands; one that refuses has changed nothing and fails alone."""
        answers: list[tuple[Work[Any], Callable[[], Any]]] = []
        for item in work:
            assert item.command is not None
            before = transaction.writes
            transaction.actor, transaction.source = item.actor, item.source
            try:
                answers.append((item, item.command(transaction)))
            except (AppError, CoreError, StoreError) as error:
                if transaction.writes != before:
                    raise  # half done: the round as a whole must fail
                # Told after the commit like every answer: a refusal may rest on what this round has yet to commit.
                answers.append((item, partial(_raise, error)))
        return answers

    def _decide(self, transaction: Transaction, now: Instant, tally: Tally) -> None:
        memory = transaction.memory
        for request in memory.leases.lapsed(now):
            _expire(transaction, request, cause="lease lapsed", ended_by="lease")
        for request in memory.runtimes.over(now):
            _expire(transaction, request, cause="max_runtime_s is over", ended_by="max_runtime_s")
        for _ in range(MAX_DECISIONS):
            began = self._clock.now()
            plan = decide(memory.world, now)
            tally.decided(plan, began, self._clock.now())
            transaction.carry_out(plan)
            drained = self._drop_drained(transaction)
            self.wake_at = plan.wake_at
            if not drained and (plan.wake_at is None or plan.wake_at > now):
                break
        windows.settle(memory, now)
        ends = (
            self.wake_at,
            memory.leases.next_lapse(),
            memory.runtimes.next_end(),
            memory.timetable.next(),
            self.leading.renew_at,
        )
        moments = [at for at in ends if at is not None]
        self.wake_at = min(moments)

    def _drop_drained(self, transaction: Transaction) -> bool:
        """A draining pool goes when the last work there has ended (S10)."""
        memory, dropped = transaction.memory, False
        for pool_id, books in list(memory.world.books.items()):
            if books.pool.state is PoolState.DRAINING and not books.allocations:
                try:
                    pools.drop(transaction, memory.pool(pool_id), cause="drained")
                except InvalidRules as error:
                    _log.warning("pool %s has drained and cannot go: %s", books.pool.name, error.message)
                else:
                    dropped = True
        return dropped

    def _commit(self, transaction: Transaction, now: Instant, tally: Tally) -> list[HistoryEntry]:
        memory = transaction.memory
        batch = transaction.batch(memory.leases.unwritten(now))
        if batch.is_empty:
            return []
        token = self.leading.token
        assert token is not None
        began = self._clock.now()
        last = self._store.commit(batch, token)
        tally.committed(began, self._clock.now())
        self._trouble = None
        if batch.renewed:
            memory.leases.written((request for request, _ in batch.renewed), now)
        first = last - len(batch.changes) + 1
        memory.history_seq = last
        return [HistoryEntry(seq=first + at, change=change) for at, change in enumerate(batch.changes)]


def _expire(transaction: Transaction, request: RequestId, *, cause: str, ended_by: str) -> None:
    before = transaction.world.status_of(request)
    if before is None:
        return
    transaction.actor, transaction.source = SCHEDULER, ""
    transaction.apply(ev.Ended(request=request, how=Status.EXPIRED))
    status = Status.PREEMPTED if before is Status.PREEMPTING else Status.EXPIRED
    transaction.end(request, status, cause=cause, ended_by=ended_by)


def _answer(item: Work[Any], answer: Callable[[], Any]) -> None:
    """Answer the future; nobody hears of it where the caller has gone."""
    if not item.future.set_running_or_notify_cancel():
        return
    try:
        item.future.set_result(answer())
    except Exception as error:  # noqa: BLE001 (it is the caller's to hear, and must not end the loop)
        item.future.set_exception(error)


def _raise(error: Exception) -> None:
    raise error

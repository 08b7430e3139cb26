"""Who asks: clients that repeat what was not answered, and owners that run, renew, let go, or vanish."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from fairpool.app.errors import AppError, NotLeading, Overloaded
from fairpool.app.records import RequestRecord
from fairpool.app.store_errors import StoreError
from fairpool.app.use_cases import requests
from fairpool.core.errors import CoreError
from fairpool.core.ids import Instant, RequestId
from fairpool.core.requests import Status

if TYPE_CHECKING:
    from tests.simulation.run import Simulation

LEASE_S = 12
RENEW_EVERY_S = 4
LOOK_EVERY_S = 2
PATIENCE_S = 3
"""How long a client waits for an answer before it calls again."""


@dataclass
class Call:
    """Something that a client wants done exactly once: sent again, anywhere, until an answer arrives."""

    world: Simulation
    actor: str
    make: Callable[[], Any]
    answered: Callable[[Any], None]
    done: bool = False
    tries: int = 0

    def send(self) -> None:
        if self.done:
            return
        self.tries += 1
        self.world.deliver(self.actor, self.make(), self.hear)
        self.world.later(PATIENCE_S, self.send)

    def hear(self, future: Future[Any]) -> None:
        """An answer; it may be late, or the second."""
        error = future.exception()
        if self.done or isinstance(error, StoreError | NotLeading | Overloaded):
            return
        self.done = True
        self.answered(error if error is not None else future.result())


@dataclass
class Owner:
    """Who made a request, and holds what it is granted."""

    world: Simulation
    number: int
    ask: requests.Ask
    run_s: int
    lets_go_after_s: int
    vanishes_at: Instant | None
    request: RequestId | None = None
    attempt: int = 0
    status: Status = Status.QUEUED
    seen: list[Status] = field(default_factory=list)
    started: bool = False
    ending: bool = False

    @property
    def actor(self) -> str:
        return f"user:u{self.number % 3}"

    def submit(self) -> None:
        self.request, self.started, self.ending, self.status = None, False, False, Status.QUEUED
        given = replace(self.ask, idempotency_key=f"key-{self.number}-{self.attempt}")
        self.world.asked.add(given.idempotency_key)
        Call(self.world, self.actor, lambda: partial(_submit, given), self.submitted).send()

    def submitted(self, answer: object) -> None:
        assert isinstance(answer, RequestRecord), f"refused: {answer!r}"
        key = answer.submission.idempotency_key
        known = self.world.acknowledged.setdefault(key, answer.id)
        assert known == answer.id, f"{key} made {known} and {answer.id}"
        self.request = answer.id
        self.look(answer)
        self.world.later(RENEW_EVERY_S, self.renew)
        self.world.later(LOOK_EVERY_S, self.watch)

    @property
    def is_through(self) -> bool:
        """Whether nothing more will come of it."""
        return not self.is_there

    @property
    def is_there(self) -> bool:
        gone = self.vanishes_at is not None and self.world.time.now >= self.vanishes_at
        return not self.status.is_final and not gone

    def renew(self) -> None:
        if self.request is None or not self.is_there:
            return
        self.world.deliver(self.actor, partial(_renew, [self.request]), _ignored)
        self.world.later(RENEW_EVERY_S, self.renew)

    def watch(self) -> None:
        """Look how it stands, as a client does that polls."""
        if self.request is None or not self.is_there:
            return
        self.world.deliver(self.actor, partial(_get, self.request), self.looked)
        self.world.later(LOOK_EVERY_S, self.watch)

    def looked(self, future: Future[Any]) -> None:
        if future.exception() is None:
            self.look(future.result())

    def look(self, record: RequestRecord) -> None:
        if record.id != self.request or self.status.is_final:
            return
        self.status = record.status
        if record.status is Status.ALLOCATED and not self.started:
            self.started = True
            self.world.later(self.run_s, partial(self.end, self.request))
        elif record.status is Status.PREEMPTING and not self.ending:
            self.ending = True
            self.world.later(self.lets_go_after_s, partial(self.end, self.request))
        elif record.status is Status.PREEMPTED and self.attempt < 3:
            self.attempt += 1
            self.ask = replace(self.ask, retry_of=record.id)
            self.submit()

    def end(self, request: RequestId) -> None:
        if request != self.request or not self.is_there:
            return
        Call(self.world, self.actor, lambda: partial(_release, request), partial(self.ended, request)).send()

    def ended(self, request: RequestId, answer: object) -> None:
        """It is final, whoever ended it: the owner's lease may have lapsed meanwhile."""
        if isinstance(answer, RequestRecord):
            assert answer.status.is_final, f"released, and {answer.status}"
            self.world.released.add(request)
            self.look(answer)
        else:
            assert isinstance(answer, AppError | CoreError), repr(answer)
            self.status = Status.EXPIRED if self.status is not Status.PREEMPTED else self.status


def _submit(given: requests.Ask, tx: Any) -> Any:
    return requests.submit(tx, given)


def _renew(ids: list[RequestId], tx: Any) -> Any:
    return requests.renew(tx, ids)


def _get(request: RequestId, tx: Any) -> Any:
    return lambda: requests.get(tx.memory, tx.reader, request)


def _release(request: RequestId, tx: Any) -> Any:
    return requests.release(tx, request)


def _ignored(future: Future[Any]) -> None:
    """Whoever renews hears of losses when it looks."""

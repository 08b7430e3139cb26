"""All requests of this process in one place: what they ask for, what becomes of them, and their leases (S35).

Three threads serve any number of requests: one makes calls, the most urgent first (submissions that
have gathered meanwhile go out as one), one follows what happens to requests, one renews the leases of all of them.
"""

from __future__ import annotations

import itertools
import logging
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, TypeVar

from fairpool.sdk.api import Api
from fairpool.sdk.errors import Refused, Unreachable
from fairpool.wire.events import Event
from fairpool.wire.requests import DEFAULT_LEASE_S, BulkItem, RequestCreate, RequestView
from fairpool.wire.values import RequestStatus

RENEWALS: Final = 4
"""Renewals in the length of a lease: three may fail before it lapses (S35)."""

GIVE_UP_AFTER_S: Final = 120.0
"""Calls are tried again for so long: a server that is started again is back well before."""

MOST_AT_ONCE: Final = 100
"""Submissions in one call: few enough that a release does not wait long behind them."""

MOST_RENEWED_AT_ONCE: Final = 1_000
"""Leases in one call."""

STRANGERS: Final = 10_000
"""How many requests of others, or not yet known as this program's own, are remembered to have changed."""

FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 5.0
log = logging.getLogger("fairpool.sdk")

T = TypeVar("T")
Listener = Callable[[RequestView], None]


@dataclass(slots=True)
class Tracked:
    """A request that this process owns, as it was last seen."""

    listener: Listener
    version: int
    status: RequestStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A request to be made.

    prepare: makes it, on the calling thread, just before it goes out (it may call the server itself).
    listener: hears every change of its status, from one of the broker's threads; it must be quick.
    failed: hears that the server refused to take it, or could not be reached for long.
    """

    prepare: Callable[[], RequestCreate]
    listener: Listener
    failed: Callable[[Exception], None]


class Urgency(IntEnum):
    """Which calls are made first: others wait for what is let go; of what is only told nothing depends."""

    LET_GO = 0
    SUBMIT = 1
    REPORT = 2


Queued = tuple[Urgency, int, Submission | Callable[[], object]]
"""A call with its place: by urgency, then in the order in which it was asked for."""


class Broker:
    """The requests of this process. Its threads start with the first of them."""

    def __init__(self, api: Api, *, renew_every_s: float = DEFAULT_LEASE_S / RENEWALS) -> None:
        self.api = api
        self._renew_every_s = renew_every_s
        self._calls: queue.PriorityQueue[Queued] = queue.PriorityQueue()
        self._count = itertools.count()
        self._tracked: dict[str, Tracked] = {}
        self._strangers: dict[str, None] = {}
        self._lock = threading.Lock()
        self._started = False
        self._some = threading.Event()
        self._closed = threading.Event()
        self._connection = 0  # counts connections to the stream of events

    def submit(self, submission: Submission) -> None:
        """Make a request; its listener and `failed` hear what becomes of it. Returns at once."""
        self._put(Urgency.SUBMIT, submission)

    def call(self, action: Callable[[], object]) -> None:
        """Have `action` make its calls, after what was asked for before. Failures are logged, not raised."""
        self._put(Urgency.REPORT, action)

    def release(self, request: str) -> None:
        """Let go of what a request holds. Returns at once."""
        self._let_go(request, lambda: self.api.release(request))

    def cancel(self, request: str, reason: str) -> None:
        """Withdraw a request. Returns at once."""
        self._let_go(request, lambda: self.api.cancel(request, reason))

    def flush(self, timeout_s: float = 30) -> bool:
        """Wait until everything that was asked for so far has been called; False where it was not in time."""
        done = threading.Event()
        self._put(Urgency.REPORT, done.set)
        return done.wait(timeout_s)

    def close(self) -> None:
        """End its threads, after the calls that were asked for so far. Leases are not renewed any more."""
        self._closed.set()
        self._some.set()
        if self._started:
            self._put(Urgency.REPORT, _no_more)

    def _let_go(self, request: str, action: Callable[[], object]) -> None:
        """Nobody listens any more, but the lease is kept until the call was made."""
        with self._lock:
            if request in self._tracked:
                self._tracked[request].listener = _ignore

        def let_go() -> None:
            try:
                action()
            except Refused as error:
                log.debug("request %s: %s", request, error)
            self._forget(request)

        self._put(Urgency.LET_GO, let_go)

    def _put(self, urgency: Urgency, item: Submission | Callable[[], object]) -> None:
        self._start()
        self._calls.put((urgency, next(self._count), item))

    def _start(self) -> None:
        with self._lock:
            if self._started:
                return
            self._started = True
        for name, target in (("calls", self._make_calls), ("watch", self._follow), ("leases", self._renew)):
            threading.Thread(target=target, name=f"fairpool-{name}", daemon=True).start()

    # ── the calling thread ──────────────────────────────────────────────────────────────────────────────────────────

    def _make_calls(self) -> None:
        while True:
            _, _, item = self._calls.get()
            if item is _no_more:
                return
            if not isinstance(item, Submission):
                _safely(lambda action=item: self._insist(action))  # type: ignore[misc]
                continue
            batch = [item]
            while len(batch) < MOST_AT_ONCE:
                try:
                    following = self._calls.get_nowait()
                except queue.Empty:
                    break
                if not isinstance(following[2], Submission):
                    self._calls.put(following)  # its number keeps it in its place
                    break
                batch.append(following[2])
            self._submit(batch)

    def _submit(self, batch: list[Submission]) -> None:
        ready: list[tuple[Submission, RequestCreate]] = []
        for submission in batch:
            try:
                ready.append((submission, self._insist(submission.prepare)))
            except Exception as error:  # noqa: BLE001 (one that cannot be prepared fails alone, whoever prepared it)
                _safely(lambda s=submission, e=error: s.failed(e))  # type: ignore[misc]
        if not ready:
            return
        connection = self._connection
        try:
            items = self._insist(lambda: self.api.create_requests([create for _, create in ready]))
        except (Unreachable, Refused) as error:
            for submission, _ in ready:
                _safely(lambda s=submission, e=error: s.failed(e))  # type: ignore[misc]
            return
        for (submission, _), item in zip(ready, items, strict=True):
            _safely(lambda s=submission, i=item: self._submitted(s, i, connection))  # type: ignore[misc]

    def _submitted(self, submission: Submission, item: BulkItem, connection: int) -> None:
        if item.request is None:
            problem = item.problem
            text = (problem.detail or problem.title) if problem is not None else "the server gave no reason"
            text += f"; {problem.help}" if problem is not None and problem.help else ""
            submission.failed(Refused(text, code=problem.status if problem is not None else 500))
            return
        view = item.request
        with self._lock:
            if not view.status.is_final:
                self._tracked[view.id] = Tracked(submission.listener, view.version, view.status)
                self._some.set()
            overtaken = view.id in self._strangers or connection != self._connection
        submission.listener(view)
        if overtaken:
            # An event came before the answer to the call that made the request, or could have.
            self._look_at(view.id)

    def _insist(self, action: Callable[[], T]) -> T:
        """Make the call until the server answers, for GIVE_UP_AFTER_S at most."""
        deadline = time.monotonic() + GIVE_UP_AFTER_S
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                return action()
            except Unreachable:
                if time.monotonic() >= deadline:
                    raise
            time.sleep(pause_s)
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)

    # ── the watching thread ─────────────────────────────────────────────────────────────────────────────────────────

    def _follow(self) -> None:
        after: int | None = None
        pause_s = FIRST_PAUSE_S
        while not self._closed.is_set():
            self._some.wait()
            try:
                events = self.api.request_events(after)
                with self._lock:
                    self._connection += 1
                # Connected: whatever was missed before shows in the leases.
                self._look_at_all()
                for event in events:
                    if self._closed.is_set():
                        return
                    after = event.id
                    pause_s = FIRST_PAUSE_S
                    self._seen(event)
            except (Unreachable, Refused) as error:
                log.debug("following requests: %s", error)
            except Exception:
                log.exception("following requests")
            self._closed.wait(pause_s)
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)

    def _seen(self, event: Event) -> None:
        with self._lock:
            known = event.object in self._tracked
            if not known:
                self._strangers[event.object] = None
                while len(self._strangers) > STRANGERS:
                    del self._strangers[next(iter(self._strangers))]
        if known:
            self._look_at(event.object)

    def _look_at(self, request: str) -> None:
        try:
            view = self.api.get_request(request)
        except Refused as error:
            log.debug("request %s: %s", request, error)
            return
        with self._lock:
            tracked = self._tracked.get(request)
            if tracked is None or view.version <= tracked.version:
                return
            tracked.version = view.version
            changed, tracked.status = tracked.status != view.status, view.status
            if view.status.is_final:
                self._drop(request)
        if changed:
            _safely(lambda: tracked.listener(view))

    # ── the leasing thread ──────────────────────────────────────────────────────────────────────────────────────────

    def _renew(self) -> None:
        while True:
            self._some.wait()
            if self._closed.wait(self._renew_every_s):
                return
            try:
                self._look_at_all()
            except (Unreachable, Refused) as error:
                log.warning("the leases of this program's requests could not be renewed: %s", error)
            except Exception:
                log.exception("renewing leases")

    def _look_at_all(self) -> None:
        """Renew all leases; a request whose status is not the one last seen is looked at."""
        with self._lock:
            requests = list(self._tracked)
        for start in range(0, len(requests), MOST_RENEWED_AT_ONCE):
            for lease in self.api.renew(requests[start : start + MOST_RENEWED_AT_ONCE]).items:
                with self._lock:
                    tracked = self._tracked.get(lease.request)
                if tracked is not None and tracked.status != lease.status:
                    self._look_at(lease.request)

    def _forget(self, request: str) -> None:
        with self._lock:
            self._drop(request)

    def _drop(self, request: str) -> None:
        self._tracked.pop(request, None)
        if not self._tracked:
            self._some.clear()


def _no_more() -> None:
    """Put among the calls as the last one."""


def _ignore(view: RequestView) -> None:
    """The listener of a request that is let go."""


def _safely(action: Callable[[], object]) -> None:
    """A failing call or listener must not end the thread that serves all the others."""
    try:
        action()
    except (Unreachable, Refused) as error:
        log.debug("a call was refused: %s", error)
    except Exception:
        log.exception("a call failed")

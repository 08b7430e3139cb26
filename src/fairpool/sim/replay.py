"""Jobs of a trace under given rules: the real decisions on a virtual clock, with scripted owners.

Rules are as a store gives them back; who is in which team, what profiles say, windows and declared run times are the
application's own, and every decision is the planner's. What a server does besides, it does for those who ask: records,
history, leases that their owners renew. None of that decides anything, so it is left out; a test holds that a server
with a store decides the same.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from typing import NamedTuple

from fairpool.app.authz import OWNER, Principal, Role
from fairpool.app.memory import Memory
from fairpool.app.ports import Reader, Stored
from fairpool.app.transaction import Transaction
from fairpool.app.use_cases import windows
from fairpool.app.use_cases.requests import Ask, build, reckoned_wait_timeout_s, with_defaults
from fairpool.core import events as ev
from fairpool.core.ids import Instant, RequestId, seconds
from fairpool.core.plan import Evict, Grant, Plan
from fairpool.core.planner import arrive, decide, is_settled
from fairpool.core.policies import Subject, SubjectKind
from fairpool.core.requests import Demand, Request, Status
from fairpool.sim.jobs import Job
from fairpool.sim.ledger import NEVER, Evicted, Fate, Ledger
from fairpool.sim.owners import Owners

TOLD_EVERY = 2_000
"""Moments between two reports of progress: some ten a second."""

_PEOPLE = (SubjectKind.USER, SubjectKind.SERVICE_ACCOUNT)


class _Shape(NamedTuple):
    """What requests have in common that are made alike."""

    subjects: tuple[Subject, ...]
    demand: Demand | None
    profile: str
    pool: str
    preemptible: bool


class _Due(NamedTuple):
    """That an attempt of a job ends: by itself, or because it was told to let go. Before all, by time and number."""

    at: Instant
    job: int
    attempt: int
    lets_go: bool
    request: RequestId


class Replay:
    """One replay. `run` goes through it; `ledger` says what became of the jobs, at any time.

    jobs: by time of arrival. reader: what the application looks things up in that are in no memory.
    """

    def __init__(self, rules: Stored, jobs: Iterable[Job], *, owners: Owners, reader: Reader) -> None:
        self.ledger = Ledger()
        self._jobs = iter(jobs)
        self._next_job = next(self._jobs, None)
        self._now = self._next_job.submitted_at if self._next_job is not None else Instant(0)
        self.ledger.began_at = self.ledger.ended_at = self._now
        self._memory = Memory(rules, self._now)
        self._world = self._memory.world
        self._runtimes = self._memory.runtimes
        self._turns_at = self._memory.timetable.next()  # when windows turn next, and when somebody has run too long
        self._overrun_at: Instant | None = None
        self._owners = owners
        self._reader = reader
        self._shapes: dict[_Shape, Request] = {}
        self._due: list[_Due] = []
        self._wake_at: Instant | None = None
        self._attempts: list[int] = []  # by job: how often it has been queued, less one
        self._done_us: dict[int, int] = {}  # by job: what earlier attempts have done for good, where that is anything
        self._queued_at = array("q")  # by job: its place, which a retry keeps (S24)
        self._overdue: list[RequestId] = []  # evicted, and ended by their declared run time before they let go
        self._stopped = False

    def stop(self) -> None:
        """End after this moment, with what was reached."""
        self._stopped = True

    def run(self, until: Instant | None = None, told: Callable[[Ledger], None] | None = None) -> Ledger:
        """Go on until nothing more happens, or that moment. told: hears of progress now and then."""
        count = 0
        while not self._stopped:
            now = self._next_moment()
            if now is None or (until is not None and now > until):
                break
            self._now = self.ledger.ended_at = now
            self._pass(now)
            count += 1
            if told is not None and count % TOLD_EVERY == 0:
                told(self.ledger)
        if until is not None and not self._stopped:
            self.ledger.ended_at = until
        return self.ledger

    def _next_moment(self) -> Instant | None:
        job, due = self._next_job, self._due
        if job is None and not due and not len(self._world.queue):
            return None  # nobody is left; that windows turn for ever does not matter
        self._overrun_at = self._runtimes.next_end()
        soonest = None if job is None else job.submitted_at
        for at in (due[0].at if due else None, self._wake_at, self._turns_at, self._overrun_at):
            if at is not None and (soonest is None or at < soonest):
                soonest = at
        return soonest if soonest is None or soonest > self._now else self._now

    def _pass(self, now: Instant) -> None:
        """One moment: what ends makes room for what arrives."""
        if self._turns_at is not None and self._turns_at <= now:
            windows.turn(Transaction(self._memory, _NoIds(), self._reader, now))
            self._turns_at = self._memory.timetable.next()
        due = self._due
        while due and due[0].at <= now:
            self._end(heappop(due), now)
        if self._overrun_at is not None and self._overrun_at <= now:
            for request in self._runtimes.over(now):
                self._expire(request, now)
        last: Request | None = None
        while self._next_job is not None and self._next_job.submitted_at <= now:
            if last is not None:
                self._world.apply(ev.Submitted(request=last), now)
            last = self._arrival(self._next_job, now)
            self._next_job = next(self._jobs, None)
        if last is not None:
            self._settle(arrive(self._world, last, now), now)
        elif self._overdue or not is_settled(self._world, now):
            self._settle(decide(self._world, now), now)
        else:
            self.ledger.decisions += 1  # nobody waits for what has ended
            self._wake_at = self._world.moments.next()

    def _settle(self, plan: Plan, now: Instant) -> None:
        """Carry out what was decided, and decide until nothing more follows at this moment."""
        while True:
            self.ledger.decisions += 1
            follows = not plan.is_empty and self._carry_out(plan, now)
            if self._overdue and not follows:
                follows = self._requeue_overdue(now)
            if not follows and (plan.wake_at is None or plan.wake_at > now):
                break
            plan = decide(self._world, now)
        self._wake_at = plan.wake_at

    def _requeue_overdue(self, now: Instant) -> bool:
        overdue, self._overdue = self._overdue, []
        for request in overdue:
            self._preempted(_job_of(request), request, now)
        return True

    # ---- what the trace says ----------------------------------------------------------------------------------------

    def _arrival(self, job: Job, now: Instant) -> Request:
        number = self.ledger.arrive(job)
        self._attempts.append(0)
        known = len(self._shapes)
        like = self._like(job)
        # The first of its kind was given its place when it was made.
        self._queued_at.append(like.queued_at if len(self._shapes) > known else self._memory.next_arrival(now))
        return self._attempt(number, job, like, now)

    def _attempt(self, number: int, job: Job, like: Request, now: Instant) -> Request:
        queued_at = Instant(self._queued_at[number])
        return Request(
            id=_request_of(number, self._attempts[number]),
            subjects=like.subjects,
            demand=like.demand,
            queued_at=queued_at,
            preemptible=like.preemptible,
            priority=job.priority,
            profile=like.profile,
            pool=like.pool,
            max_runtime_s=like.max_runtime_s if job.max_runtime_s is None else job.max_runtime_s,
            wait_timeout_s=reckoned_wait_timeout_s(job.wait_timeout_s, queued_at, now),
        )

    def _like(self, job: Job) -> Request:
        """A request made alike, as the application makes it."""
        shape = _Shape(job.subjects, job.demand, job.profile, job.pool, job.preemptible)
        found = self._shapes.get(shape)
        if found is None:
            memory = self._memory
            caller = _caller(job)
            ask = Ask(
                demand=job.demand,
                subjects=tuple(subject for subject in job.subjects if subject != caller.subject),
                profile=job.profile,
                pool=job.pool,
                preemptible=job.preemptible,
            )
            found = build(memory, self._reader, with_defaults(memory, ask), RequestId(""), self._now, caller)
            self._shapes[shape] = found
        return found

    def _end(self, due: _Due, now: Instant) -> None:
        if self._attempts[due.job] != due.attempt:
            return  # it was evicted before
        if due.lets_go:
            self._let_go(due.job, due.request, now)
            return
        self._world.apply(ev.Ended(request=due.request, how=Status.RELEASED), now)
        self._finish(due.job, due.request, now, Fate.DONE)

    def _expire(self, request: RequestId, now: Instant) -> None:
        """It has run for longer than it said. One that was letting go is preempted like others."""
        evicted = self._world.status_of(request) is Status.PREEMPTING
        self._world.apply(ev.Ended(request=request, how=Status.EXPIRED), now)
        if evicted:
            self._overdue.append(request)
        else:
            self._finish(_job_of(request), request, now, Fate.EXPIRED)

    def _finish(self, number: int, request: RequestId, now: Instant, fate: Fate) -> None:
        self._runtimes.end(request)
        self.ledger.stop(number, now, fate)
        self._attempts[number] += 1
        self._done_us.pop(number, None)

    # ---- what the decision says -------------------------------------------------------------------------------------

    def _carry_out(self, plan: Plan, now: Instant) -> bool:
        """Whether something was let go of at once, so that there is more to decide."""
        follows = False
        for finish in plan.finishes:
            self._preempted(_job_of(finish.request), finish.request, now)
            follows = True
        for ended, fate in ((plan.rejects, Fate.REJECTED), (plan.cancels, Fate.CANCELLED)):
            for one in ended:
                self.ledger.leave(_job_of(one.request), now, fate, one.reasons)
        for grant in plan.grants:
            self._start(grant, now)
        for evict in plan.evictions:
            follows = self._evict(evict, now) or follows
        return follows

    def _start(self, grant: Grant, now: Instant) -> None:
        held = grant.allocation
        request = held.request
        number = _job_of(request.id)
        self.ledger.start(number, now, held.pool, held.policy)
        self._runtimes.granted(request, now)
        left_us = self.ledger.jobs[number].run_us
        if number in self._done_us:
            left_us -= self._done_us[number]
        heappush(self._due, _Due(Instant(now + left_us), number, self._attempts[number], False, request.id))

    def _evict(self, evict: Evict, now: Instant) -> bool:
        number = _job_of(evict.request)
        lets_go_at = Instant(now + seconds(self._owners.release_after_s))
        self._note_eviction(number, evict, now, min(evict.deadline_at, lets_go_at))
        if evict.deadline_at <= now or lets_go_at > evict.deadline_at:
            return False  # a later decision ends the hold; where there is no grace period, the next one
        if lets_go_at <= now:
            self._let_go(number, evict.request, now)
            return True
        heappush(self._due, _Due(lets_go_at, number, self._attempts[number], True, evict.request))
        return False

    def _note_eviction(self, number: int, evict: Evict, now: Instant, until: Instant) -> None:
        before_us = self._done_us.get(number, 0)
        ran_us = until - self.ledger.last_start[number]
        lost_us = before_us + ran_us - self._owners.done_us(before_us, ran_us)
        cause = NEVER if evict.cause is None else _job_of(evict.cause)
        self.ledger.evictions.append(Evicted(now, number, cause, evict.because, lost_us))

    def _let_go(self, number: int, request: RequestId, now: Instant) -> None:
        self._world.apply(ev.Ended(request=request, how=Status.RELEASED), now)
        self._preempted(number, request, now)

    def _preempted(self, number: int, request: RequestId, now: Instant) -> None:
        """Queued again, with its place and what it has saved (S24, S32)."""
        ledger, job = self.ledger, self.ledger.jobs[number]
        self._runtimes.end(request)
        before_us = self._done_us.get(number, 0)
        ran_us = now - ledger.last_start[number]
        done_us = self._owners.done_us(before_us, ran_us)
        ledger.lost_us[number] += before_us + ran_us - done_us
        self._done_us[number] = done_us
        ledger.stop(number, now, Fate.WAITING)
        self._attempts[number] += 1
        self._world.apply(ev.Submitted(request=self._attempt(number, job, self._like(job), now)), now)


class _NoIds:
    def new(self, kind: object) -> str:
        raise AssertionError(f"nothing new of kind {kind} appears in a replay")


def _caller(job: Job) -> Principal:
    """Who asks: the person or service that the job names, so that their teams come along. A trace that names a team
    itself is taken at its word, whatever the rules say of who is in it."""
    people = [subject for subject in job.subjects if subject.kind in _PEOPLE]
    if not people or any(subject.kind is SubjectKind.TEAM for subject in job.subjects):
        return OWNER
    return Principal(subject=people[0], role=Role.MEMBER)


def _request_of(job: int, attempt: int) -> RequestId:
    """Ids that sort by arrival: the last criterion of every order is the id (S23)."""
    return RequestId(f"{job:08d}.{attempt}" if attempt else f"{job:08d}")


def _job_of(request: RequestId) -> int:
    return int(request[:8])

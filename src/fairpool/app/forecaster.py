"""Looking ahead for those who ask when a request starts: one look for all who ask, in slices, remembered for a while.

Who decides must not wait for who asks. So a look ahead takes a copy of what it needs, which is quick, and goes on in
slices of a few milliseconds between two rounds. It answers everybody who waits in the same pools, and whoever asks soon
afterwards; what it says holds for the moment of the copy, which is told with it (S37).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace

from fairpool.app.experience import Experience, Work
from fairpool.app.memory import Memory
from fairpool.app.ports import Clock
from fairpool.app.records import RequestRecord
from fairpool.core.forecast import look_ahead
from fairpool.core.front import class_of, front_of, joined_to, pools_of
from fairpool.core.ids import SECOND, Instant, PoolId, RequestId
from fairpool.core.outlook import Estimate, Outlook, Unknown, Why
from fairpool.core.pauses import InSteps
from fairpool.core.requests import Request
from fairpool.core.usual import Usual, Usually

SLICE_US = 2_000
"""How long a look ahead goes on before it is seen whether somebody wants a decision."""

KEPT_TIMES = 5
"""For how many times as long as it took an outlook is remembered: so looking ahead takes no more than a sixth of the
time, however many ask and however often. A look that takes no time is remembered for none."""

KEPT_US = 10 * SECOND
"""… and at most so long: what is told is never much older."""

SMALL = 200
"""Running and waiting requests. Where there are fewer it is looked ahead anew as soon as anything has happened."""

MOST_REMEMBERED = 64
"""Outlooks that are remembered: the newest."""

MOST_LOOKS = 32
"""Looks ahead that may wait for their turn. Who asks for one more is told to ask again: in the end they are answered
one after the other."""

Wanted = RequestId | Request
"""Who is asked about: one that waits, by its id; or one that nobody has submitted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreseen:
    """When a request starts, as it looked at the moment `as_of`. records: of those that the estimate names."""

    estimate: Estimate | Unknown
    as_of: Instant
    records: Mapping[RequestId, RequestRecord] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Subject:
    """What one look ahead is about. checked: who would wait there too, where nobody has submitted it."""

    pools: frozenset[PoolId]
    checked: Request | None


class _Look:
    """One look ahead. It begins with the copy of what it needs."""

    def __init__(self, memory: Memory, now: Instant, subject: _Subject) -> None:
        world = memory.world
        front, until = front_of(world, joined_to(world, subject.pools)), None
        if subject.checked is not None:
            checked = replace(subject.checked, queued_at=now)
            if not front.is_behind(checked, class_of(world, checked)):
                front, until = front.joined_by(checked), checked.id
        self._checked = None if subject.checked is None else subject.checked.id
        self.as_of = now
        self._front = front
        self._told: dict[RequestId, Foreseen] = {}  # what was made of it for those who asked
        self._rules = world.rule_changes
        self._history_seq = memory.history_seq
        running = [held.request.id for held in front.snapshot.allocations]
        self._is_small = len(front.waiting) + len(running) < SMALL
        self._records = {
            request: record
            for request in (*front.waiting, *running)
            if (record := memory.live.get(request)) is not None
        }
        self.steps: InSteps[Outlook] = look_ahead(front, now, _usually(self._records, memory.experience.copy()), until)

    def knows(self, request: Request, memory: Memory) -> bool:
        """Whether it has something to say of a request, as that is now."""
        return self._checked == request.id or self._front.knows(request, class_of(memory.world, request))

    def is_past(self, memory: Memory) -> bool:
        """Whether too much has changed since."""
        has_moved = self._is_small and self._history_seq != memory.history_seq
        return has_moved or self._rules != memory.world.rule_changes

    def foreseen(self, outlook: Outlook, request: RequestId) -> Foreseen:
        """What it says of a request."""
        told = self._told.get(request)
        if told is None:
            found = outlook.of(request)
            named = {ground.request for ground in found.grounds} if isinstance(found, Estimate) else set(found.requests)
            records = {each: self._records[each] for each in named if each is not None and each in self._records}
            told = self._told[request] = Foreseen(estimate=found, as_of=outlook.as_of, records=records)
        return told


@dataclass(frozen=True, slots=True, kw_only=True)
class _Remembered:
    look: _Look
    outlook: Outlook
    until: Instant

    def says(self, request: Request, memory: Memory, now: Instant) -> Foreseen | None:
        """What it says of one that waits, or would; None where it is too old, does not know it, or was wrong."""
        if now >= self.until or self.look.is_past(memory) or not self.look.knows(request, memory):
            return None
        found = self.look.foreseen(self.outlook, request.id)
        should_run = isinstance(found.estimate, Estimate) and found.estimate.about <= now
        return None if should_run and found.as_of < now else found


@dataclass(slots=True)
class _Asked:
    """Somebody who asks."""

    wanted: Wanted
    answer: Future[Foreseen | None]


class Forecaster:
    """Looks ahead for one workspace. Not thread-safe: the scheduler's thread, or a test, calls it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._memory: Memory | None = None
        self._remembered: dict[_Subject, _Remembered] = {}
        self._waiting: dict[_Subject, list[_Asked]] = {}  # looks that have not begun, the first asked for first
        self._look: _Look | None = None
        self._about: _Subject | None = None  # of the look under way
        self._asked: list[_Asked] = []  # before the look under way began
        self._late: list[_Asked] = []  # for the same, since
        self._answers: deque[tuple[_Asked, _Remembered | None]] = deque()  # by which look; None for who came late

    @property
    def is_busy(self) -> bool:
        """Whether anybody waits for an answer."""
        return self._look is not None or bool(self._waiting or self._answers)

    def want(self, wanted: Wanted, answer: Future[Foreseen | None], memory: Memory) -> None:
        """Have it looked up when a request starts. answer: None for one that does not wait (any more)."""
        self._use(memory)
        asked, now = _Asked(wanted, answer), self._clock.now()
        request = _request(wanted, memory)
        if request is None:
            _answer(asked, None)
            return
        checked = None if isinstance(wanted, str) else replace(request, queued_at=Instant(0))
        subject = _Subject(pools=pools_of(memory.world, request), checked=checked)
        remembered = self._remembered.get(subject)
        known = None if remembered is None else remembered.says(request, memory, now)
        if known is not None:
            _answer(asked, known)
        elif subject == self._about:
            self._late.append(asked)
        elif subject in self._waiting or len(self._waiting) < MOST_LOOKS:
            self._waiting.setdefault(subject, []).append(asked)
        else:
            _answer(asked, Foreseen(estimate=Unknown(why=Why.BUSY), as_of=now))

    def go_on(self, memory: Memory) -> None:
        """Look ahead for one slice of time, a step at least, or until everybody is answered."""
        self._use(memory)
        until = self._clock.now() + SLICE_US
        while self.is_busy:
            self._step(memory)
            if self._clock.now() >= until:
                return

    def _step(self, memory: Memory) -> None:
        if self._answers:
            self._tell(memory, *self._answers.popleft())
            return
        if self._look is None:
            self._about = next(iter(self._waiting))
            self._asked = self._waiting.pop(self._about)
            self._look = _Look(memory, self._clock.now(), self._about)
        try:
            next(self._look.steps)
        except StopIteration as done:
            self._finish(self._look, done.value)

    def give_up(self, error: Exception) -> None:
        """Nobody can be answered here any more."""
        asked = [*self._asked, *self._late, *(each for waiting in self._waiting.values() for each in waiting)]
        asked += [each for each, _ in self._answers]
        self._memory, self._look, self._about = None, None, None
        self._remembered, self._waiting, self._asked, self._late = {}, {}, [], []
        self._answers.clear()
        for each in asked:
            if each.answer.set_running_or_notify_cancel():
                each.answer.set_exception(error)

    def _use(self, memory: Memory) -> None:
        if memory is not self._memory:  # loaded anew: what was remembered is of another
            self._memory, self._remembered = memory, {}

    def _finish(self, look: _Look, outlook: Outlook) -> None:
        about, now = self._about, self._clock.now()
        assert about is not None
        until = Instant(now + min(KEPT_TIMES * (now - look.as_of), KEPT_US))
        found = _Remembered(look=look, outlook=outlook, until=until)
        self._remembered.pop(about, None)
        if len(self._remembered) >= MOST_REMEMBERED:
            del self._remembered[next(iter(self._remembered))]
        self._remembered[about] = found
        self._answers.extend((each, found) for each in self._asked)
        self._answers.extend((each, None) for each in self._late)
        self._look, self._about, self._asked, self._late = None, None, [], []

    def _tell(self, memory: Memory, asked: _Asked, found: _Remembered | None) -> None:
        """Answer somebody who asked before the look began. Who came later, or was sent elsewhere by a change of the
        rules, asks anew: whether what was found is still good for them."""
        request = _request(asked.wanted, memory)
        if request is None or found is None or not found.look.knows(request, memory):
            self.want(asked.wanted, asked.answer, memory)
        else:
            _answer(asked, found.look.foreseen(found.outlook, request.id))


def _request(wanted: Wanted, memory: Memory) -> Request | None:
    """Who is asked about; None for one that does not wait."""
    if not isinstance(wanted, str):
        return wanted
    return memory.world.queue.request(wanted) if wanted in memory.world.queue else None


def _usually(records: Mapping[RequestId, RequestRecord], experience: Experience) -> Usually:
    """How long these requests usually run, by what was seen of others like them."""

    def usual(request: Request) -> Usual | None:
        record = records.get(request.id)
        return None if record is None else experience.usual(Work.of(request, record.submission.name))

    return usual


def _answer(asked: _Asked, found: Foreseen | None) -> None:
    """Answer; nobody hears of it where the caller has gone."""
    if asked.answer.set_running_or_notify_cancel():
        asked.answer.set_result(found)

"""A day as clients live it: calls and waiting, one after the other, with time and ids in the test's hand.

What a client knows (which calls were answered, and how) outlives the server; everything else a restart must find in the
store.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol

from fairpool.app.leading import Leading
from fairpool.app.ports import Store
from fairpool.app.records import HistoryEntry, Kind, RequestRecord
from fairpool.app.scheduler import Command, Scheduler, Work
from fairpool.app.use_cases import requests, stacks
from fairpool.core.ids import SECOND, Instant, seconds
from fairpool.testing import ManualClock

DAWN = Instant(1_795_248_000 * SECOND)
"""When the day begins: at eight in the morning of 21 November 2026, UTC."""

_MOST_LOOKS = 5
_LOOK_EVERY_S = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing that happens on the day.

    at_s: not before so many seconds after dawn. do: what the client does; it does the same again after a crash.
    again: what a call that had happened already may say when it is repeated; calls with an idempotency key say nothing.
    """

    name: str
    do: Callable[[Life], Any]
    at_s: float = 0
    again: tuple[type[Exception], ...] = ()


class Ids:
    """Ids in sequence. After a restart they go on after those that anybody can have seen."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}

    def new(self, kind: Kind) -> str:
        word = _word(kind)
        self._last[word] = self._last.get(word, 0) + 1
        return f"{word}{self._last[word]:05}"

    def mark(self) -> dict[str, int]:
        return dict(self._last)

    def go_on_after(self, mark: dict[str, int], seen: Iterable[object]) -> None:
        """After those drawn until the mark, and after those seen."""
        self._last = dict(mark)
        for value in seen:
            found = _AN_ID.fullmatch(value) if isinstance(value, str) else None
            if found is not None:
                self._last[found[1]] = max(self._last.get(found[1], 0), int(found[2]))


def _word(kind: Kind) -> str:
    return kind.value.replace("-", "")


_AN_ID = re.compile("(" + "|".join(sorted(map(_word, Kind))) + r")(\d{5})")


class Told:
    """What the server has told those who wait."""

    def __init__(self) -> None:
        self.seq = 0

    def publish(self, entries: Sequence[HistoryEntry]) -> None:
        self.seq = max(self.seq, *(entry.seq for entry in entries))

    def elsewhere(self, leader: str) -> None:
        """Another server's news: nothing that this one answers for."""


class Spacious(Store, Protocol):
    """A store that other workspaces of its database can be reached from."""

    def beside(self, workspace: str) -> Spacious:
        """That of another workspace."""


class Server:
    """One server's scheduler, as its thread runs it."""

    def __init__(self, life: Life, store: Spacious, holder: str) -> None:
        self._life = life
        self.holder = holder
        self.store = store
        self.told = Told()
        leading = Leading(store.leases, holder=holder, address=f"http://{holder}")
        self.scheduler = Scheduler(store, life.clock, life.ids, self.told, leading=leading)

    def begin(self) -> None:
        """What a server that begins to lead does first."""
        self.look()
        self.do(stacks.ensure_defaults, actor="system")

    def look(self) -> None:
        """The scheduler wakes by itself."""
        self.round([])

    def do(self, command: Command[Any], *, actor: str) -> Any:
        return self.round([(command, actor)])[0].result(timeout=0)

    def round(self, commands: Sequence[tuple[Command[Any], str]]) -> list[Future[Any]]:
        """One round with calls that have arrived together."""
        work = [Work(Future(), actor=actor, source="10.0.0.7", command=command) for command, actor in commands]
        self._life.under_way = work
        try:
            self.scheduler.cycle(work)
        finally:
            self._life.under_way = []
        return [item.future for item in work]


@dataclass
class Life:
    """The clients, and whichever server there is for them. step: the one that is being lived. mark: the ids drawn
    before it began. repeats: whether it was begun before, and its answer was lost. under_way: the calls of the
    round."""

    steps: Sequence[Step]
    clock: ManualClock = field(default_factory=lambda: ManualClock(DAWN))
    ids: Ids = field(default_factory=Ids)
    answers: dict[str, Any] = field(default_factory=dict)
    step: int = 0
    mark: dict[str, int] = field(default_factory=dict)
    repeats: bool = False
    under_way: list[Work[Any]] = field(default_factory=list)
    server: Server = field(init=False)

    def begin(self, store: Spacious, holder: str) -> None:
        """A server opens."""
        self.server = Server(self, store, holder)
        self.server.begin()

    def live(self) -> None:
        """Live the rest of the day."""
        while self.step < len(self.steps):
            step = self.steps[self.step]
            self.mark = self.ids.mark()
            self.clock.move_to(Instant(max(self.clock.now(), DAWN + seconds(step.at_s))))
            try:
                answer = step.do(self)
            except step.again as error:
                if not self.repeats:
                    raise
                answer = error
                self.ids.go_on_after(self.mark, ())  # what a refused call drew nobody has seen
            self.answers[step.name] = answer
            self.repeats = False
            self.step += 1

    @property
    def has_answers(self) -> bool:
        """Whether any call of the round that is under way has been answered."""
        return any(item.future.done() for item in self.under_way)

    # ---- what steps use ---------------------------------------------------------------------------------------------

    def id(self, name: str) -> str:
        """The id of the request that the step of that name made."""
        answer = self.answers[name]
        assert isinstance(answer, RequestRecord)
        return answer.id

    def request(self, name: str) -> RequestRecord:
        """That request as it is now."""
        return requests.get(self.server.scheduler.memory, self.server.store.reader, self.id(name))

    def status(self, name: str) -> str:
        return self.request(name).status.value

    def look_until(self, is_so: Callable[[Life], bool], what: str) -> None:
        """Let the scheduler wake until it is so. After a restart every owner has one full lease more (S35)."""
        for _ in range(_MOST_LOOKS):
            self.server.look()
            if is_so(self):
                return
            self.clock.advance(_LOOK_EVERY_S)
        raise AssertionError(f"waited in vain until {what}")

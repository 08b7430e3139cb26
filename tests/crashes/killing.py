"""A day with a crash at every commit.

The day is lived once. At each transaction that it commits, processes are forked off that do the same on copies of the
database and kill themselves: before it begins, with everything said but COMMIT, and right after COMMIT, before anyone
is told. What each leaves behind is opened by yet another process, as the next server; clients repeat the call that was
not answered, and the day goes on from there.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import tempfile
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from fairpool.app.ports import Leases, Reader, Store, Stored
from fairpool.app.records import DEFAULT_WORKSPACE, Batch, Leadership
from fairpool.core.ids import Instant
from fairpool.store import opening
from fairpool.store.sql import SqlStore
from fairpool.store.urls import database_of
from tests.crashes import checking
from tests.crashes.databases import Databases, Dump, Told, differences, without_time
from tests.crashes.living import Life, Spacious, Step

Result = TypeVar("Result")
Wrap = Callable[[SqlStore], Spacious]
"""What a test puts between the server and its store, to see whether the checks notice."""

POINTS: Final = ("before", "within", "after")
"""Of a transaction: before it begins, just before COMMIT, just after COMMIT."""


def plainly(store: SqlStore) -> Spacious:
    """Nothing in between."""
    return store


@dataclass(frozen=True, slots=True, kw_only=True)
class Crash:
    """One crash. number: of the commit, from 1. point: where in it. step: during which step of the day."""

    number: int
    point: str
    step: str

    def __str__(self) -> str:
        return f"{self.point} commit {self.number} (in {self.step!r})"


@dataclass(slots=True)
class Report:
    """What came of a day. where: at which moments of which commits it was killed. whole: how many of the days that were
    interrupted were lived to their end."""

    kind: str
    where: str
    steps: int = 0
    commits: int = 0
    crashes: int = 0
    whole: int = 0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.kind}: a day of {self.steps} steps and {self.commits} commits, killed {self.crashes} times "
            f"({self.where}), {self.whole} of these days lived to their end: {len(self.problems) or 'no'} problems"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How thoroughly to try.

    every: which commits are crashed at (1: each). points: where in each. steps: during which steps only; the day ends
    soon after the last of them. whole_every: which of the crashed days are lived to their end; the others to the end of
    the step after. jobs: processes at a time. wrap: see `Wrap`.
    """

    every: int = 1
    points: tuple[str, ...] = POINTS
    steps: frozenset[str] = frozenset()
    whole_every: int = 1
    jobs: int = 2
    wrap: Wrap = plainly

    def part_of(self, day: Sequence[Step]) -> Sequence[Step]:
        """What of the day must be lived for it."""
        last = [number for number, step in enumerate(day, 1) if step.name in self.steps]
        return day[: last[-1] + 2] if last else day


class Crashed(BaseException):
    """The server is gone. What it was doing is not seen to its end."""


# ---- a store that is watched -----------------------------------------------------------------------------------------


class Watched:
    """A store that hands everything that writes to whoever watches."""

    def __init__(self, store: Spacious, watch: Watch, workspace: str = DEFAULT_WORKSPACE) -> None:
        self._store = store
        self._watch = watch
        self._workspace = workspace

    def _write(self, what: Callable[[Store], Result]) -> Result:
        return self._watch.write(what, self._store, self._workspace)

    @property
    def leases(self) -> Leases:
        return self

    @property
    def reader(self) -> Reader:
        return self._store.reader

    def commit(self, batch: Batch, token: int) -> int:
        return self._write(lambda store: store.commit(batch, token))

    def erase(self, token: int) -> bool:
        return self._write(lambda store: store.erase(token))

    def load(self) -> Stored:
        return self._store.load()

    def beside(self, workspace: str) -> Watched:
        store = self._store.beside(workspace)
        assert isinstance(store, SqlStore)
        counting(store, self._watch.count)
        return Watched(store, self._watch, workspace)

    def close(self) -> None:
        self._store.close()

    def acquire(self, holder: str, now: Instant, ttl_s: float, address: str = "") -> Leadership:
        return self._write(lambda store: store.leases.acquire(holder, now, ttl_s, address))

    def renew(self, token: int, now: Instant, ttl_s: float) -> Leadership:
        return self._write(lambda store: store.leases.renew(token, now, ttl_s))

    def release(self, token: int) -> None:
        self._write(lambda store: store.leases.release(token))

    def current(self) -> Leadership | None:
        return self._store.leases.current()


def counting(store: SqlStore, at_commit: Callable[[str], None]) -> None:
    """Have it say ``within`` before each COMMIT of the store's writer, and ``after`` after it."""
    dialect = store._writer.dialect
    commit = dialect.do_commit

    def do_commit(connection: Any) -> None:
        at_commit("within")
        commit(connection)
        at_commit("after")

    dialect.do_commit = do_commit  # type: ignore[method-assign, assignment]


# ---- the day ---------------------------------------------------------------------------------------------------------


class Watch:
    """Lives the day, and crashes at every commit of it."""

    def __init__(self, databases: Databases, steps: Sequence[Step], plan: Plan) -> None:
        self.databases = databases
        self.steps = steps = plan.part_of(steps)
        self.plan = plan
        each = "each commit" if plan.every == 1 else f"every {plan.every}th commit"
        self.report = Report(kind=databases.kind, where=f"{', '.join(plan.points)} of {each}", steps=len(steps))
        self._life = Life(steps)
        self._url = ""
        self._expected: list[Told] = []  # after each step of the undisturbed day
        self._dump: Dump = {}
        self._commits = 0
        self._running: dict[int, tuple[Crash, str, Path]] = {}
        self._kept: list[object] = []  # connections of another process, which must never be closed by this one

    def run(self) -> Report:
        """Live the day undisturbed, then with crashes."""
        self._live_undisturbed()
        self._url = self.databases.new()
        self._dump = self.databases.dump(self._url)
        gc.freeze()  # a process that is forked off shares what it does not touch
        gc.disable()
        store = opening.open_store(self._url)
        self._kept.append(store)
        counting(store, self.count)
        self._life.begin(Watched(self.plan.wrap(store), self), "one")
        self._life.live()
        while self._running:
            self._reap()
        self.report.problems += [
            f"the day that was watched: {said}"
            for said in differences(self.databases.dump(self._url), self._expected[-1])
        ]
        store.close()
        return self.report

    def _live_undisturbed(self) -> None:
        url = self.databases.new()
        store = opening.open_store(url)
        life = Life(self.steps)
        life.begin(store, "one")
        for number in range(len(self.steps)):
            life.steps = self.steps[: number + 1]
            life.live()
            self._expected.append(without_time(self.databases.dump(url)))
        self.report.problems += [
            f"undisturbed: {said}" for said in checking.problems_of(life, self.databases.dump(url))
        ]
        store.close()
        self.databases.drop(url)

    def count(self, point: str) -> None:
        """A transaction has got so far."""
        self._commits += point == "after"

    @property
    def _step(self) -> str:
        return self.steps[self._life.step].name if self._life.step < len(self.steps) else "the end"

    def write(self, what: Callable[[Store], Result], store: Store, workspace: str) -> Result:
        """Something writes: do it, and have it crash on copies wherever it can."""
        if self._life.has_answers:
            self.report.problems.append(f"in {self._step!r} somebody was answered before the commit")
        kept, before, already = self.databases.keep(self._url, self._dump), self._dump, self._commits
        result = what(store)
        after = self._dump = self.databases.dump(self._url)
        committed = self._commits - already
        for part in range(committed):
            self.report.commits += 1
            if self.report.commits % self.plan.every or (self.plan.steps and self._step not in self.plan.steps):
                continue
            for point in self.plan.points:
                allowed = [before] if part == 0 and point != "after" else []
                allowed += [after] if part == committed - 1 and point == "after" else []
                crash = Crash(number=self.report.commits, point=point, step=self._step)
                self._crash(crash, self.databases.copy(kept), partial(self._doomed, what, workspace, part), allowed)
        self.databases.forget(kept)
        return result

    def _crash(self, crash: Crash, url: str, doomed: Callable[[str, str], None], allowed: list[Dump]) -> None:
        pid = os.fork()
        if pid == 0:
            _to_its_end(lambda: doomed(url, crash.point))
        _, status = os.waitpid(pid, 0)
        self.report.crashes += 1
        if not os.WIFSIGNALED(status) or os.WTERMSIG(status) != signal.SIGKILL:
            self.report.problems.append(f"{crash}: the process was not killed, it ended by itself ({status})")
        self.databases.settle(url)
        while len(self._running) >= self.plan.jobs:
            self._reap()
        is_whole = self.report.crashes % self.plan.whole_every == 0
        self.report.whole += is_whole
        told = Path(tempfile.mkstemp(prefix="crash-")[1])
        pid = os.fork()
        if pid == 0:
            _to_its_end(lambda: self._go_on(crash, url, allowed, told, is_whole=is_whole))
        self._running[pid] = (crash, url, told)

    def _reap(self) -> None:
        pid, status = os.waitpid(-1, 0)
        crash, url, told = self._running.pop(pid)
        said = told.read_text()
        problems = json.loads(said) if said else [f"the next server ended with {status}"]
        self.report.problems += [f"{crash}: {problem}" for problem in problems]
        told.unlink()
        self.databases.drop(url)

    # ---- in processes of their own ----------------------------------------------------------------------------------

    def _doomed(self, what: Callable[[Store], Any], workspace: str, part: int, url: str, point: str) -> None:
        """Do it on the copy, and be killed in the middle."""
        if part == 0 and point == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        database = database_of(url)
        store = SqlStore(database, database.writer(), database.readers(), workspace)
        done = 0

        def at_commit(reached: str) -> None:
            nonlocal done
            if done == part and reached == point:
                os.kill(os.getpid(), signal.SIGKILL)
            done += reached == "after"
            if done == part and point == "before":
                os.kill(os.getpid(), signal.SIGKILL)

        counting(store, at_commit)
        what(self.plan.wrap(store))

    def _go_on(self, crash: Crash, url: str, allowed: list[Dump], told: Path, *, is_whole: bool) -> None:
        """Open what was left, check it, and live on."""
        problems: list[str] = []
        try:
            found = self.databases.dump(url)
            if found not in allowed:
                problems.append("what is left is neither what was before the commit nor what it was to be")
            # Killed before, the file is that of the commit before, which was looked at.
            if is_whole or (self.databases.tears and crash.point != "before"):
                problems += checking.problems_at_rest(url)
            problems += checking.problems_in(found)
            problems += self._next_life(crash, url, found, is_whole=is_whole)
        except BaseException:  # noqa: BLE001 (whatever it is, it is the news)
            problems.append(traceback.format_exc())
        told.write_text(json.dumps(problems[:20]))

    def _next_life(self, crash: Crash, url: str, found: Dump, *, is_whole: bool) -> list[str]:
        """The next server: every other time the same one again, else another that waits until the lease is over."""
        store = opening.open_store(url)
        self._kept.append(store)
        life = replace(self._life)
        life.ids.go_on_after(life.mark, (value for rows in found.values() for row in rows for value in row.values()))
        life.repeats = True
        holder = "one"
        leader = store.leases.current()
        if leader is not None and crash.number % 2:
            holder = "three"
            life.clock.move_to(Instant(max(life.clock.now(), leader.until + 1)))
        elif leader is not None and leader.holder in ("one", "two", "three"):
            holder = leader.holder
        life.begin(self.plan.wrap(store), holder)
        problems = checking.problems_of(life, self.databases.dump(url))
        last = len(self.steps) if is_whole else min(len(self.steps), life.step + 2)
        life.steps = self.steps[:last]
        life.live()
        at_last = self.databases.dump(url)
        problems += checking.problems_of(life, at_last) if is_whole else checking.problems_in(at_last)
        problems += differences(at_last, self._expected[last - 1])
        return problems


def _to_its_end(do: Callable[[], None]) -> None:
    """In a process that was forked off: do that and nothing else, and close nothing that belongs to the other."""
    try:
        do()
    except BaseException:  # noqa: BLE001 (it must not go on as if it were the other process)
        traceback.print_exc()
        os._exit(1)
    os._exit(0)

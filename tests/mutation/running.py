"""Running the tests against each mutant, in a child of a process that has everything loaded.

The tests run twice as they are, to see how long each takes and by which of the lines it comes that are to be changed.
Then each mutant gets a child of its own, in which the one function has the other code, and the tests that come by the
changed lines run, the short ones first, until one fails. The limit is processor time, so that a busy machine kills no
mutant.
"""

from __future__ import annotations

import gc
import importlib
import inspect
import os
import resource
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import TYPE_CHECKING

import pytest

from tests.mutation.mutants import Mutant

if TYPE_CHECKING:
    from _typeshed import TraceFunction

CORE = Path(__file__).parents[2] / "src" / "fairpool" / "core"
PACKAGE = "fairpool.core"
MEMORY = 6 * 2**30
KILLED = 1
DURATION_LIMIT = 6
"""A mutant may let a test take so many times as long as usual, and SPARE_S more."""
SPARE_S = 3

Line = tuple[str, int]  # module, line


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of a mutant. by: the test that noticed it first; empty for a survivor."""

    mutant: Mutant
    by: str

    @property
    def survived(self) -> bool:
        return not self.by


@dataclass(frozen=True, slots=True)
class Known:
    """What the run without a mutant showed of a test."""

    item: pytest.Item
    duration_s: float
    lines: frozenset[Line]

    def comes_by(self, mutant: Mutant) -> bool:
        """Whether it could notice the mutant at all."""
        return any((mutant.module, line) in self.lines for line in mutant.lines)


class Mutating:
    """A pytest plugin that runs what was collected once as it is, and then for each mutant."""

    def __init__(self, mutants: Sequence[Mutant], told: Callable[[Verdict], None]) -> None:
        self.mutants = mutants
        self.told = told
        self.failed: list[str] = []
        self._in_child: int | None = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and self._in_child is not None:
            os.write(self._in_child, report.nodeid.encode())
            os._exit(KILLED)
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        durations = [_duration(item) for item in session.items]
        look = _Look(self.mutants)
        known = [
            Known(item, duration_s, look.at(item))
            for item, duration_s in zip(session.items, durations, strict=True)
            if not self.failed
        ]
        if self.failed:
            raise pytest.UsageError(f"these fail without any mutant: {', '.join(self.failed)}")
        known.sort(key=lambda each: each.duration_s)
        gc.collect()
        gc.freeze()
        for mutant in self.mutants:
            concerned = [each for each in known if each.comes_by(mutant)]
            self.told(Verdict(mutant=mutant, by=self._try(mutant, concerned)))
        return True

    def _try(self, mutant: Mutant, concerned: list[Known]) -> str:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            self._in_child = writing
            self._live_with(mutant, concerned)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            by = pipe.read().decode()
        _, status = os.waitpid(child, 0)
        if os.waitstatus_to_exitcode(status) == 0:
            return ""
        return by or "took too long"

    def _live_with(self, mutant: Mutant, concerned: list[Known]) -> None:
        """Never returns."""
        try:
            silence = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silence, 1)
            os.dup2(silence, 2)
            signal.signal(signal.SIGXCPU, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            function_of(mutant).__code__ = mutant.code
            for each in concerned:
                limit = time.process_time() + SPARE_S + DURATION_LIMIT * each.duration_s
                resource.setrlimit(resource.RLIMIT_CPU, (int(limit) + 1, resource.RLIM_INFINITY))
                each.item.config.hook.pytest_runtest_protocol(item=each.item, nextitem=None)
        except BaseException:  # noqa: BLE001 (whatever it is, it is the mutant's doing, and nothing may leave the child)
            os._exit(KILLED)
        os._exit(0)


def function_of(mutant: Mutant) -> FunctionType:
    """The function that a mutant is about, as the core has it loaded."""
    found: object = importlib.import_module(f"{PACKAGE}.{mutant.module}")
    for name in mutant.function.split("."):
        found = inspect.getattr_static(found, name)
    if isinstance(found, property):
        found = found.fget
    if isinstance(found, classmethod | staticmethod):
        found = found.__func__
    assert callable(found), mutant
    function = inspect.unwrap(found)
    assert isinstance(function, FunctionType), mutant
    return function


def _duration(item: pytest.Item) -> float:
    began = time.process_time()
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
    return time.process_time() - began


class _Look:
    """By which of the lines with mutants a test comes."""

    def __init__(self, mutants: Sequence[Mutant]) -> None:
        self._wanted: Mapping[str, set[int]] = defaultdict(set)
        for mutant in mutants:
            self._wanted[str(CORE / f"{mutant.module}.py")].update(mutant.lines)
        self._lines_of: dict[CodeType, frozenset[int]] = {}

    def at(self, item: pytest.Item) -> frozenset[Line]:
        seen: set[Line] = set()
        left: dict[CodeType, set[int]] = {}  # what a function has not shown yet: most have soon shown all

        def enter(frame: FrameType, event: str, value: object) -> TraceFunction | None:
            code = frame.f_code
            if code not in left:
                left[code] = set(self._lines(code))
            return step if left[code] else None

        def step(frame: FrameType, event: str, value: object) -> TraceFunction:
            if event == "line" and frame.f_lineno in left[frame.f_code]:
                left[frame.f_code].discard(frame.f_lineno)
                seen.add((Path(frame.f_code.co_filename).stem, frame.f_lineno))
            return step

        sys.settrace(enter)
        try:
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        finally:
            sys.settrace(None)
        return frozenset(seen)

    def _lines(self, code: CodeType) -> frozenset[int]:
        if code not in self._lines_of:
            own = {line for _, _, line in code.co_lines() if line is not None}
            self._lines_of[code] = frozenset(own & self._wanted.get(code.co_filename, set()))
        return self._lines_of[code]

"""One run of a pipeline in a driver: its steps, how it ends, and what the server is told of it."""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from types import FrameType
from typing import Any, ClassVar

from fairpool.sdk import console
from fairpool.sdk.artifacts import open_store
from fairpool.sdk.calls import RunPlace, StepCall
from fairpool.sdk.driver import Driver, shared_driver
from fairpool.sdk.errors import StepCancelled
from fairpool.sdk.futures import StepFuture
from fairpool.sdk.granting import subjects_around, team_of
from fairpool.sdk.pickling import function_reference, pack
from fairpool.sdk.retry import StepRetryConfig
from fairpool.sdk.settings import ResourceSettings
from fairpool.sdk.stacks import Stack, find_stack, logs_folder
from fairpool.wire.runs import RunCreate, RunUpdate
from fairpool.wire.values import RunStatus


class Run:
    """A run while it lasts."""

    def __init__(self, name: str, *, stack: Stack | str | None, settings: ResourceSettings) -> None:
        self._driver: Driver = shared_driver()
        self.stack = find_stack(self._driver.api, stack)
        self.name = name
        self.settings = settings
        # A stack made in the program is not known to the server, which then shows the run without one.
        known = None if isinstance(stack, Stack) else self.stack.name
        around = subjects_around()
        self.id = self._driver.api.create_run(RunCreate(name=name, stack=known, team=team_of(around))).id
        self._place = RunPlace(
            run_id=self.id,
            run_name=name,
            store=open_store(self.stack.artifacts),
            logs=logs_folder() / self.id,
            subjects=around,
        )
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._functions: set[str] = set()
        self.futures: list[StepFuture[Any]] = []
        self._closed = False
        self._driver.broker.call(lambda: self._update(RunUpdate(status=RunStatus.RUNNING)))

    def submit(
        self,
        function: Callable[..., Any],
        owner: object,
        arguments: tuple[tuple[Any, ...], Mapping[str, Any]],
        *,
        name: str,
        settings: ResourceSettings,
        retry: StepRetryConfig,
        step_operator: str | None,
    ) -> StepFuture[Any]:
        """Begin one step. Raises ArtifactError for arguments that cannot be sent, StackError for a wrong operator."""
        orchestrator = self.stack.component(step_operator)
        data, references = pack((arguments[0], dict(arguments[1])), what=f"the inputs of step {name!r}")
        reference = function_reference(function, owner)
        function_data = ""
        if reference is None:
            code, more = pack(function, what=f"the function of step {name!r}")
            references += more
            function_data = self._keep_function(name, code)
        with self._lock:
            index = self._counts[name]
            self._counts[name] += 1
        call = StepCall(
            run=self._place,
            name=name,
            index=index,
            function=reference,
            function_data=function_data,
            inputs=f"{self.id}/{name}-{index}/inputs",
            settings=settings.merged_over(self.settings),
            retry=retry,
            orchestrator=orchestrator,
            references=tuple(references),
        )
        self._place.store.write(call.inputs, data)
        future = self._driver.begin(call)
        with self._lock:
            self.futures.append(future)
        return future

    def _keep_function(self, name: str, code: bytes) -> str:
        place = f"{self.id}/functions/{name}-{hashlib.sha256(code).hexdigest()[:16]}"
        if place not in self._functions:
            self._place.store.write(place, code)
            self._functions.add(place)
        return place

    def wait(self) -> None:
        """Wait until every step has ended, also those that nobody asked for."""
        for future in list(self.futures):
            future.wait()

    def unseen_failure(self) -> BaseException | None:
        """The first failure that nobody has looked at; a note counts the others."""
        failed = [f for f in self.futures if f.done() and f._error is not None and not f._looked_at]
        # A cancelled future was cancelled by the program itself, and what failed because of it is no news either.
        failed = [f for f in failed if not isinstance(f._error, StepCancelled)]
        if not failed:
            return None
        error = failed[0]._error
        if error is not None and len(failed) > 1:
            error.add_note(f"{len(failed) - 1} more failed: {', '.join(f.label for f in failed[1:10])}")
        return error

    def cancel(self, reason: str) -> None:
        """End all steps gracefully and wait for that; a second Ctrl-C kills what is left."""
        unfinished = [future for future in self.futures if not future.done()]
        if unfinished:
            console.note(f"ending {len(unfinished)} steps; Ctrl-C again kills them")
        self._driver.cancel(unfinished, reason)
        try:
            self.wait()
        except KeyboardInterrupt:
            self._driver.cancel(unfinished, reason, at_once=True)
            self.wait()

    def close(self, status: RunStatus, error: str = "") -> None:
        """Tell the server how it ended, and wait until everything that concerns it was told."""
        if self._closed:
            return
        self._closed = True
        self._driver.broker.call(lambda: self._update(RunUpdate(status=status, error=error[:10_000] or None)))
        self._driver.broker.flush()

    def close_with(self, future: StepFuture[Any]) -> None:
        """Close when this future, the only one of the run, has ended."""
        _Standalone.futures.add(future)

        def ended(_: StepFuture[Any]) -> None:
            self._closed = True
            status, error = status_of(future._error)
            self._driver.broker.call(lambda: self._update(RunUpdate(status=status, error=error or None)))
            _Standalone.futures.discard(future)

        future.add_done_callback(ended)

    def _update(self, update: RunUpdate) -> None:
        self._driver.api.update_run(self.id, update)


def status_of(error: BaseException | None) -> tuple[RunStatus, str]:
    """What an exception (or none) says of the run that it ended."""
    if error is None:
        return RunStatus.COMPLETED, ""
    if isinstance(error, StepCancelled | KeyboardInterrupt | SystemExit | GeneratorExit):
        return RunStatus.CANCELLED, str(error) or "interrupted"
    return RunStatus.FAILED, f"{type(error).__name__}: {error}"[:10_000]


_current: ContextVar[Run | None] = ContextVar("fairpool_run", default=None)


def current_run() -> Run | None:
    """The run whose pipeline function is being executed here, or None."""
    return _current.get()


@contextlib.contextmanager
def inside(run: Run) -> Iterator[None]:
    """Make `run` the current one."""
    token = _current.set(run)
    try:
        yield
    finally:
        _current.reset(token)


@contextlib.contextmanager
def settings_over(run: Run, settings: ResourceSettings) -> Iterator[None]:
    """For a pipeline inside a pipeline: its settings come before those of the run while it lasts."""
    before, run.settings = run.settings, settings.merged_over(run.settings)
    try:
        yield
    finally:
        run.settings = before


@contextlib.contextmanager
def signals_end_it() -> Iterator[None]:
    """SIGTERM and SIGHUP leave the block as Ctrl-C does, so that steps end in good order and give everything back."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    mine = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) == signal.SIG_DFL]
    for number in mine:
        signal.signal(number, _leave)
    try:
        yield
    finally:
        for number in mine:
            signal.signal(number, signal.SIG_DFL)


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


class _Standalone:
    """Steps that were submitted outside a pipeline; the program does not end before they have."""

    futures: ClassVar[set[StepFuture[Any]]] = set()


def _wait_for_standalone() -> None:
    waiting = list(_Standalone.futures)
    if not waiting:
        return
    driver = shared_driver()
    try:
        for future in waiting:
            future.wait()
    except KeyboardInterrupt:
        driver.cancel(waiting, "the program was interrupted")
        for future in waiting:
            future.wait(60)
    driver.broker.flush()


atexit.register(_wait_for_standalone)

"""What `step.submit(...)` returns: a result that will be there."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from fairpool.sdk.pickling import Reference

R = TypeVar("R")
_UNSET: Any = object()


class StepFuture(Generic[R]):
    """The result of a step that was submitted. Give it to another step, and that one waits for it.

    As an argument it travels as a reference, so that the value goes from process to process without the driver.
    """

    def __init__(self, *, name: str, label: str, output: str, cancel: Callable[[], object]) -> None:
        self._name = name
        self._label = label
        self._output = output
        self._cancel = cancel
        self._done = threading.Event()
        self._changing = threading.Lock()
        self._callbacks: list[Callable[[StepFuture[R]], object]] = []
        self._load: Callable[[], R] | None = None
        self._value: R = _UNSET
        self._error: BaseException | None = None
        self._looked_at = False
        self._execution: object | None = None  # what the driver knows it by

    def __repr__(self) -> str:
        state = "waiting" if not self.done() else "failed" if self._error is not None else "done"
        return f"<StepFuture {self.label} {state}>"

    @property
    def name(self) -> str:
        """The name of the step."""
        return self._name

    @property
    def label(self) -> str:
        """The step's name and its place among the steps of that name in the run: ``train-2``."""
        return self._label

    def done(self) -> bool:
        """Whether it has ended, in whatever way."""
        return self._done.is_set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it has ended; False where it has not within `timeout` seconds."""
        return self._done.wait(timeout)

    def result(self, timeout: float | None = None) -> R:
        """The step's result. Raises what the step raised, StepError where it has no result, or TimeoutError."""
        error = self.exception(timeout)
        if error is not None:
            raise error
        with self._changing:
            if self._value is _UNSET:
                assert self._load is not None
                self._value = self._load()
            return self._value

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """What the step raised, or None. Raises TimeoutError where it has not ended within `timeout` seconds."""
        if not self._done.wait(timeout):
            raise TimeoutError(f"step {self.label} has not ended within {timeout:g} s")
        self._looked_at = True
        return self._error

    def cancel(self) -> bool:
        """Ask for its end: queued, it is withdrawn; running, it is told to end. False where it has ended already."""
        if self.done():
            return False
        self._cancel()
        return True

    def add_done_callback(self, callback: Callable[[StepFuture[R]], object]) -> None:
        """Call `callback(self)` when it has ended, at once where it has. It must be quick and raise nothing."""
        with self._changing:
            if not self._done.is_set():
                self._callbacks.append(callback)
                return
        callback(self)

    def __fairpool_reference__(self) -> Reference:
        return Reference(self._output)

    def _settle(self, *, load: Callable[[], R] | None = None, error: BaseException | None = None) -> None:
        """Give it its end; the driver does this once."""
        with self._changing:
            if self._done.is_set():
                return
            self._load, self._error = load, error
            self._done.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)


def wait(futures: Iterable[StepFuture[Any]], timeout: float | None = None) -> bool:
    """Wait until all have ended; False where some have not within `timeout` seconds."""
    deadline = None if timeout is None else time.monotonic() + timeout
    return all(future.wait(None if deadline is None else max(deadline - time.monotonic(), 0)) for future in futures)

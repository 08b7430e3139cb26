"""What a running step can ask and do: its names, its devices, its checkpoint, and whether it must end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fairpool.sdk.artifacts import ArtifactStore
from fairpool.sdk.errors import InvalidUse, StepAborted
from fairpool.sdk.pickling import pack, unpack


@dataclass(frozen=True, slots=True, kw_only=True)
class StepIdentity:
    """Who a running step is. attempt: from 1. devices: names of its GPUs. pool: None where no policy governs it."""

    run_id: str
    run_name: str
    step_id: str
    step_name: str
    attempt: int
    request_id: str | None = None
    pool: str | None = None
    devices: tuple[str, ...] = ()


class StepContext:
    """What `get_step_context()` returns inside a running step. Safe to use from several threads."""

    def __init__(self, identity: StepIdentity, store: ArtifactStore, checkpoint: str) -> None:
        self._identity = identity
        self._store = store
        self._checkpoint = checkpoint
        self._saving = threading.Lock()
        self._callbacks: list[Callable[[], object]] = []
        self._changing = threading.Lock()
        self._aborting = threading.Event()
        self._cooperates = False
        self._reason = ""
        self._deadline: float | None = None

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self._identity.run_id

    @property
    def run_name(self) -> str:
        """The name of the run: its pipeline's."""
        return self._identity.run_name

    @property
    def step_id(self) -> str:
        """The id of the step; the same in every attempt."""
        return self._identity.step_id

    @property
    def step_name(self) -> str:
        """The name of the step."""
        return self._identity.step_name

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1."""
        return self._identity.attempt

    @property
    def request_id(self) -> str | None:
        """The request that this attempt was granted."""
        return self._identity.request_id

    @property
    def pool(self) -> str | None:
        """The pool that the resources came from; None for work that no policy governs (S15)."""
        return self._identity.pool

    @property
    def devices(self) -> tuple[str, ...]:
        """The names of the GPUs that were granted, as ``CUDA_VISIBLE_DEVICES`` lists them."""
        return self._identity.devices

    def load_checkpoint(self, default: Any = None) -> Any:
        """What an earlier attempt of this step saved last, or `default`. Raises ArtifactError if it cannot be read."""
        data = self._store.read(self._checkpoint)
        return default if data is None else unpack(data, what=f"the checkpoint of step {self.step_name!r}")

    def save_checkpoint(self, state: Any) -> None:
        """Keep `state` for the next attempt, whole or not at all. Raises ArtifactError for what cannot be stored."""
        with self._saving:
            data, _ = pack(state, what=f"the checkpoint of step {self.step_name!r}")
            self._store.write(self._checkpoint, data)

    def on_abort(self, callback: Callable[[], object]) -> Callable[[], object]:
        """Have `callback` called when the step is told to end; it has until the deadline (`seconds_left`).

        It runs in a thread of its own while the step goes on, so that it runs even when the step is deep inside a
        library. Several run in the order in which they were given. Registered while the step is already told to end,
        it is called at once. Returns the callback, so that it can be used as a decorator.
        """
        with self._changing:
            if not self._aborting.is_set():
                self._callbacks.append(callback)
                return callback
        callback()
        return callback

    @property
    def aborting(self) -> bool:
        """Whether the step was told to end. A step that asks is left to end by itself until the deadline."""
        self._cooperates = True
        return self._aborting.is_set()

    @property
    def abort_reason(self) -> str:
        """Why the step was told to end; empty while it was not."""
        return self._reason

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the step is killed, once it was told to end; None before."""
        return None if self._deadline is None else max(self._deadline - time.monotonic(), 0.0)

    def raise_if_aborting(self) -> None:
        """Leave the step here if it was told to end (raises StepAborted, which `except Exception` lets through)."""
        if self.aborting:
            raise StepAborted(self._reason)

    def _begin_abort(self, reason: str, grace_s: float) -> list[Callable[[], object]]:
        """Mark the step as told to end, and say which callbacks to run; none where it was told before."""
        with self._changing:
            if self._aborting.is_set():
                return []
            self._reason = reason
            self._deadline = time.monotonic() + grace_s
            self._aborting.set()
            return list(self._callbacks)


class _Current:
    """The step that this process runs; a process runs one."""

    context: StepContext | None = None


def get_step_context() -> StepContext:
    """The context of the step that is running in this process. Raises InvalidUse outside a step."""
    if _Current.context is None:
        raise InvalidUse("get_step_context() works inside a running step; here no step is running")
    return _Current.context


def running_step() -> StepContext | None:
    """The context of the step that is running in this process, or None in a driver."""
    return _Current.context


def enter_step(context: StepContext) -> None:
    """Make `context` the one that get_step_context returns, for the rest of this process."""
    _Current.context = context

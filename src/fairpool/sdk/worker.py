"""The process of one step: ``python -m fairpool.sdk.worker STORE ORDER``.

It reads its order and inputs from the artifact store, runs the function, and stores what came of it. It hears that it
must end in three ways: a line on its control input, the end of that input (its driver died), or SIGTERM. Imports of
this module are kept few, because every step pays for them.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

from fairpool.sdk.artifacts import ArtifactStore, open_store
from fairpool.sdk.context import StepContext, StepIdentity, enter_step
from fairpool.sdk.errors import ArtifactError, StepAborted, StepFailed
from fairpool.sdk.orders import (
    CONTROL_ENV,
    DEFAULT_GRACE_S,
    EXIT_ABORTED,
    EXIT_COMPLETED,
    EXIT_FAILED,
    Ending,
    Order,
    Outcome,
)
from fairpool.sdk.pickling import Reference, load_function, pack, pack_exception, unpack

STUCK_AFTER_S: Final = 5.0
"""A step whose callbacks have saved everything, and whose main thread does not even notice a signal for so long, sits
inside foreign code: what it holds is given back without waiting for the deadline."""


class AbortWatch(threading.Thread):
    """Hears that the step must end, and sees to it that it does: callbacks first, then StepAborted in the step."""

    def __init__(self, context: StepContext, control: int | None) -> None:
        super().__init__(name="fairpool-abort", daemon=True)
        self._context = context
        self._control = control
        self._signals, self._wakeup = os.pipe()
        os.set_blocking(self._wakeup, False)
        self._unwind = False
        self._unwinding = threading.Event()
        self._over = threading.Event()
        self._called = threading.Event()

    def listen(self) -> None:
        """Install the signal handler (main thread only) and start."""
        signal.signal(signal.SIGTERM, self._on_sigterm)
        # The C handler writes here at once, even while the main thread is inside foreign code.
        signal.set_wakeup_fd(self._wakeup, warn_on_full_buffer=False)
        # A process that the step forks is no step: SIGTERM ends it, and says nothing to this one.
        # Held back meanwhile, so that none is lost between the fork and the child's own handler.
        os.register_at_fork(before=_hold_signals, after_in_parent=_let_signals, after_in_child=_forget_signals)
        self.start()

    def step_is_over(self) -> None:
        """From now on a call to end raises nothing: the function has returned, and what came of it is being stored."""
        self._over.set()

    def let_callbacks_finish(self) -> None:
        """A step that notices by itself that it must end may be gone before its callbacks have saved anything."""
        if self._context._aborting.is_set():
            self._called.wait(self._context.seconds_left)

    def _on_sigterm(self, number: int, frame: FrameType | None) -> None:
        if self._unwind and not self._over.is_set() and not self._unwinding.is_set():
            self._unwinding.set()
            raise StepAborted(self._context.abort_reason)

    def run(self) -> None:
        """Wait for the call to end, then carry it out."""
        reason, grace_s = self._hear()
        deadline = time.monotonic() + grace_s
        callbacks = self._context._begin_abort(reason, grace_s)
        for callback in callbacks:
            try:
                callback()
            except Exception:  # noqa: BLE001 (one callback's failure must not keep the others from saving)
                sys.stderr.write(f"fairpool: an abort callback failed:\n{traceback.format_exc()}")
        self._called.set()
        if not self._context._cooperates:
            self._unwind = True
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
            if callbacks and not self._unwinding.wait(min(STUCK_AFTER_S, grace_s)) and not self._over.is_set():
                _leave(EXIT_ABORTED)
        # The driver kills at the deadline. If it is gone too, nobody else would.
        self._sleep_until(deadline + 1)
        _leave(EXIT_ABORTED)

    def _hear(self) -> tuple[str, float]:
        sources = [self._signals] + ([self._control] if self._control is not None else [])
        heard = b""
        while True:
            readable, _, _ = select.select(sources, [], [])
            if self._signals in readable and signal.SIGTERM in os.read(self._signals, 64):
                return "the process was told to end (SIGTERM)", DEFAULT_GRACE_S
            if self._control is not None and self._control in readable:
                chunk = os.read(self._control, 65_536)
                if not chunk:
                    return "its driver is gone", DEFAULT_GRACE_S
                heard += chunk
                if b"\n" in heard:
                    order = json.loads(heard.partition(b"\n")[0])
                    return str(order["abort"]), float(order["grace_s"])

    def _sleep_until(self, moment: float) -> None:
        while (left := moment - time.monotonic()) > 0:
            time.sleep(left)


def _hold_signals() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})


def _let_signals() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def _forget_signals() -> None:
    # In a process forked from a thread that is not the main one, that thread is the main one now.
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _let_signals()


def _leave(code: int) -> None:
    """End now, with everything that the step has started (it leads a process group of its own)."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    if os.getpgrp() == os.getpid():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        with contextlib.suppress(OSError):
            os.killpg(os.getpid(), signal.SIGTERM)
    os._exit(code)


def _take_control_input() -> int | None:
    """The file descriptor on which the driver speaks; the step itself reads nothing from its standard input."""
    if os.environ.pop(CONTROL_ENV, "") != "stdin":
        return None
    control = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return control


def _prepare(order: Order, store: ArtifactStore) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
    """The function and its arguments, with results of other steps read from where they are stored."""

    def resolve(reference: Reference) -> Any:
        return unpack(_stored(store, reference.name), what=f"a result that step {order.step_name!r} takes")

    if order.function is not None:
        function = load_function(order.function)
    else:
        code = _stored(store, order.function_data)
        function = unpack(code, what=f"the function of step {order.step_name!r}", resolve=resolve)
    inputs = _stored(store, order.inputs)
    args, kwargs = unpack(inputs, what=f"the inputs of step {order.step_name!r}", resolve=resolve)
    return function, args, kwargs


def _stored(store: ArtifactStore, name: str) -> bytes:
    data = store.read(name)
    if data is None:
        raise ArtifactError(f"{store.root}/{name} is not in the artifact store (any more)")
    return data


def run_order(order: Order, store: ArtifactStore, watch: AbortWatch) -> Outcome:
    """Run the step and store its result; whatever it raises becomes part of the outcome."""
    try:
        function, args, kwargs = _prepare(order, store)
        result = function(*args, **kwargs)
        watch.step_is_over()
        data, _ = pack(result, what=f"the result of step {order.step_name!r}")
        store.write(order.output, data)
        return Outcome(ending=Ending.COMPLETED)
    except StepAborted as aborted:
        watch.step_is_over()
        return Outcome(ending=Ending.ABORTED, text=str(aborted))
    except SystemExit as left:
        watch.step_is_over()
        return _left_by_exit(order, store, left)
    except BaseException as error:  # noqa: BLE001 (it reaches the caller of the step)
        watch.step_is_over()
        traceback.print_exc()
        return _failed(order, store, error)


def _left_by_exit(order: Order, store: ArtifactStore, left: SystemExit) -> Outcome:
    if left.code in (None, 0):
        store.write(order.output, pack(None, what="nothing")[0])
        return Outcome(ending=Ending.COMPLETED)
    failed = StepFailed(f"step {order.step_name!r} called sys.exit({left.code!r})", step=order.step_name)
    return _failed(order, store, failed)


def _failed(order: Order, store: ArtifactStore, error: BaseException) -> Outcome:
    name = f"{order.outcome}.exception"
    store.write(name, pack_exception(error, step=order.step_name))
    return Outcome(ending=Ending.FAILED, exception=name, text=f"{type(error).__qualname__}: {error}"[:2000])


def main(arguments: list[str]) -> int:
    """Run the order named by its store and its name there; the exit code says how it ended."""
    control = _take_control_input()
    root, name = arguments
    store = open_store(root)
    order = Order.from_json(_stored(store, name))
    sys.path[:] = [*order.sys_path]
    with contextlib.suppress(OSError):
        os.chdir(order.cwd)
    identity = StepIdentity(
        run_id=order.run_id,
        run_name=order.run_name,
        step_id=order.step_id,
        step_name=order.step_name,
        attempt=order.attempt,
        request_id=order.request_id,
        pool=order.pool,
        devices=order.devices,
    )
    context = StepContext(identity, store, order.checkpoint)
    watch = AbortWatch(context, control)
    watch.listen()
    enter_step(context)
    try:
        outcome = run_order(order, store, watch)
    except StepAborted as aborted:  # it came while another exception was on its way out
        outcome = Outcome(ending=Ending.ABORTED, text=str(aborted))
    watch.let_callbacks_finish()
    store.write(order.outcome, outcome.to_json())
    codes = {Ending.COMPLETED: EXIT_COMPLETED, Ending.FAILED: EXIT_FAILED, Ending.ABORTED: EXIT_ABORTED}
    return codes[outcome.ending]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

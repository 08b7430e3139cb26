"""One attempt: the command on what it was granted, until it ends or has to."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from fairpool.cli.running import environment as env
from fairpool.cli.running.child import Child
from fairpool.cli.running.happenings import (
    ENDING,
    Exited,
    Forgotten,
    Happening,
    Happenings,
    Saved,
    Seen,
    Signalled,
    Suspended,
    next_of,
)
from fairpool.sdk import endings
from fairpool.sdk.orders import DEFAULT_GRACE_S
from fairpool.wire.requests import RequestView
from fairpool.wire.values import RequestStatus

LOST_GRACE_S: Final = 5.0
"""What a command has whose resources may be others' already."""

MARGIN_S: Final = 0.5
"""The command is killed so long before the deadline, at most, so that all is free when it comes."""

LAST_CALL_S: Final = 5.0
"""Of the time that is left, so much at most is kept for the command itself, after ``--on-abort``, to end on SIGTERM."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How an attempt ended. evicted: others got its resources. why: in a few words, where it had to end."""

    code: int
    evicted: bool = False
    signalled: int = 0
    why: str = ""


@dataclass(slots=True, kw_only=True)
class _Stopping:
    """The command has to end. Moments on the monotonic clock: when it gets SIGTERM, and SIGKILL (None once sent)."""

    why: str
    evicted: bool
    term_at: float | None
    kill_at: float | None
    saving: subprocess.Popen[bytes] | None = None


class Execution:
    """Runs a started command to its end."""

    def __init__(
        self,
        child: Child,
        happenings: Happenings,
        tell: Callable[[str], None],
        *,
        request: str,
        environment: Mapping[str, str],
        on_abort: str = "",
        max_runtime_s: float | None = None,
    ) -> None:
        self._child = child
        self._happenings = happenings
        self._tell = tell
        self._request = request
        self._environment = environment
        self._on_abort = on_abort
        self._over_at = math.inf if max_runtime_s is None else time.monotonic() + max_runtime_s
        self._max_runtime_s = max_runtime_s
        self._stopping: _Stopping | None = None
        self._signalled = 0

    def until_over(self) -> Ended:
        """Wait for the end, doing what has to be done until then."""
        threading.Thread(target=self._await_exit, name="fairpool-child", daemon=True).start()
        try:
            while True:
                match next_of(self._happenings, self._until_next()):
                    case None:
                        self._due()
                    case Exited(code=code):
                        return self._ended(code)
                    case happening:
                        self._hear(happening)
        finally:
            if self._stopping is not None and self._stopping.saving is not None:
                _kill(self._stopping.saving)
            self._child.over()

    def _await_exit(self) -> None:
        code = self._child.wait(lambda: self._happenings.put(Suspended()))
        self._happenings.put(Exited(code=code))

    def _ended(self, code: int) -> Ended:
        stopping = self._stopping
        if stopping is None:
            return Ended(code=code, signalled=self._signalled)
        return Ended(code=code, evicted=stopping.evicted, signalled=self._signalled, why=stopping.why)

    def _hear(self, happening: Happening) -> None:
        match happening:
            case Signalled(number=number):
                if number in ENDING:
                    self._signalled = number
                self._child.signal(number)
            case Suspended():
                self._child.suspend_with_us()
            case Forgotten():
                self._stop("the server no longer knows its request: others may hold its resources", LOST_GRACE_S)
            case Seen(request=request) if request.id == self._request:
                self._changed(request)
            case Saved() if self._stopping is not None and self._stopping.saving is happening.process:
                if happening.process.returncode and self._stopping.term_at is not None:
                    self._tell(f"--on-abort exited with {happening.process.returncode}")
                self._terminate()
            case _:
                pass

    def _changed(self, request: RequestView) -> None:
        if request.status is RequestStatus.PREEMPTING:
            at = request.eviction.deadline_at if request.eviction is not None else None
            left_s = DEFAULT_GRACE_S if at is None else (at - datetime.now(UTC)).total_seconds()
            self._stop(f"preempted in {endings.why_preempted(request)}", left_s, evicted=True)
        elif request.status in (RequestStatus.PREEMPTED, RequestStatus.EXPIRED):
            self._stop(endings.why_lost(request), LOST_GRACE_S, evicted=True)
        elif request.status.is_final:
            self._stop(endings.why_lost(request), LOST_GRACE_S)

    # ---- ending in good order ---------------------------------------------------------------------------------------

    def _stop(self, why: str, left_s: float, *, evicted: bool = False) -> None:
        """The command has to end within so many seconds: ``--on-abort`` first, then SIGTERM, then SIGKILL."""
        left_s = max(left_s, 0.0)
        now = time.monotonic()
        kill_at = now + left_s - min(MARGIN_S, left_s / 10)
        if self._stopping is not None:
            # Told twice (a deadline, then that it has passed): the earlier moment counts.
            if self._stopping.kill_at is not None:
                self._stopping.kill_at = min(self._stopping.kill_at, kill_at)
            return
        self._tell(f"{why}; {round(left_s)} s to end")
        self._over_at = math.inf
        term_at = kill_at - min(LAST_CALL_S, left_s / 5)
        self._stopping = _Stopping(why=why, evicted=evicted, term_at=term_at, kill_at=kill_at)
        if self._on_abort:
            self._save(self._stopping, left_s)
        else:
            self._terminate()

    def _save(self, stopping: _Stopping, left_s: float) -> None:
        deadline_at = datetime.now(UTC) + timedelta(seconds=left_s)
        surroundings = {
            **self._environment,
            env.PID: str(self._child.pid),
            env.DEADLINE_AT: deadline_at.isoformat(timespec="milliseconds"),
            env.SECONDS_LEFT: f"{left_s:.1f}",
            env.REASON: stopping.why,
        }
        saving = subprocess.Popen(
            ["/bin/sh", "-c", self._on_abort], env=surroundings, stdin=subprocess.DEVNULL, process_group=0
        )
        stopping.saving = saving
        threading.Thread(target=self._await_saved, args=(saving,), name="fairpool-on-abort", daemon=True).start()

    def _await_saved(self, saving: subprocess.Popen[bytes]) -> None:
        saving.wait()
        self._happenings.put(Saved(process=saving))

    def _terminate(self) -> None:
        if self._stopping is not None and self._stopping.term_at is not None:
            self._stopping.term_at = None
            self._child.signal(signal.SIGTERM)

    def _until_next(self) -> float | None:
        """Seconds until something is due; None for never."""
        stopping = self._stopping
        moments = [self._over_at]
        if stopping is not None:
            moments += [at for at in (stopping.term_at, stopping.kill_at) if at is not None]
        first = min(moments)
        return None if first == math.inf else first - time.monotonic()

    def _due(self) -> None:
        now = time.monotonic()
        if now >= self._over_at:
            self._stop(f"has run for its {self._max_runtime_s:g} s", DEFAULT_GRACE_S)
        stopping = self._stopping
        if stopping is None:
            return
        if stopping.term_at is not None and now >= stopping.term_at:
            if stopping.saving is not None:
                self._tell("--on-abort took too long and was stopped")
                _kill(stopping.saving)
            self._terminate()
        if stopping.kill_at is not None and now >= stopping.kill_at:
            stopping.kill_at = None
            self._child.signal(signal.SIGKILL)


def _kill(saving: subprocess.Popen[bytes]) -> None:
    if saving.poll() is None:
        with contextlib.suppress(OSError):
            os.killpg(saving.pid, signal.SIGKILL)

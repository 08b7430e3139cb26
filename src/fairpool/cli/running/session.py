"""One command from submission to exit code: queue, grant, run, eviction, release, and again with ``--requeue``."""

from __future__ import annotations

import os
import queue
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import FrameType

from fairpool.cli import render
from fairpool.cli.running.child import CannotRun, Child
from fairpool.client.api import Client
from fairpool.client.errors import ClientError, Problem
from fairpool.client.renewing import RENEW_EVERY_S, LeaseRenewer
from fairpool.sdk.devices import GOVERNING, visible
from fairpool.wire.problems import Exit
from fairpool.wire.requests import LeaseView, RequestCreate, RequestView
from fairpool.wire.runs import RunCreate, RunUpdate, StepCreate, StepUpdate
from fairpool.wire.values import RequestStatus, RunStatus

POLL_S = 30.0
EXPLAIN_EVERY_S = 10.0
KILL_BEFORE_S = 0.5
"""How long before the deadline the command is killed, so that what it held is free when the deadline comes."""

_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What to run and how."""

    command: tuple[str, ...]
    request: RequestCreate
    name: str
    on_abort: str = ""
    requeue: bool = False
    max_runtime_s: int | None = None


@dataclass(slots=True)
class Happening:
    """Something that the waiting main thread must hear of."""

    what: str  # "exit", "evicted", "lost", "time is up"
    code: int = 0
    deadline_at: datetime | None = None


@dataclass(slots=True)
class Attempt:
    """One attempt: a granted request and its command."""

    request: RequestView
    happenings: queue.SimpleQueue[Happening] = field(default_factory=queue.SimpleQueue)


class Session:
    """Runs an order. tell: says a line to the person; live: replaces the line that it said before."""

    def __init__(self, client: Client, order: Order, tell: Callable[[str], None], live: Callable[[str], None]) -> None:
        self._client = client
        self._order = order
        self._tell = tell
        self._live = live
        self._renewer = LeaseRenewer(client, every_s=min(RENEW_EVERY_S, order.request.lease_s / 4))
        self._child: Child | None = None
        self._signalled = 0

    def run(self) -> int:
        """The exit code. Whatever happens, nothing stays held."""
        before = {number: signal.signal(number, self._on_signal) for number in _FORWARDED}
        run = self._client.create_run(RunCreate(name=self._order.name, kind="command", user=_user()))
        step = self._client.create_step(run.id, StepCreate(name=self._order.name))
        code: int = Exit.FAILED
        status, error = RunStatus.FAILED, ""
        try:
            self._client.update_run(run.id, RunUpdate(status=RunStatus.RUNNING))
            code, status, error = self._attempts(run.id, step.id)
        finally:
            self._renewer.close()
            for number, handler in before.items():
                signal.signal(number, handler)
            with suppress(ClientError):
                self._client.update_step(step.id, StepUpdate(status=status, error=error or None))
                self._client.update_run(run.id, RunUpdate(status=status, error=error or None))
        return code

    def _attempts(self, run: str, step: str) -> tuple[int, RunStatus, str]:
        body = self._order.request.model_copy(update={"run": run, "step": step, "name": self._order.name})
        attempt = 0
        while True:
            attempt += 1
            # Only what was set is sent: the copy must say that the three were.
            request = self._client.submit(RequestCreate.model_validate(body.model_dump(exclude_unset=True)))
            self._renewer.add(request.id, lambda lease: None)
            self._client.update_step(step, StepUpdate(request=request.id, attempt=attempt))
            request = self._wait(request)
            if request.status in (RequestStatus.REJECTED, RequestStatus.CANCELLED, RequestStatus.EXPIRED):
                return self._never_ran(request)
            self._client.update_step(step, StepUpdate(status=RunStatus.RUNNING))
            code, evicted = self._execute(request)
            ended = self._release(request)
            if evicted and self._order.requeue and ended is not None and ended.status is RequestStatus.PREEMPTED:
                self._tell(f"preempted; queued again in its old place as attempt {attempt + 1}")
                body = body.model_copy(update={"retry_of": request.id})
                continue
            if evicted:
                return code or Exit.FAILED, RunStatus.FAILED, "preempted"
            if self._signalled:
                return code, RunStatus.CANCELLED, f"stopped by signal {self._signalled}"
            return code, RunStatus.FAILED if code else RunStatus.COMPLETED, f"exit code {code}" if code else ""

    # ---- waiting ----------------------------------------------------------------------------------------------------

    def _wait(self, request: RequestView) -> RequestView:
        """Wait until the request is queued no longer, saying why it waits as that changes."""
        began = time.monotonic()
        said = ""
        while request.status is RequestStatus.QUEUED:
            if self._signalled:
                return self._client.cancel(request.id, reason=f"signal {self._signalled}")
            why = self._why(request)
            line = f"waiting {render.duration(time.monotonic() - began)}: {why}"
            if why != said:
                self._tell(line)
                said = why
            else:
                self._live(line)
            request = self._client.request(request.id, wait_s=min(EXPLAIN_EVERY_S, POLL_S))
        if said and request.status.holds:
            self._tell(f"granted after {render.duration(time.monotonic() - began)}")
        return request

    def _why(self, request: RequestView) -> str:
        with suppress(Problem):
            found = self._client.explain(request.id)
            why = found.summary.removeprefix("waits, ").removeprefix("waits ")
            if found.estimate is not None:
                why += f"; starts at about {found.estimate.at.astimezone():%H:%M:%S} ({found.estimate.basis})"
            return why
        return "for a decision"

    def _never_ran(self, request: RequestView) -> tuple[int, RunStatus, str]:
        told = "; ".join(reason.message or reason.code for reason in request.reasons)
        if request.status is RequestStatus.REJECTED:
            timed_out = any(reason.code == "WAIT_TIMEOUT" for reason in request.reasons)
            self._tell(f"rejected: {told}")
            return (Exit.TIMED_OUT if timed_out else Exit.REJECTED), RunStatus.FAILED, told
        if self._signalled:
            return 128 + self._signalled, RunStatus.CANCELLED, f"stopped by signal {self._signalled}"
        self._tell(f"{request.status.value} while waiting" + (f": {request.ended_by}" if request.ended_by else ""))
        return Exit.FAILED, RunStatus.CANCELLED, request.status.value

    # ---- running ----------------------------------------------------------------------------------------------------

    def _execute(self, request: RequestView) -> tuple[int, bool]:
        """Run the command on what was granted: its exit code, and whether it was evicted."""
        attempt = Attempt(request)
        environment = environment_of(request)
        if request.allocation is not None and request.allocation.pool is not None:
            self._tell(f"running in pool {request.allocation.pool} {_devices_told(request)}".rstrip())
        try:
            child = self._child = Child(self._order.command, environment)
        except CannotRun as error:
            self._tell(str(error))
            return error.code, False
        if self._signalled:
            child.signal(self._signalled)
        threading.Thread(target=self._await_exit, args=(child, attempt), daemon=True).start()
        threading.Thread(target=self._follow, args=(attempt,), daemon=True).start()
        self._renewer.add(request.id, lambda lease: _heard(lease, attempt))
        try:
            return self._until_over(child, attempt, environment)
        finally:
            child.over()
            self._child = None

    def _until_over(self, child: Child, attempt: Attempt, environment: Mapping[str, str]) -> tuple[int, bool]:
        limit_s = self._order.max_runtime_s
        try:
            happening = attempt.happenings.get(timeout=limit_s)
        except queue.Empty:
            self._tell(f"has run for its {limit_s} s: stopping it")
            return self._stop(child, attempt, environment, seconds=30.0), False
        if happening.what == "exit":
            return happening.code, False
        if happening.what == "lost":
            self._tell("the server no longer knows this request: stopping, since others may hold its resources by now")
            return self._stop(child, attempt, environment, seconds=5.0), True
        left_s = 30.0
        if happening.deadline_at is not None:
            left_s = (happening.deadline_at - datetime.now(UTC)).total_seconds()
        self._tell(f"preempted: others need its resources; {max(0, round(left_s))} s to let go")
        return self._stop(child, attempt, environment, seconds=left_s), True

    def _stop(self, child: Child, attempt: Attempt, environment: Mapping[str, str], *, seconds: float) -> int:
        """Abort callback, SIGTERM, and SIGKILL shortly before the time is over."""
        kill_at = time.monotonic() + max(0.0, seconds - KILL_BEFORE_S)
        if self._order.on_abort:
            self._abort(environment, child, kill_at - time.monotonic())
        child.signal(signal.SIGTERM)
        while True:
            try:
                happening = attempt.happenings.get(timeout=max(0.0, kill_at - time.monotonic()))
            except queue.Empty:
                child.signal(signal.SIGKILL)
                kill_at = time.monotonic() + 60
                continue
            if happening.what == "exit":
                return happening.code

    def _abort(self, environment: Mapping[str, str], child: Child, seconds: float) -> None:
        surroundings = {**environment, "FAIRPOOL_PID": str(child.pid), "FAIRPOOL_SECONDS_LEFT": f"{seconds:.1f}"}
        try:
            done = subprocess.run(
                ["/bin/sh", "-c", self._order.on_abort], env=surroundings, timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired:
            self._tell("--on-abort took until the deadline and was stopped")
            return
        if done.returncode:
            self._tell(f"--on-abort exited with {done.returncode}")

    def _await_exit(self, child: Child, attempt: Attempt) -> None:
        attempt.happenings.put(Happening("exit", code=child.wait()))

    def _follow(self, attempt: Attempt) -> None:
        """Hear of an eviction as it happens; the lease's renewal would bring it later."""
        seen = attempt.request
        while seen.status is RequestStatus.ALLOCATED and self._child is not None:
            try:
                seen = self._client.request(seen.id, wait_s=POLL_S, after_version=seen.version)
            except ClientError:
                time.sleep(1)
        if seen.status is not RequestStatus.ALLOCATED:
            _tell_status(seen.status, seen.eviction.deadline_at if seen.eviction else None, attempt)

    def _release(self, request: RequestView) -> RequestView | None:
        self._renewer.remove(request.id)
        with suppress(ClientError):
            return self._client.release(request.id)
        with suppress(ClientError):
            return self._client.request(request.id)
        return None

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._signalled = number
        if self._child is not None:
            self._child.signal(number)


def environment_of(request: RequestView) -> dict[str, str]:
    """The surroundings of a granted command: exactly its devices, and who it is."""
    environment = dict(os.environ)
    held = request.allocation
    if held is not None and held.pool is not None:
        indices = [device.index for part in held.parts for device in part.devices]
        environment |= visible(indices)
        environment["FAIRPOOL_POOL"] = held.pool
        environment["FAIRPOOL_NODES"] = ",".join(part.node for part in held.parts if part.node)
    elif not request.demand.get("gpu"):
        environment |= visible([])
    environment["FAIRPOOL_REQUEST_ID"] = request.id
    return environment


def _devices_told(request: RequestView) -> str:
    held = request.allocation
    indices = [str(device.index) for part in held.parts for device in part.devices] if held is not None else []
    return f"on GPU {', '.join(indices)}" if indices else ""


def _heard(lease: LeaseView | None, attempt: Attempt) -> None:
    if lease is None:
        attempt.happenings.put(Happening("lost"))
    elif lease.status is not RequestStatus.ALLOCATED:
        _tell_status(lease.status, lease.eviction.deadline_at if lease.eviction else None, attempt)


def _tell_status(status: RequestStatus, deadline_at: datetime | None, attempt: Attempt) -> None:
    if status is RequestStatus.PREEMPTING:
        attempt.happenings.put(Happening("evicted", deadline_at=deadline_at))
    elif status.is_final:
        attempt.happenings.put(Happening("lost"))


def _user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def name_of(command: Sequence[str]) -> str:
    """What a run of the command is called: its program, and the script where an interpreter runs one."""
    program = os.path.basename(command[0])  # noqa: PTH119 (text, not a path that must exist)
    script = next((word for word in command[1:] if not word.startswith("-")), "")
    return os.path.basename(script) if program.startswith("python") and script else program  # noqa: PTH119


def shown(command: Sequence[str]) -> str:
    """The command as a shell would read it."""
    return shlex.join(command)


__all__ = ["GOVERNING", "Order", "Session", "environment_of", "name_of", "shown"]

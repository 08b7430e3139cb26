"""One command from submission to exit code: queue, grant, run, eviction, release, and again with ``--requeue``."""

from __future__ import annotations

import getpass
import os
import shlex
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

from fairpool.cli import render
from fairpool.cli.running.child import CannotRun, Child
from fairpool.cli.running.environment import devices_told, environment_of
from fairpool.cli.running.execution import Ended, Execution
from fairpool.cli.running.happenings import (
    ENDING,
    Follower,
    Forgotten,
    Happenings,
    Seen,
    Signalled,
    Why,
    next_of,
    signals_to,
)
from fairpool.cli.running.ungoverned import said_of_ungoverned
from fairpool.cli.running.voice import Voice
from fairpool.client.api import Client
from fairpool.client.errors import ClientError
from fairpool.client.renewing import RENEW_EVERY_S, LeaseRenewer
from fairpool.sdk import vaults
from fairpool.sdk.granting import team_of
from fairpool.wire.problems import Exit
from fairpool.wire.requests import LeaseView, RequestCreate, RequestView
from fairpool.wire.runs import RunCreate, RunUpdate, StepCreate, StepUpdate
from fairpool.wire.values import RequestStatus, RunStatus

AT_ONCE_S: Final = 0.3
"""A request that is granted within this time has not waited, as far as people are concerned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What to run and how."""

    command: tuple[str, ...]
    request: RequestCreate
    name: str
    component: str
    stack: str | None = None
    on_abort: str = ""
    requeue: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Over:
    """How it all ended."""

    code: int
    status: RunStatus
    error: str = ""


class Session:
    """Runs an order."""

    def __init__(self, client: Client, order: Order, voice: Voice) -> None:
        self._client = client
        self._order = order
        self._voice = voice
        self._happenings: Happenings = Happenings()
        every_s = min(RENEW_EVERY_S, order.request.lease_s / 4)
        self._renewer = LeaseRenewer(client, every_s=every_s)

    def run(self) -> int:
        """The exit code. Whatever happens, nothing stays held."""
        over = _Over(code=Exit.FAILED, status=RunStatus.FAILED, error="it did not come to its end")
        with signals_to(self._happenings):
            order = self._order
            self._client.check(order.request)  # what is refused is no run
            run = self._client.create_run(
                RunCreate(
                    name=order.name,
                    kind="command",
                    user=_user(),
                    team=team_of(order.request.subjects),
                    labels=order.request.labels,
                    stack=order.stack,
                )
            ).id
            step = self._client.create_step(run, StepCreate(name=order.name, component=order.component)).id
            try:
                self._client.update_run(run, RunUpdate(status=RunStatus.RUNNING))
                over = self._attempts(run, step)
            except ClientError as error:
                over = _Over(code=error.exit_code, status=RunStatus.FAILED, error=error.message)
                raise
            finally:
                self._voice.clear()
                self._renewer.close()
                with suppress(ClientError):
                    self._client.update_step(step, StepUpdate(status=over.status, error=over.error or None))
                    self._client.update_run(run, RunUpdate(status=over.status, error=over.error or None))
        return over.code

    def _attempts(self, run: str, step: str) -> _Over:
        attempt, retry_of = 1, None
        while True:
            request = self._submit(run, step, retry_of)
            self._renewer.add(request.id, self._heard)
            follower = Follower(self._client, request, self._happenings)
            try:
                with suppress(ClientError):
                    self._client.update_step(step, StepUpdate(request=request.id, attempt=attempt))
                waited = self._wait(request)
                if isinstance(waited, _Over):
                    return waited
                ended = self._execute(waited, step, attempt)
            finally:
                follower.close()
                released = self._let_go(request.id)
            if not (ended.evicted and self._order.requeue) or ended.signalled:
                return _over(ended)
            # Only what was preempted has an old place in the queue; a lease that lapsed lost it.
            keeps_place = released is not None and released.status is RequestStatus.PREEMPTED
            attempt, retry_of = attempt + 1, request.id if keeps_place else None
            self._voice.tell(f"queued again{' in its old place' if keeps_place else ''} as attempt {attempt}")

    def _submit(self, run: str, step: str, retry_of: str | None) -> RequestView:
        said = self._order.request.model_dump(exclude_unset=True)
        said |= {"run": run, "step": step, "name": self._order.name}
        if retry_of is not None:
            said["retry_of"] = retry_of
        return self._client.submit(RequestCreate.model_validate(said), wait_s=AT_ONCE_S)

    def _heard(self, lease: LeaseView | None) -> None:
        # The follower hears of all else sooner; a lost database it hears of only by this.
        if lease is None:
            self._happenings.put(Forgotten())

    # ---- waiting ----------------------------------------------------------------------------------------------------

    def _wait(self, request: RequestView) -> RequestView | _Over:
        """Wait until the request holds its resources, saying why it waits as that changes."""
        began = time.monotonic()
        said = why = Why(text="")
        while True:
            happening = next_of(self._happenings, 1.0 if self._voice.is_live else None)
            match happening:
                case Signalled(number=number) if number in ENDING:
                    self._voice.tell("not started")
                    error = f"stopped by signal {number} while it waited"
                    return _Over(code=128 + number, status=RunStatus.CANCELLED, error=error)
                case Why():
                    why = happening
                case Seen(request=seen) if seen.id != request.id:
                    pass  # the last attempt's, which is over
                case Seen(request=seen) if seen.status.holds:
                    if said.text:
                        self._voice.tell(f"granted after {render.duration(time.monotonic() - began)}")
                    return seen
                case Seen(request=seen) if seen.status.is_final:
                    return self._never_ran(seen)
                case Forgotten():
                    return _Over(code=Exit.FAILED, status=RunStatus.FAILED, error="the server forgot the request")
                case _:
                    pass
            if why.text:
                when = f"; {why.when}" if why.when else ""
                if why.text != said.text or bool(why.when) != bool(said.when):
                    self._voice.tell(f"waiting: {why.text}{when}")
                    said = why
                self._voice.live(f"waiting {render.duration(time.monotonic() - began)}{when or ' …'}")

    def _never_ran(self, request: RequestView) -> _Over:
        told = "; ".join(dict.fromkeys(reason.message or reason.code for reason in request.reasons))
        if request.status is RequestStatus.REJECTED:
            timed_out = any(reason.code == "WAIT_TIMEOUT" for reason in request.reasons)
            self._voice.fail(f"rejected: {told}")
            self._voice.tell(f"fairpool request explain {request.id} says more")
            return _Over(code=Exit.TIMED_OUT if timed_out else Exit.REJECTED, status=RunStatus.FAILED, error=told)
        by = f", by {request.ended_by}" if request.ended_by else ""
        told = f"{request.status.value} while it waited{by}" + (f": {told}" if told else "")
        self._voice.fail(told)
        return _Over(code=Exit.FAILED, status=RunStatus.CANCELLED, error=told)

    # ---- running ----------------------------------------------------------------------------------------------------

    def _execute(self, request: RequestView, step: str, attempt: int) -> Ended:
        environment = {**environment_of(request, attempt=attempt), **self._variables(request)}
        self._voice.tell(self._where(request))
        try:
            child = Child(self._order.command, environment)
        except CannotRun as error:
            self._voice.fail(str(error))
            return Ended(code=error.code, why=str(error))
        with suppress(ClientError):
            self._client.update_step(step, StepUpdate(status=RunStatus.RUNNING))
        if request.status is RequestStatus.PREEMPTING:
            self._happenings.put(Seen(request=request))
        return Execution(
            child,
            self._happenings,
            self._voice.fail,
            request=request.id,
            environment=environment,
            on_abort=self._order.on_abort,
            max_runtime_s=request.max_runtime_s,
        ).until_over()

    def _variables(self, request: RequestView) -> dict[str, str]:
        """What the vault of its team gives."""
        if request.allocation is None or request.allocation.vault is None:
            return {}
        found = self._client.environment(request.id)
        added = vaults.merged(found, os.environ)
        note = vaults.told(found.vault, added.overridden)
        if note:
            self._voice.tell(note)
        return added.environment

    def _where(self, request: RequestView) -> str:
        held = request.allocation
        if held is None or held.pool is None:
            return said_of_ungoverned(self._client, request.subjects)
        devices = devices_told(request)
        borrowed = ", borrowed: it may be asked to let go" if held.in_share is False and request.preemptible else ""
        return f"running in pool {held.pool}{', ' + devices if devices else ''}{borrowed}"

    def _let_go(self, request: str) -> RequestView | None:
        """Release or withdraw the request. What cannot be said now, the lapse of the lease says later."""
        self._renewer.remove(request)
        with suppress(ClientError):
            seen = self._client.request(request)
            if seen.status is RequestStatus.QUEUED:
                return self._client.cancel(request, reason="withdrawn by its owner")
            return self._client.release(request) if seen.status.holds else seen
        self._voice.fail(f"request {request} could not be released; it ends when its lease lapses")
        return None


def _over(ended: Ended) -> _Over:
    if ended.evicted:
        return _Over(code=ended.code or Exit.FAILED, status=RunStatus.FAILED, error=ended.why)
    if ended.signalled:
        return _Over(code=ended.code, status=RunStatus.CANCELLED, error=f"stopped by signal {ended.signalled}")
    if ended.code or ended.why:
        error = ended.why or f"exit code {ended.code}"
        return _Over(code=ended.code or Exit.FAILED, status=RunStatus.FAILED, error=error)
    return _Over(code=0, status=RunStatus.COMPLETED)


def _user() -> str:
    with suppress(KeyError, OSError):
        return getpass.getuser()
    return ""


def name_of(command: Sequence[str]) -> str:
    """What a run of the command is called: its program, and the script where an interpreter runs one."""
    program = PurePath(command[0]).name
    script = next((word for word in command[1:] if not word.startswith("-")), "")
    is_interpreter = program.startswith(("python", "bash", "sh"))
    return PurePath(script).name if is_interpreter and script and " " not in script else program


def shown(command: Sequence[str]) -> str:
    """The command as a shell would read it, without what is no text for a terminal."""
    return "".join(char if char.isprintable() else "·" for char in shlex.join(command))

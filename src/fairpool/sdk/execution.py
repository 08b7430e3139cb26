"""The life of one step in a driver: waiting for others, for resources, running, ending, trying again.

Everything here happens on the loop's thread, except `_request`, which the broker's calling thread makes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from enum import Enum, auto
from typing import Any

from fairpool.sdk import console, endings, granting, uncounted, vaults
from fairpool.sdk.broker import Broker, Submission
from fairpool.sdk.calls import StepCall
from fairpool.sdk.endings import Cause
from fairpool.sdk.errors import (
    ArtifactError,
    Refused,
    StepCancelled,
    StepError,
    StepFailed,
    StepRejected,
    UpstreamFailed,
)
from fairpool.sdk.futures import StepFuture
from fairpool.sdk.loop import Loop, Timer
from fairpool.sdk.orchestrators.base import Grant, Job, Launch
from fairpool.sdk.orders import DEFAULT_GRACE_S, Ending, Order
from fairpool.sdk.pickling import unpack
from fairpool.sdk.slots import Slots
from fairpool.wire.requests import RequestCreate, RequestView
from fairpool.wire.runs import StepCreate, StepUpdate
from fairpool.wire.values import RequestStatus, RunStatus

LOST_GRACE_S = 5.0
"""What a step gets whose resources are others' already: enough to close files, too little to go on."""


class Phase(Enum):
    """Where a step is in its life."""

    BEFORE = auto()  # waits for the results of others, or for the delay before a retry
    ASKED = auto()  # has asked for resources
    GRANTED = auto()  # has them, and waits for a free place on this machine
    RUNNING = auto()
    OVER = auto()


class Execution:
    """One step from its submission to its end."""

    def __init__(
        self,
        call: StepCall,
        future: StepFuture[Any],
        *,
        broker: Broker,
        loop: Loop,
        slots: Slots,
        pace: console.Pace,
    ) -> None:
        self.call = call
        self.future = future
        self._broker = broker
        self._loop = loop
        self._slots = slots
        self._pace = pace
        self._phase = Phase.BEFORE
        self._attempt = 0
        self._step_id: str | None = None
        self._request_id: str | None = None
        self._retry_of: str | None = None
        self._view: RequestView | None = None
        self._job: Job | None = None
        self._cause: Cause | None = None
        self._timers: list[Timer] = []
        self._echo: console.Echo | None = None

    # ── before ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def begin(self) -> None:
        """Ask for resources once the results that it takes are there."""
        if self._phase is not Phase.BEFORE or self._attempt:
            return
        for upstream in self.call.references:
            if not upstream.done():
                upstream.add_done_callback(lambda _: self._loop.post(self.begin))
                return
        for upstream in self.call.references:
            error = upstream._error
            if error is not None:
                why = f"step {upstream.label}, whose result it takes, failed: {type(error).__name__}: {error}"
                failed = UpstreamFailed(f"step {self.call.label} was not run: {why}", step=self.call.name)
                failed.__cause__ = error
                self._end(error=failed)
                return
        self._ask()

    def _ask(self) -> None:
        self._attempt += 1
        self._phase = Phase.ASKED
        self._request_id, self._view, self._job, self._cause = None, None, None, None
        attempt = self._attempt
        self._broker.submit(
            Submission(
                prepare=self._request,
                listener=lambda view: self._loop.post(lambda: self._heard(attempt, view)),
                failed=lambda error: self._loop.post(lambda: self._not_asked(attempt, error)),
            )
        )

    def _request(self) -> RequestCreate:
        """The request of this attempt; before the first, the server is told of the step. On the calling thread."""
        call = self.call
        if self._phase is Phase.OVER:
            raise StepCancelled(f"step {call.label} was cancelled before it asked for anything", step=call.name)
        if self._step_id is None:
            create = StepCreate.model_validate(
                {
                    "name": call.name,
                    "index": call.index,
                    "component": call.orchestrator.name,
                    "log": str(self._log()),
                    "settings": call.settings.to_demand(),
                }
            )
            self._step_id = self._broker.api.create_step(call.run.run_id, create).id
        return granting.request_for(
            call.settings,
            subjects=(call.orchestrator.subject, *call.run.subjects),
            name=call.label,
            run=call.run.run_id,
            step=self._step_id,
            retry_of=self._retry_of,
        )

    def _not_asked(self, attempt: int, error: Exception) -> None:
        if attempt == self._attempt and self._phase is Phase.ASKED:
            self._end(error=StepRejected(f"step {self.call.label} was refused: {error}", step=self.call.name))

    # ── what the server says ────────────────────────────────────────────────────────────────────────────────────────

    def _heard(self, attempt: int, view: RequestView) -> None:
        if attempt != self._attempt or self._phase is Phase.OVER:
            if not view.status.is_final:
                self._broker.cancel(view.id, "the step was cancelled")
            return
        self._request_id, self._view = view.id, view
        match view.status:
            case RequestStatus.QUEUED:
                self._loop.after(1.0, lambda: self._say_why_it_waits(attempt))
            case RequestStatus.ALLOCATED:
                self._granted(view)
            case RequestStatus.PREEMPTING:
                self._told_to_let_go(view)
            case RequestStatus.REJECTED:
                self._end(error=endings.rejected(self.call, view))
            case _:
                self._taken_away(view)

    def _granted(self, view: RequestView) -> None:
        if self._phase is not Phase.ASKED:
            return
        self._phase = Phase.GRANTED
        grant, attempt = granting.grant_of(view), self._attempt
        if view.allocation is not None and view.allocation.vault is not None:
            self._broker.call(lambda: self._read_vault(attempt, grant))
        else:
            self._take_a_place(grant, {})

    def _read_vault(self, attempt: int, grant: Grant) -> None:
        """On the broker's calling thread."""
        try:
            found = self._broker.api.environment(grant.request_id)
        except Refused as error:
            refused = StepFailed(f"step {self.call.label} got no environment: {error}", step=self.call.name)
            self._loop.post(lambda: self._vault_is_shut(attempt, refused))
            return
        added = vaults.merged(found, os.environ)
        note = vaults.told(found.vault, added.overridden)
        if note:
            console.note(f"{self.call.label}: {note}")
        self._loop.post(lambda: self._vault_is_read(attempt, grant, added.environment))

    def _vault_is_read(self, attempt: int, grant: Grant, variables: dict[str, str]) -> None:
        if attempt == self._attempt and self._phase is Phase.GRANTED:
            self._take_a_place(grant, variables)

    def _vault_is_shut(self, attempt: int, error: StepError) -> None:
        if attempt == self._attempt and self._phase is Phase.GRANTED:
            self._release()
            self._end(error=error)

    def _take_a_place(self, grant: Grant, variables: dict[str, str]) -> None:
        self._slots.take(self, self.call.orchestrator, grant, lambda: self._launch(grant, variables))

    def _told_to_let_go(self, view: RequestView) -> None:
        if self._phase is not Phase.RUNNING:
            self._release()
            self._again_or_end(endings.preempted(self.call, view), retry_of=view.id)
            return
        deadline = view.eviction.deadline_at if view.eviction is not None else None
        grace_s = DEFAULT_GRACE_S if deadline is None else (deadline - datetime.now(UTC)).total_seconds()
        grace_s, why = max(grace_s, 0.0), endings.why_preempted(view)
        if self._cause is None:
            console.note(f"{self.call.label}: told to let go within {grace_s:.0f} s: {why}")
        self._stop(Cause.PREEMPTED, why, grace_s)

    def _taken_away(self, view: RequestView) -> None:
        """The request is final though the step has not ended: the deadline passed, an operator, or a lapsed lease."""
        if self._phase is Phase.RUNNING:
            if self._cause is Cause.PREEMPTED and self._job is not None:
                self._job.kill()
            else:
                cancelled = view.status is RequestStatus.CANCELLED
                self._stop(Cause.CANCELLED if cancelled else Cause.LOST, endings.why_lost(view), LOST_GRACE_S)
            return
        if view.status is RequestStatus.CANCELLED:
            self._end(error=endings.cancelled(self.call, view.id, endings.why_lost(view)))
        elif view.status is RequestStatus.PREEMPTED:
            self._again_or_end(endings.preempted(self.call, view), retry_of=view.id)
        else:
            self._again_or_end(endings.lost(self.call, view))

    def _say_why_it_waits(self, attempt: int) -> None:
        if attempt != self._attempt or self._phase is not Phase.ASKED or not self._pace.allows():
            return
        request = self._request_id or ""
        self._broker.call(
            lambda: console.note(f"{self.call.label}: {self._broker.api.explain(request).summary or 'waits'}")
        )

    # ── running ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _launch(self, grant: Grant, variables: dict[str, str]) -> None:
        if self._phase is not Phase.GRANTED:
            self._slots.give_back(self)
            return
        self._phase = Phase.RUNNING
        try:
            launch = self._order(grant, variables)
            self._job = self.call.orchestrator.launch(launch)
        except Exception as error:  # noqa: BLE001 (a custom orchestrator may raise anything; it fails this attempt)
            self._release()
            failed = StepFailed(f"step {self.call.label} could not be started: {error}", step=self.call.name)
            failed.__cause__ = error
            self._again_or_end(failed)
            return
        self._report(status=RunStatus.RUNNING, request=grant.request_id, attempt=self._attempt, log=str(self._log()))
        who = (self.call.orchestrator.subject, *self.call.run.subjects)
        if not grant.governed and self.call.settings.gpu_count and self._pace.is_first(f"uncounted {who}"):
            self._broker.call(lambda: uncounted.note(self._broker.api, self.call.label, who))
        if console.shows():
            self._echo = console.Echo(self.call.label, launch.log)
            self._loop.after(console.EVERY_S, self._show)
        limit_s = self._max_runtime_s()
        if limit_s is not None:
            self._later(limit_s, self._ran_too_long)
        self._watch(self._job)

    def _order(self, grant: Grant, variables: dict[str, str]) -> Launch:
        call, run = self.call, self.call.run
        environment = granting.environment_of(grant)
        names = environment.get(granting.NAMES, "")
        folder = f"{call.folder}/attempt-{self._attempt}"
        order = Order(
            store=run.store.root,
            run_id=run.run_id,
            run_name=run.run_name,
            step_id=self._step_id or call.label,
            step_name=call.name,
            attempt=self._attempt,
            request_id=grant.request_id,
            pool=grant.pool,
            devices=tuple(name for name in names.split(",") if name),
            function=call.function,
            function_data=call.function_data,
            inputs=call.inputs,
            output=call.output,
            outcome=f"{folder}/outcome",
            checkpoint=call.checkpoint,
            sys_path=tuple(path or os.getcwd() for path in sys.path),  # noqa: PTH109 (as the interpreter reads it)
            cwd=os.getcwd(),  # noqa: PTH109
        )
        run.store.write(f"{folder}/order.json", order.to_json())
        return Launch(
            run_id=run.run_id,
            run_name=run.run_name,
            step_id=order.step_id,
            step_name=call.name,
            attempt=self._attempt,
            command=(sys.executable, "-m", "fairpool.sdk.worker", run.store.root, f"{folder}/order.json"),
            environment={**variables, **environment},
            cwd=order.cwd,
            log=self._log(),
            settings=call.settings,
            grant=grant,
        )

    def _watch(self, job: Job) -> None:
        descriptor = job.fileno()
        if descriptor is not None:
            self._loop.watch(descriptor, lambda: self._ended(job))
        else:
            self._loop.after(self.call.orchestrator.poll_interval_s, lambda: self._poll(job))

    def _poll(self, job: Job) -> None:
        if self._job is not job or self._phase is not Phase.RUNNING:
            return
        if job.exit_code() is None:
            self._watch(job)
        else:
            self._ended(job)

    def _show(self) -> None:
        if self._echo is not None and self._phase is Phase.RUNNING:
            self._echo.show()
            self._loop.after(console.EVERY_S, self._show)

    def _max_runtime_s(self) -> int | None:
        """How long it may run: what it said itself, or what its profile says."""
        said = self._view.max_runtime_s if self._view is not None else None
        return self.call.settings.max_runtime_s or said

    def _ran_too_long(self) -> None:
        limit = self._max_runtime_s()
        self._stop(Cause.TIMED_OUT, f"it ran for longer than its max_runtime of {limit} s", DEFAULT_GRACE_S)

    # ── ending ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def cancel(self, reason: str, *, at_once: bool = False) -> None:
        """End it: withdraw what waits, tell what runs to end, or kill that `at_once`."""
        match self._phase:
            case Phase.OVER:
                return
            case Phase.RUNNING:
                self._stop(Cause.CANCELLED, reason, DEFAULT_GRACE_S)
                if at_once and self._job is not None:
                    self._job.kill()
                return
            case Phase.ASKED if self._request_id is not None:
                self._broker.cancel(self._request_id, reason)
            case Phase.GRANTED:
                self._release()
            case _:
                pass  # nothing was asked for yet; an answer on its way is dealt with when it comes (_heard)
        self._end(error=endings.cancelled(self.call, self._request_id, reason))

    def _stop(self, cause: Cause, reason: str, grace_s: float) -> None:
        job = self._job
        if self._phase is not Phase.RUNNING or job is None:
            return
        first, self._cause = self._cause is None, endings.weightier(self._cause, cause)
        if first:
            job.stop(reason, grace_s)
        # A second cause may only shorten what the first has left to it.
        self._later(grace_s, job.kill)

    def _ended(self, job: Job) -> None:
        code = job.exit_code()
        if code is None:  # its descriptor spoke a moment before the exit code is there
            self._loop.after(0.01, lambda: self._ended(job))
            return
        self._clear()
        if self._echo is not None:
            self._echo.show(to_the_end=True)
            self._echo = None
        job.close()
        self._release()
        outcome = endings.read_outcome(self.call, self._attempt)
        if outcome is not None and outcome.ending is Ending.COMPLETED:
            self._end(load=self._load)
            return
        error = endings.error_of(self.call, code, outcome, self._cause, self._view, self._log())
        if self._cause is Cause.CANCELLED:
            self._end(error=error)
        elif self._cause is Cause.PREEMPTED:
            self._again_or_end(error, retry_of=self._request_id)
        else:
            self._again_or_end(error)

    def _load(self) -> Any:
        data = self.call.run.store.read(self.call.output)
        if data is None:
            raise ArtifactError(f"the result of step {self.call.label} is not in {self.call.run.store.root} any more")
        return unpack(data, what=f"the result of step {self.call.label}")

    def _again_or_end(self, error: BaseException, *, retry_of: str | None = None) -> None:
        retry = self.call.retry
        if self._attempt > retry.max_retries:
            self._end(error=error)
            return
        self._phase = Phase.BEFORE
        self._retry_of = retry_of
        self._clear()
        first_line = (str(error) or type(error).__name__).splitlines()[0]
        console.note(f"{self.call.label}: attempt {self._attempt} ended: {first_line}; it is tried again")
        # A preempted request asks again at once, so that its place in the queue (S24) is of use to it.
        delay_s = 0.0 if retry_of is not None else retry.delay_s(self._attempt)
        self._report(status=RunStatus.PENDING)
        if delay_s:
            self._later(delay_s, self._ask)
        else:
            self._ask()

    def _end(self, *, load: Callable[[], Any] | None = None, error: BaseException | None = None) -> None:
        if self._phase is Phase.OVER:
            return
        self._phase = Phase.OVER
        self._clear()
        self._slots.give_back(self)
        if error is None:
            self._report(status=RunStatus.COMPLETED)
        else:
            status = RunStatus.CANCELLED if isinstance(error, StepCancelled) else RunStatus.FAILED
            text = str(error) if isinstance(error, StepError) else f"{type(error).__name__}: {error}"
            self._report(status=status, error=text[:10_000])
        self.future._settle(load=load, error=error)

    # ── small things ────────────────────────────────────────────────────────────────────────────────────────────────

    def _release(self) -> None:
        self._slots.give_back(self)
        if self._request_id is not None and self._view is not None and not self._view.status.is_final:
            self._broker.release(self._request_id)

    def _report(self, **changes: Any) -> None:
        update = StepUpdate(**changes)

        def send() -> None:
            if self._step_id is not None:
                self._broker.api.update_step(self._step_id, update)

        self._broker.call(send)

    def _later(self, delay_s: float, action: Callable[[], object]) -> None:
        self._timers.append(self._loop.after(delay_s, action))

    def _clear(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()

    def _log(self) -> Any:
        return self.call.run.logs / f"{self.call.numbered}.{max(self._attempt, 1)}.log"

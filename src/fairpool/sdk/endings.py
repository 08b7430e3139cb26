"""How an attempt of a step ended, in exceptions that say why."""

from __future__ import annotations

import signal
from enum import IntEnum
from pathlib import Path

from fairpool.sdk.calls import StepCall
from fairpool.sdk.errors import (
    ArtifactError,
    StepCancelled,
    StepFailed,
    StepLost,
    StepPreempted,
    StepRejected,
    StepTimedOut,
    WaitTimedOut,
)
from fairpool.sdk.orders import Outcome
from fairpool.sdk.pickling import unpack
from fairpool.wire.requests import EvictionView, RequestView
from fairpool.wire.values import RequestStatus


class Cause(IntEnum):
    """Why a running step was told to end. Where there are several, the highest decides what becomes of it."""

    TIMED_OUT = 1
    PREEMPTED = 2
    LOST = 3
    CANCELLED = 4


def weightier(first: Cause | None, second: Cause) -> Cause:
    """The one that decides."""
    return second if first is None else max(first, second)


def read_outcome(call: StepCall, attempt: int) -> Outcome | None:
    """What the step's process said of its end; None where it said nothing (it was killed)."""
    try:
        data = call.run.store.read(f"{call.folder}/attempt-{attempt}/outcome")
        return None if data is None else Outcome.from_json(data)
    except (ArtifactError, ValueError, KeyError, TypeError):
        return None


def error_of(
    call: StepCall, code: int, outcome: Outcome | None, cause: Cause | None, view: RequestView | None, log: Path
) -> BaseException:
    """The exception that an attempt which did not complete stands for."""
    request = view.id if view is not None else None
    if cause is Cause.CANCELLED:
        return cancelled(call, request, "it was told to end")
    if cause is Cause.PREEMPTED and view is not None:
        return preempted(call, view)
    if cause is Cause.LOST and view is not None:
        return lost(call, view)
    if cause is Cause.TIMED_OUT:
        limit = call.settings.max_runtime_s or (view.max_runtime_s if view is not None else None)
        return StepTimedOut(
            f"step {call.label} ran for longer than its max_runtime of {limit} s and was ended",
            step=call.name,
            request=request,
        )
    if outcome is not None and outcome.exception:
        return _raised(call, outcome, request)
    return StepFailed(
        f"step {call.label} {_died(code, outcome)}; its output is in {log}", step=call.name, request=request
    )


def _raised(call: StepCall, outcome: Outcome, request: str | None) -> BaseException:
    try:
        data = call.run.store.read(outcome.exception)
        found = None if data is None else unpack(data, what=f"the exception of step {call.label}")
    except ArtifactError as error:
        found = None
        text = f"{outcome.text} ({error})"
    else:
        text = outcome.text
    if isinstance(found, BaseException):
        return found
    return StepFailed(f"step {call.label} raised {text}", step=call.name, request=request)


def _died(code: int, outcome: Outcome | None) -> str:
    if outcome is not None and outcome.text:
        return f"ended: {outcome.text}"
    if code >= 0:
        return f"ended with exit code {code} and without a result"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = " (often: the machine ran out of memory)" if name == "SIGKILL" else ""
    return f"was killed by {name}{hint}"


def why_preempted(view: RequestView) -> str:
    """The reason as a sentence's end: pool, policy and the request that takes the place (S32)."""
    eviction = view.eviction or EvictionView()
    held = view.allocation
    pool = eviction.pool or (held.pool if held is not None else None) or "the pool"
    policy = eviction.policy or (held.subject or held.policy if held is not None else None) or "its policy"
    taker = f"request {eviction.cause}" if eviction.cause else "an operator"
    ways = {
        "reclaim": "got back what was reserved for it",
        "priority": "has a higher priority",
        "capacity": "made the pool smaller",
    }
    return f"pool {pool!r} (policy {policy}): {taker} {ways.get(eviction.because, 'took its place')}"


def preempted(call: StepCall, view: RequestView) -> StepPreempted:
    """It had to let go."""
    return StepPreempted(
        f"step {call.label} was preempted in {why_preempted(view)}\n"
        # Lines of their own: of a step that is tried again only the first is shown.
        "Its retry settings allow no further attempt; with retry=StepRetryConfig(max_retries=3) it would queue again "
        "and find its checkpoint, and with preemptible=False it would only run inside its reservation",
        step=call.name,
        request=view.id,
    )


def rejected(call: StepCall, view: RequestView) -> StepRejected:
    """It can never run, or waited for too long."""
    if any(reason.code == "WAIT_TIMEOUT" for reason in view.reasons):
        return WaitTimedOut(
            f"step {call.label} waited for longer than its wait_timeout of {call.settings.wait_timeout_s} s "
            f"(fairpool request describe {view.id})",
            step=call.name,
            request=view.id,
        )
    reasons = _reasons(view) or "no reason was given"
    return StepRejected(
        f"step {call.label} can never run: {reasons} (fairpool request explain {view.id})",
        step=call.name,
        request=view.id,
    )


def why_lost(view: RequestView) -> str:
    """What happened to a request that is no longer ours, as a sentence's end."""
    by = f" by {view.ended_by}" if view.ended_by else ""
    match view.status:
        case RequestStatus.EXPIRED:
            return "its lease lapsed: the server did not hear from this program for too long"
        case RequestStatus.CANCELLED:
            reasons = _reasons(view)
            return f"its request was cancelled{by}" + (f": {reasons}" if reasons else "")
        case _:
            return f"its request was ended{by} ({view.status.value})"


def _reasons(view: RequestView) -> str:
    """Why it was rejected, or what it has lost: each sentence once."""
    return "; ".join(dict.fromkeys(reason.message or reason.code for reason in view.reasons))


def lost(call: StepCall, view: RequestView) -> StepLost:
    """Its resources are others' now."""
    return StepLost(f"step {call.label} lost its resources: {why_lost(view)}", step=call.name, request=view.id)


def cancelled(call: StepCall, request: str | None, why: str) -> StepCancelled:
    """It was cancelled."""
    return StepCancelled(f"step {call.label} was cancelled: {why}", step=call.name, request=request)

"""`hold`: resources for any program, for as long as a block lasts."""

from __future__ import annotations

import logging
import os
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from fairpool.sdk import console, endings, granting, uncounted, vaults
from fairpool.sdk.broker import Broker, Submission
from fairpool.sdk.connection import setting
from fairpool.sdk.driver import shared_broker
from fairpool.sdk.errors import HoldError, InvalidUse, Refused, Unreachable
from fairpool.sdk.orchestrators.base import Grant
from fairpool.sdk.orders import DEFAULT_GRACE_S
from fairpool.sdk.settings import ResourceSettings
from fairpool.sdk.stacks import find_stack
from fairpool.wire.requests import RequestView
from fairpool.wire.values import RequestStatus

log = logging.getLogger("fairpool.sdk")


class Hold:
    """Resources that a program holds. Made by `hold`; use it as a context manager, or `acquire` and `release` it.

    The lease is renewed by a thread; when the program dies, it lapses and the resources are free again (S35).
    """

    def __init__(
        self,
        settings: ResourceSettings,
        *,
        pool: str | None,
        subjects: Sequence[str] | None,
        team: str | None = None,
        on_preempt: Callable[[], object] | None,
        name: str,
        timeout_s: float | None,
    ) -> None:
        self.settings = settings
        self.on_preempt = on_preempt
        self._asked_pool = pool
        self._subjects = subjects
        self._teams = (team,) if team else ()
        self._name = name
        self._timeout_s = timeout_s
        self._broker: Broker | None = None
        self._changed = threading.Condition()
        self._view: RequestView | None = None
        self._failure: Exception | None = None
        self._deadline: float | None = None
        self._given_back = False
        self._timers: list[threading.Timer] = []
        self._variables: dict[str, str] = {}  # what the vault of its team gives

    @property
    def request(self) -> str | None:
        """The id of its request."""
        return None if self._view is None else self._view.id

    @property
    def pool(self) -> str | None:
        """The pool that the resources came from; None where no policy governs the request (S15)."""
        return self._grant().pool

    @property
    def devices(self) -> tuple[str, ...]:
        """The names of the GPUs that were granted, as ``CUDA_VISIBLE_DEVICES`` lists them."""
        names = self.environment.get(granting.NAMES, "") if self._grant().governed else ""
        return tuple(name for name in names.split(",") if name)

    @property
    def environment(self) -> dict[str, str]:
        """The variables that show a process exactly what was granted, and what the vault of its team gives; set them
        before a framework looks at devices."""
        return {**self._variables, **granting.environment_of(self._grant())}

    @property
    def preempting(self) -> bool:
        """Whether it must be given back."""
        return self._deadline is not None

    @property
    def seconds_left(self) -> float | None:
        """Seconds until it is taken away, once it must be given back; None before."""
        return None if self._deadline is None else max(self._deadline - time.monotonic(), 0.0)

    @property
    def lost(self) -> bool:
        """Whether it was taken away: the deadline passed, the lease lapsed, or an operator ended it."""
        view = self._view
        return view is not None and view.status.is_final and not self._given_back

    def raise_if_preempting(self) -> None:
        """Raise HoldError if it must be given back, or was taken away; for loops that can stop between two rounds."""
        if (self.preempting or self.lost) and self._view is not None:
            evicted = self._view.eviction is not None
            why = endings.why_preempted(self._view) if evicted else "it has lasted for its max_runtime, or was ended"
            raise HoldError(f"the hold must be given back: {why}", request=self.request)

    def acquire(self) -> Self:
        """Wait until it is granted. Raises HoldError where it never can be, or not within `timeout`."""
        if self._broker is not None:
            raise InvalidUse("a hold is used once; make another with hold(…)")
        self._broker = shared_broker()
        subjects = self._subjects
        if subjects is None:
            subjects = (
                find_stack(self._broker.api, None).orchestrator.subject,
                *granting.subjects_around(*self._teams),
            )
        create = granting.request_for(self.settings, subjects=subjects, name=self._name, pool=self._asked_pool)
        self._broker.submit(Submission(prepare=lambda: create, listener=self._heard, failed=self._not_asked))
        try:
            self._wait()
            self._read_vault(self._broker)
            if self.settings.gpu_count and not self._grant().governed:
                self._broker.call(partial(uncounted.note, self._broker.api, self._name, create.subjects))
        except BaseException:
            self.release()
            raise
        return self

    def _read_vault(self, broker: Broker) -> None:
        held = self._view.allocation if self._view is not None else None
        if held is None or held.vault is None:
            return
        try:
            found = broker.api.environment(self._grant().request_id)
        except (Refused, Unreachable) as error:
            raise HoldError(
                f"the vault of team {held.vault} could not be read: {error}", request=self.request
            ) from None
        added = vaults.merged(found, os.environ)
        self._variables = added.environment
        note = vaults.told(found.vault, added.overridden)
        if note:
            log.warning("%s: %s", self._name, note)

    def release(self) -> None:
        """Give it back, or withdraw the request; a second time does nothing."""
        with self._changed:
            if self._given_back or self._broker is None:
                return
            self._given_back = True
            view = self._view
        for timer in self._timers:
            timer.cancel()
        if view is None:
            return  # an answer that is on its way is dealt with when it comes
        if view.status.holds:
            self._broker.release(view.id)
        elif not view.status.is_final:
            self._broker.cancel(view.id, "withdrawn by its program")
        self._broker.flush()

    def __enter__(self) -> Self:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _wait(self) -> None:
        deadline = None if self._timeout_s is None else time.monotonic() + self._timeout_s
        said = False
        with self._changed:
            while self._failure is None and (self._view is None or self._view.status is RequestStatus.QUEUED):
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    raise HoldError(f"not granted within {self._timeout_s:g} s", request=self.request)
                self._changed.wait(left if said else min(1.0, left or 1.0))
                if not said and self._view is not None and self._view.status is RequestStatus.QUEUED:
                    said = True
                    self._say_why_it_waits(self._view.id)
            if self._failure is not None:
                raise self._failure
            assert self._view is not None
            if not self._view.status.holds:
                raise self._refused(self._view)
            limit_s = self.settings.max_runtime_s or self._view.max_runtime_s  # its own, or what its profile says
        if limit_s is not None:
            self._after(limit_s, lambda: self._held_too_long(limit_s))

    def _say_why_it_waits(self, request: str) -> None:
        broker = self._broker
        if broker is not None and console.tells():
            broker.call(lambda: console.note(f"{self._name}: {broker.api.explain(request).summary or 'waits'}"))

    def _refused(self, view: RequestView) -> HoldError:
        if view.status is RequestStatus.REJECTED:
            reasons = "; ".join(reason.message or reason.code for reason in view.reasons) or "no reason was given"
            return HoldError(
                f"the request was rejected: {reasons} (fairpool request explain {view.id})", request=view.id
            )
        return HoldError(f"not granted: {endings.why_lost(view)}", request=view.id)

    def _not_asked(self, error: Exception) -> None:
        with self._changed:
            self._failure = HoldError(f"the request was refused: {error}")
            self._failure.__cause__ = error
            self._changed.notify_all()

    def _heard(self, view: RequestView) -> None:
        """From one of the broker's threads."""
        with self._changed:
            self._view = view
            gone = self._given_back
            self._changed.notify_all()
        if gone:
            if not view.status.is_final and self._broker is not None:
                self._broker.cancel(view.id, "withdrawn by its program")
        elif view.status is RequestStatus.PREEMPTING:
            self._told_to_let_go(view)
        elif view.status.is_final and view.status is not RequestStatus.REJECTED:
            log.warning("a hold is gone: %s", endings.why_lost(view))

    def _told_to_let_go(self, view: RequestView) -> None:
        at = view.eviction.deadline_at if view.eviction is not None else None
        grace_s = DEFAULT_GRACE_S if at is None else max((at - datetime.now(UTC)).total_seconds(), 0.0)
        self._deadline = time.monotonic() + grace_s
        if self.on_preempt is None:
            why = endings.why_preempted(view)
            log.warning("a hold must be given back within %.0f s: %s", grace_s, why)
        else:
            threading.Thread(target=self._call_back, name="fairpool-preempt", daemon=True).start()

    def _after(self, delay_s: float, action: Callable[[], object]) -> None:
        timer = threading.Timer(delay_s, action)
        timer.daemon = True
        timer.start()
        self._timers.append(timer)

    def _held_too_long(self, limit_s: int) -> None:
        """As when it is preempted: whoever holds it is told, and after the grace period it is given back."""
        if self.preempting or self._given_back:
            return
        log.warning("a hold has lasted for its max_runtime of %s s and is given back", limit_s)
        self._deadline = time.monotonic() + DEFAULT_GRACE_S
        self._after(DEFAULT_GRACE_S, self.release)
        if self.on_preempt is not None:
            self._call_back()

    def _call_back(self) -> None:
        try:
            assert self.on_preempt is not None
            self.on_preempt()
        except Exception:  # noqa: BLE001 (a callback's trouble is its program's; it must be seen, not end a thread)
            log.error("on_preempt failed:\n%s", traceback.format_exc())

    def _grant(self) -> Grant:
        if self._view is None or self._view.allocation is None:
            raise HoldError("nothing is held (yet): use `with hold(…) as h:`, or call acquire() first")
        return granting.grant_of(self._view)


def hold(
    settings: ResourceSettings | None = None,
    /,
    *,
    pool: str | None = None,
    on_preempt: Callable[[], object] | None = None,
    component: str | None = None,
    subjects: Sequence[str] = (),
    team: str | None = None,
    name: str | None = None,
    timeout: float | None = None,
    **resources: Any,
) -> Hold:
    """Hold resources while a block lasts: ``with hold(gpu_count=1, pool="training-gpus") as h:``.

    resources: the fields of ResourceSettings (which may be given as the first argument instead). pool: the one pool
    that will do. on_preempt: called in a thread when the resources must be given back; leave the block within
    ``h.seconds_left`` seconds, after that they are others'. component: as which component to ask; the active stack's
    orchestrator, if left out. subjects: whose it is besides (``team:vision``). team: of your teams the one that it is
    for; what FAIRPOOL_TEAM says, else all of them. timeout: seconds to wait, then HoldError (`wait_timeout` says the
    same to the server, which then rejects the request).
    """
    if settings is not None and resources:
        raise InvalidUse("hold takes ResourceSettings or their fields, not both")
    asked_as: tuple[str, ...] | None = None
    component = component or setting("component")
    around = granting.subjects_around(*([team] if team else []))
    if component is not None:
        asked_as = (f"component:{component.removeprefix('component:')}", *around, *subjects)
    elif subjects:
        asked_as = (*around, *subjects)
    return Hold(
        settings if settings is not None else ResourceSettings(**resources),
        pool=pool,
        subjects=asked_as,
        team=team,
        on_preempt=on_preempt,
        name=name or Path(_program()).name or "hold",
        timeout_s=timeout,
    )


def _program() -> str:
    import sys

    return (sys.argv[0] if sys.argv else "") or f"process {os.getpid()}"

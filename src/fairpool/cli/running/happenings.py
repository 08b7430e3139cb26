"""What a run hears of while it waits or runs: one queue, filled by signal handlers and threads."""

from __future__ import annotations

import queue
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from types import FrameType
from typing import Final

from fairpool.cli import estimates
from fairpool.client.api import Client
from fairpool.client.errors import ClientError, Problem
from fairpool.wire.problems import Slug
from fairpool.wire.requests import RequestView
from fairpool.wire.values import RequestStatus

FORWARDED: Final = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
ENDING: Final = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT})
"""Signals that end a run which still waits; the others mean something to the command alone."""

_EXPLAIN_EVERY_S: Final = 5.0
_POLL_S: Final = 30.0
_AFTER_FAILURE_S: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Signalled:
    """Somebody sent us a signal."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The request has changed."""

    request: RequestView


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """Why the request waits. when: the estimate, where there is one."""

    text: str
    when: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """The server does not know the request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exited:
    """The command has ended, with this code."""

    code: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspended:
    """The command was suspended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """What ``--on-abort`` runs has ended."""

    process: subprocess.Popen[bytes]


Happening = Signalled | Seen | Why | Forgotten | Exited | Suspended | Saved
Happenings = queue.SimpleQueue[Happening]
"""A SimpleQueue can be filled from a signal handler that interrupts its own reader."""


def next_of(happenings: Happenings, timeout_s: float | None) -> Happening | None:
    """The next thing that happens, or None after the time."""
    try:
        return happenings.get(timeout=None if timeout_s is None else max(timeout_s, 0.0))
    except queue.Empty:
        return None


@contextmanager
def signals_to(happenings: Happenings) -> Iterator[None]:
    """Signals become happenings inside the block."""

    def heard(number: int, frame: FrameType | None) -> None:
        happenings.put(Signalled(number=number))

    # What the caller had ignored (nohup) stays ignored, here and in the command.
    mine = [number for number in FORWARDED if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, heard) for number in mine}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Follower:
    """Follows one request on a thread of its own, by long poll: each change, and why it waits. Survives restarts."""

    def __init__(self, client: Client, request: RequestView, happenings: Happenings) -> None:
        self._client = client
        self._happenings = happenings
        self._closed = threading.Event()
        threading.Thread(target=self._run, args=(request,), name="fairpool-follow", daemon=True).start()

    def close(self) -> None:
        """Say nothing more. The thread ends with its call."""
        self._closed.set()

    def _run(self, seen: RequestView) -> None:
        self._put(Seen(request=seen))
        while not seen.status.is_final and not self._closed.is_set():
            waits = seen.status is RequestStatus.QUEUED
            try:
                if waits:
                    self._put(why(self._client, seen.id))
                found = self._client.request(
                    seen.id, wait_s=_EXPLAIN_EVERY_S if waits else _POLL_S, after_version=seen.version
                )
            except Problem as error:
                if error.slug == Slug.NOT_FOUND:
                    self._put(Forgotten())
                    return
                self._closed.wait(_AFTER_FAILURE_S)
                continue
            except ClientError:
                self._closed.wait(_AFTER_FAILURE_S)
                continue
            if found.version != seen.version:
                seen = found
                self._put(Seen(request=seen))

    def _put(self, happening: Happening) -> None:
        if not self._closed.is_set():
            self._happenings.put(happening)


def why(client: Client, request: str) -> Why:
    """Why a request waits, as the server explains it."""
    found = client.explain(request)
    text = found.summary.removeprefix("waits, ").removeprefix("waits ") or found.status.value
    if found.estimate is None or found.estimate.low is None:
        return Why(text=text)
    return Why(text=text, when=estimates.start(found.estimate, _time_of_day))


def _time_of_day(at: datetime) -> str:
    here, today = at.astimezone(), datetime.now().astimezone().date()
    return f"{here:%H:%M:%S}" if here.date() == today else f"{here:%Y-%m-%d %H:%M}"

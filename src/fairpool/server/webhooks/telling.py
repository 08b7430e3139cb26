"""Telling all receivers: by the server that leads, from the history, each in its own time.

Each webhook has a task over the history, and one more over those who wait where it asks for that. How far each has come
is kept in the database through the scheduler's own commits: another server goes on from there. What was delivered just
before a server died may be delivered again, with the same id. All of it runs on a thread and an event loop of its own.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, cast

from fairpool.app.errors import AppError
from fairpool.app.ports import Clock, Reader, Sealer
from fairpool.app.records import Kind, WebhookCursor, cursors_of
from fairpool.app.scheduler_loop import SchedulerLoop
from fairpool.app.store_errors import StoreError
from fairpool.app.use_cases.webhooks import Webhook, WebhookRecord, webhook_of
from fairpool.server.metrics import Metrics
from fairpool.server.webhooks.messages import test_message
from fairpool.server.webhooks.sending import Outcome, Sender
from fairpool.server.webhooks.told import Course, Retries, TellHistory, TellWaiting

log = logging.getLogger(__name__)

LOOK_S: Final = 1.0
"""How often to look whether this server leads, and which webhooks there are."""

_STOP_S: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Running:
    """A webhook that is being told."""

    webhook: Webhook
    courses: tuple[Course, ...]
    tasks: tuple[asyncio.Task[None], ...]


def allows_private(teller: Teller | None) -> bool:
    """Whether webhooks may call what only this machine or its network can reach."""
    return teller is not None and teller.allow_private


class Teller:
    """Tells the receivers of a workspace."""

    def __init__(
        self,
        *,
        workspace: str,
        loop: SchedulerLoop,
        reader: Reader,
        clock: Clock,
        sealer: Sealer,
        metrics: Metrics,
        allow_private: bool,
        agent: str,
        retries: Retries | None = None,
    ) -> None:
        self.workspace = workspace
        self.scheduler = loop
        self.reader = reader
        self.clock = clock
        self.sealer = sealer
        self.metrics = metrics
        self.retries = retries or Retries()
        self.allow_private = allow_private
        self.sender = Sender(allow_private=allow_private, agent=agent)
        self._events: asyncio.AbstractEventLoop | None = None
        self._news = asyncio.Event()
        self._running: dict[str, _Running] = {}
        self._led = False  # whether this server led when it last looked
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="fairpool-webhooks", daemon=True)

    def start(self) -> None:
        """Begin to tell."""
        self._thread.start()

    def stop(self) -> None:
        """Tell nothing more, and write down how far it has come. From any thread."""
        self._stopping = True
        self.news()
        self._thread.join(_STOP_S)

    def news(self, *, declared: bool = True) -> None:
        """Something has happened. declared: whether to webhooks themselves; only then, and where this server has begun
        to lead, are they read again. From any thread; returns at once."""
        look = declared or self.scheduler.is_leading != self._led
        if (look or self._running) and self._events is not None and not self._events.is_closed():
            with suppress(RuntimeError):  # it was closed this moment
                self._events.call_soon_threadsafe(self._spread, look)

    def _spread(self, look: bool) -> None:
        if look:
            self._news.set()
        for running in self._running.values():
            for course in running.courses:
                course.news.set()

    def try_out(self, webhook: Webhook) -> Future[Outcome]:
        """Call a receiver now, once, whatever it has been told so far. From any thread."""
        assert self._events is not None, "the teller was started"
        message = test_message(f"msg_test_{secrets.token_hex(12)}", self.clock.now())
        secret = self.sealer.open(webhook.secret)
        return asyncio.run_coroutine_threadsafe(self.sender.send(webhook.url, secret, message), self._events)

    def _run(self) -> None:
        with asyncio.Runner() as runner:
            self._events = runner.get_loop()
            runner.run(self._supervise())

    async def _supervise(self) -> None:
        try:
            while not self._stopping:
                try:
                    await self._adjust()
                except (StoreError, AppError) as error:
                    log.warning("webhooks wait: %s", error)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), LOOK_S)
                await asyncio.sleep(0)
                self._news.clear()
        finally:
            await self._end(list(self._running))
            await self.sender.close()

    async def _adjust(self) -> None:
        """See that exactly the enabled webhooks are being told, as they are declared now, if this server leads."""
        wanted: dict[str, Webhook] = {}
        cursors: Mapping[str, WebhookCursor] = {}
        self._led = self.scheduler.is_leading
        if self._led:
            declared = await asyncio.to_thread(self.reader.declared.all, Kind.WEBHOOK)
            found = [webhook_of(cast("WebhookRecord", record)) for record in declared]
            wanted = {webhook.id: webhook for webhook in found if webhook.enabled}
            # Those who have ended gave up; that they may begin again only the database says.
            if any(self._has_ended(webhook) for webhook in wanted) or wanted.keys() - self._running.keys():
                cursors = await asyncio.to_thread(self.reader.cursors.all)
        changed = [name for name, running in self._running.items() if wanted.get(name) != running.webhook]
        changed += [name for name in wanted if self._has_ended(name) and not self._gave_up(cursors.get(name))]
        await self._end(changed)
        for webhook in wanted.values():
            if webhook.id not in self._running:
                await self._begin(webhook, cursors)

    def _has_ended(self, webhook: str) -> bool:
        running = self._running.get(webhook)
        return running is not None and any(task.done() for task in running.tasks)

    def _gave_up(self, cursor: WebhookCursor | None) -> bool:
        return cursor is not None and cursor.failures >= self.retries.tries

    async def _begin(self, webhook: Webhook, cursors: Mapping[str, WebhookCursor]) -> None:
        history, waiting = cursors_of(webhook.id)
        courses: list[Course] = [TellHistory(self, webhook, await self._cursor(history, cursors))]
        if webhook.waiting_longer_than_s:
            courses.append(TellWaiting(self, webhook, await self._cursor(waiting, cursors)))
        tasks = tuple(asyncio.create_task(course.run()) for course in courses)
        self._running[webhook.id] = _Running(webhook=webhook, courses=tuple(courses), tasks=tasks)

    async def _cursor(self, name: str, known: Mapping[str, WebhookCursor]) -> WebhookCursor:
        """How far it has come; one that is not known, as after restoring rules alone, begins now."""
        if name in known:
            return known[name]
        return WebhookCursor(name=name, seq=await asyncio.to_thread(self.reader.history.last_seq))

    async def _end(self, names: list[str]) -> None:
        for name in dict.fromkeys(names):
            running = self._running.pop(name)
            for task in running.tasks:
                task.cancel()
            await asyncio.gather(*running.tasks, return_exceptions=True)
            for course in running.courses:
                with suppress(AppError, StoreError, TimeoutError):
                    async with asyncio.timeout(1):
                        await course.keep()

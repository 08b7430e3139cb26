"""One receiver's course: what it is told next, again and again until it takes it, and how far it has come."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from fairpool.app.errors import AppError, CannotOpen
from fairpool.app.ports import Clock, Reader, Sealer
from fairpool.app.records import HistoryEntry, HistoryQuery, Kind, RequestRecord, WebhookCursor
from fairpool.app.scheduler_loop import SchedulerLoop
from fairpool.app.store_errors import StoreError
from fairpool.app.transaction import SCHEDULER
from fairpool.app.use_cases import webhooks
from fairpool.app.use_cases.webhooks import WAITING, Webhook
from fairpool.core.ids import Instant, RequestId, seconds
from fairpool.core.policies import Profile
from fairpool.core.requests import Status
from fairpool.server.logs import about
from fairpool.server.metrics import Metrics
from fairpool.server.webhooks.messages import Message, concerns, event_of, message_of
from fairpool.server.webhooks.sending import Outcome, Sender

log = logging.getLogger(__name__)

_AT_ONCE: Final = 200
_IDLE_S: Final = 10.0
"""How often to look at the history though nobody said that something has happened."""

_KEPT_AFTER_S: Final = 1.0
"""How much of what was delivered may be delivered again by the next server, in seconds."""

_SKIPPED_KEPT_AFTER_S: Final = 30.0
"""The same where nothing was delivered: looking at a few thousand entries once more costs nobody anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """When to try again: after first_s, then after twice as long each time, at most most_s; each spread by half.

    tries: failures in a row after which it is given up: with these numbers after about four hours.
    """

    first_s: float = 1.0
    most_s: float = 300.0
    tries: int = 50

    def pause_s(self, failures: int) -> float:
        """How long to wait after so many failures."""
        longest: float = min(self.most_s, self.first_s * 2 ** min(failures - 1, 30))
        return longest * (0.5 + random.random())  # noqa: S311 (spreads tries, guards nothing)


class Surroundings(Protocol):
    """What a course works with."""

    workspace: str
    scheduler: SchedulerLoop
    reader: Reader
    clock: Clock
    sealer: Sealer
    metrics: Metrics
    retries: Retries
    sender: Sender


class Course:
    """What the two courses have in common: delivering in order, and keeping how far that has come."""

    def __init__(self, around: Surroundings, webhook: Webhook, cursor: WebhookCursor) -> None:
        self.webhook = webhook
        self.cursor = cursor
        self.news = asyncio.Event()
        self._around = around
        self._kept = cursor
        self._kept_at = around.clock.now()
        self._delivered = False  # since it was kept

    async def run(self) -> None:
        """Tell until cancelled, or until the receiver is given up."""
        while not self._is_given_up():
            try:
                await self._go_on()
            except (StoreError, AppError) as error:
                log.warning("webhook %s waits: %s", self.webhook.name, error)
                await asyncio.sleep(1)

    async def _go_on(self) -> None:
        """Tell what there is to tell, or wait for more."""
        raise NotImplementedError

    def _is_given_up(self) -> bool:
        return self.cursor.failures >= self._around.retries.tries

    async def keep(self) -> None:
        """Write down how far it has come. Raises AppError, StoreError."""
        cursor = self.cursor
        if cursor != self._kept:
            asked = self._around.scheduler.do(SCHEDULER, lambda tx: webhooks.told(tx, [cursor]))
            await asyncio.wrap_future(asked)
        self._kept, self._kept_at, self._delivered = cursor, self._around.clock.now(), False

    async def _keep_if_due(self) -> None:
        after_s = _KEPT_AFTER_S if self._delivered else _SKIPPED_KEPT_AFTER_S
        if self._around.clock.now() - self._kept_at >= seconds(after_s):
            await self.keep()

    async def _entries(self) -> Sequence[HistoryEntry]:
        query = HistoryQuery(kind=Kind.REQUEST)
        read = self._around.reader.history.page
        page = await asyncio.to_thread(read, query, cursor=self.cursor.seq, limit=_AT_ONCE)
        return page.items

    async def _concerning(self, entries: Sequence[HistoryEntry]) -> dict[str, RequestRecord]:
        """The requests of these entries that the webhook wants to hear of."""
        reader, webhook = self._around.reader, self.webhook

        def read() -> dict[str, RequestRecord]:
            records = reader.requests.get([entry.change.object for entry in entries]) if entries else {}
            profiles = reader.declared.all(Kind.PROFILE) if webhook.pool and records else ()
            pools = {one.name: one.spec.pools for one in profiles if isinstance(one.spec, Profile)}
            return {str(found): record for found, record in records.items() if concerns(webhook, record, pools)}

        return await asyncio.to_thread(read)

    async def _deliver(self, message: Message, is_true: Callable[[], bool] | None = None) -> None:
        """Deliver, however many tries it takes; returns too where it was given up, or is true no longer."""
        await self._wait_for_the_next_try()
        while True:
            if is_true is not None and not await asyncio.to_thread(is_true):
                return
            outcome = await self._send(message)
            self._around.metrics.add(
                "fairpool_webhook_deliveries_total",
                self._around.workspace,
                self.webhook.name,
                "delivered" if outcome.delivered else "failed",
            )
            if outcome.delivered:
                self._delivered = True
                return
            await self._note_failure(outcome)
            if self._is_given_up():
                return
            await self._wait_for_the_next_try()

    async def _send(self, message: Message) -> Outcome:
        try:
            secret = self._around.sealer.open(self.webhook.secret)
        except CannotOpen as error:
            return Outcome(delivered=False, detail=error.message)
        return await self._around.sender.send(self.webhook.url, secret, message)

    async def _wait_for_the_next_try(self) -> None:
        if self.cursor.next_try_at is not None:
            await asyncio.sleep(max(0, self.cursor.next_try_at - self._around.clock.now()) / seconds(1))

    async def _note_failure(self, outcome: Outcome) -> None:
        retries, failures = self._around.retries, self.cursor.failures + 1
        if outcome.gone:
            failures = retries.tries
        given_up = failures >= retries.tries
        now = self._around.clock.now()
        self.cursor = replace(
            self.cursor,
            failures=failures,
            next_try_at=None if given_up else Instant(now + seconds(retries.pause_s(failures))),
            last_error=outcome.detail,
        )
        told = about(webhook=self.webhook.name, failures=failures, status=outcome.status)
        if given_up:
            log.warning("a webhook was given up: %s", outcome.detail, extra=told)
        else:
            log.info("a webhook's receiver did not take a message: %s", outcome.detail, extra=told)
        await self.keep()

    def _dealt_with(self, entry: HistoryEntry) -> None:
        self.cursor = WebhookCursor(name=self.cursor.name, seq=entry.seq)

    async def _wait_for_news(self, most_s: float) -> None:
        try:
            async with asyncio.timeout(most_s):
                await self.news.wait()
        except TimeoutError:
            pass
        self.news.clear()


class TellHistory(Course):
    """Tells what becomes of requests, in the order of the history."""

    async def _go_on(self) -> None:
        entries = await self._entries()
        if not entries:
            if self._delivered:
                await self.keep()
            await self._wait_for_news(_IDLE_S)
            return
        wanted = [entry for entry in entries if event_of(entry) in self.webhook.events]
        records = await self._concerning(wanted)
        for entry in entries:
            record = records.get(entry.change.object)
            event = event_of(entry)
            if record is not None and event in self.webhook.events:
                at, workspace = entry.change.at, self._around.workspace
                await self._deliver(message_of(self.webhook, entry, record, event=event, workspace=workspace, at=at))
                if self._is_given_up():
                    return
            self._dealt_with(entry)
            await self._keep_if_due()


class TellWaiting(Course):
    """Tells who has waited for so long, by following the history at that distance."""

    async def _go_on(self) -> None:
        entries = await self._entries()
        if not entries:
            if self._delivered:
                await self.keep()
            await self._wait_for_news(_IDLE_S)
            return
        arrivals = [entry for entry in entries if entry.change.what == Status.QUEUED.value]
        records = await self._concerning(arrivals)
        for entry in entries:
            record = records.get(entry.change.object)
            if record is not None and entry.change.what == Status.QUEUED.value:
                due_at = Instant(entry.change.at + seconds(self.webhook.waiting_longer_than_s))
                left_us = due_at - self._around.clock.now()
                if left_us > 0:
                    if self._delivered:
                        await self.keep()
                    await asyncio.sleep(left_us / seconds(1))
                await self._tell(entry, record, due_at)
                if self._is_given_up():
                    return
            self._dealt_with(entry)
            await self._keep_if_due()

    async def _tell(self, entry: HistoryEntry, record: RequestRecord, due_at: Instant) -> None:
        if await asyncio.to_thread(self._waits, record.id):
            workspace = self._around.workspace
            message = message_of(self.webhook, entry, record, event=WAITING, workspace=workspace, at=due_at)
            await self._deliver(message, lambda: self._waits(record.id))

    def _waits(self, request: RequestId) -> bool:
        found = self._around.reader.requests.get([request]).get(request)
        return found is not None and found.status is Status.QUEUED

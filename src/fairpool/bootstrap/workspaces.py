"""What a workspace needs to run: a store, a scheduler, a teller; put together for each that is declared."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib import metadata
from typing import Final, cast

from fairpool.app import erasing
from fairpool.app.leading import LONE_TTL_S, Leading
from fairpool.app.ports import Clock, Leases, Reader, Sealer
from fairpool.app.records import DEFAULT_WORKSPACE, HistoryEntry, Kind, TokenRecord
from fairpool.app.scheduler import Scheduler
from fairpool.app.scheduler_loop import SchedulerLoop
from fairpool.app.use_cases import stacks, tokens
from fairpool.app.use_cases.workspaces import WorkspaceRecord, WorkspaceState, state_of
from fairpool.bootstrap.settings import Settings
from fairpool.bootstrap.sources import TimeOrderedIds
from fairpool.core.ids import Instant
from fairpool.server.forwarding import Forwarding
from fairpool.server.identities import Identities
from fairpool.server.metrics import Metrics
from fairpool.server.watching import Watch
from fairpool.server.webhooks.telling import Teller
from fairpool.server.workspaces import Workspace, Workspaces
from fairpool.store.sql import SqlStore

_ANSWER_S: Final = 30.0
"""How long a round of ``default`` may take while a workspace is removed; the next look begins again."""


def version() -> str:
    """The version of this installation."""
    return metadata.version("fairpool")


def _nobody() -> None:
    """Who need not hear of anything."""


class Wakes:
    """A scheduler's notifier: wakes the calls that wait for what has changed, and has people looked up anew.

    workspace: whose. news: told that what is declared may have changed.
    """

    def __init__(
        self,
        workspace: str,
        watch: Watch,
        identities: Identities,
        forwarding: Forwarding,
        news: Callable[[], None] = _nobody,
    ) -> None:
        self.teller: Teller | None = None
        self._workspace = workspace
        self._watch = watch
        self._identities = identities
        self._forwarding = forwarding
        self._news = news

    def publish(self, entries: Sequence[HistoryEntry]) -> None:
        """See `ports.Notifier`."""
        self._identities.forget(entries)  # first: who is woken may call again at once
        self._watch.tell([entry.change.object for entry in entries])
        if any(entry.change.kind is Kind.WORKSPACE for entry in entries):
            self._news()
        if self.teller is not None:
            self.teller.news(declared=any(entry.change.kind is Kind.WEBHOOK for entry in entries))

    def elsewhere(self, leader: str) -> None:
        """See `ports.Notifier`."""
        self._forwarding.leader_changed(self._workspace, leader)
        self._watch.tell([])
        self._news()


class Uses:
    """Has it noted when a token was last used: by its workspace's scheduler here, or by the server that has it."""

    def __init__(self, forwarding: Forwarding) -> None:
        self.workspaces: Workspaces | None = None
        self._forwarding = forwarding

    def __call__(self, token: TokenRecord, at: Instant, shown: bytes) -> None:
        """See `Identities`."""
        assert self.workspaces is not None, "nobody calls before there are any"
        workspace = self.workspaces.find(token.workspace)
        if workspace is None:
            return  # it is about to be opened: its next use tells
        if workspace.loop.is_leading:
            workspace.loop.do("system", lambda tx: tokens.used(tx, [(token.id, at)]))
        else:
            self._forwarding.introduce(shown, leader=workspace.loop.leader_address)


@dataclass(kw_only=True)
class Installation:
    """What the workspaces of a process share, and how each is opened. See `workspaces.Opener`.

    store: of the workspace ``default``, which is opened first. news: told when what is declared may have changed.
    """

    settings: Settings
    store: SqlStore
    address: str
    clock: Clock
    sealer: Sealer
    metrics: Metrics
    identities: Identities
    forwarding: Forwarding
    news: Callable[[], None] = _nobody
    default: Workspace | None = None
    _remover: str = field(default_factory=lambda: f"{socket.gethostname()}:remover:{secrets.token_hex(8)}")

    def open_default(self) -> Workspace:
        """The installation's own workspace. Raises StoreError."""
        self.default = self._opened(DEFAULT_WORKSPACE, self.store, lambda: True, self._tell_news)
        return self.default

    def declared(self) -> Mapping[str, WorkspaceRecord]:
        """See `workspaces.Opener`."""
        found = self.store.reader.declared.all(Kind.WORKSPACE)
        return {record.name: cast("WorkspaceRecord", record) for record in found}

    def reader(self, name: str) -> Reader:
        """See `workspaces.Opener`."""
        return self.store.reader_of(name)

    def open(self, record: WorkspaceRecord) -> Workspace:
        """See `workspaces.Opener`."""

        def is_there() -> bool:
            found = self.store.reader.declared.get(Kind.WORKSPACE, record.id)
            return found is not None and state_of(found) is WorkspaceState.OPEN

        return self._opened(record.name, self.store.beside(record.name), is_there, _nobody)

    def finish(self, record: WorkspaceRecord) -> bool:
        """See `workspaces.Opener`."""
        assert self.default is not None, "it was opened first"
        loop = self.default.loop
        store = self.store.beside(record.name)
        try:
            return erasing.finish(
                record,
                store,
                lambda command: loop.do(erasing.ACTOR, command).result(_ANSWER_S),
                self.clock,
                holder=self._remover,
            )
        finally:
            store.close()

    def _tell_news(self) -> None:
        self.news()

    def _opened(self, name: str, store: SqlStore, admits: Callable[[], bool], news: Callable[[], None]) -> Workspace:
        with ExitStack() as stack:
            stack.callback(store.close)
            stack.callback(self.metrics.forget, name)
            watch = Watch()
            wakes = Wakes(name, watch, self.identities, self.forwarding, news)
            scheduler = Scheduler(
                store,
                self.clock,
                TimeOrderedIds(),
                wakes,
                leading=self._leading(name, store.leases, admits),
                meter=self.metrics.meter(name),
            )
            stack.callback(scheduler.resign)
            loop = SchedulerLoop(scheduler, self.clock, opening=[stacks.ensure_defaults])
            loop.start()
            stack.callback(loop.stop)
            teller = wakes.teller = Teller(
                workspace=name,
                loop=loop,
                reader=store.reader,
                clock=self.clock,
                sealer=self.sealer,
                metrics=self.metrics,
                allow_private=self.settings.webhook_allow_private,
                agent=f"fairpool/{version()}",
            )
            teller.start()
            stack.callback(teller.stop)
            held = stack.pop_all()
        return Workspace(name=name, loop=loop, reader=store.reader, watch=watch, teller=teller, close=held.close)

    def _leading(self, name: str, leases: Leases, admits: Callable[[], bool]) -> Leading:
        place = f"{socket.gethostname()}:{self.settings.data_dir}"
        if self.settings.shares_database:
            holder = f"{place}:{secrets.token_hex(8)}"
            return Leading(leases, holder=holder, workspace=name, address=self.address, admits=admits)
        # The folder's lock says that its last holder is dead: by the same name its lease need not lapse first.
        return Leading(leases, holder=place, workspace=name, address=self.address, ttl_s=LONE_TTL_S, admits=admits)

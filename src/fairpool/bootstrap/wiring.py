"""Putting the server together: store, scheduler, application."""

from __future__ import annotations

import logging
import secrets
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.types import ASGIApp

from fairpool.app.leading import LONE_TTL_S, Leading
from fairpool.app.ports import Clock, Store
from fairpool.app.records import DEFAULT_WORKSPACE, HistoryEntry, RequestQuery, RunQuery, RunStatus
from fairpool.app.scheduler import Scheduler
from fairpool.app.scheduler_loop import SchedulerLoop
from fairpool.app.store_errors import StoreError
from fairpool.app.use_cases import stacks, tokens
from fairpool.bootstrap.sealing import WrongKey, sealer_of
from fairpool.bootstrap.settings import VAULT_KEY_ENV, Settings
from fairpool.bootstrap.sources import SystemClock, TimeOrderedIds
from fairpool.core.ids import Instant
from fairpool.core.requests import Status
from fairpool.server.application import create_app
from fairpool.server.forwarding import Forwarding
from fairpool.server.gate import LOOPBACK_HOSTS
from fairpool.server.identities import Identities, Tokens
from fairpool.server.limits import Doorkeeper, Limits
from fairpool.server.metrics import Metrics
from fairpool.server.oidc.settings import OidcSettings
from fairpool.server.services import Services
from fairpool.server.vouching import Vouching
from fairpool.server.watching import Watch
from fairpool.server.webhooks.telling import Teller
from fairpool.server.workspaces import Workspace, Workspaces
from fairpool.store.migrating import HEAD
from fairpool.store.opening import open_store
from fairpool.store.sql import SqlStore

log = logging.getLogger(__name__)

if TYPE_CHECKING:
    from fairpool.server.oidc.flows import SignIns


class CannotWire(Exception):
    """The server cannot be put together. Its message says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """A server that decides already and waits for somebody to bring it calls."""

    app: ASGIApp
    services: Services


class Wakes:
    """The scheduler's notifier: wakes the calls that wait for what has changed, and has people looked up anew."""

    def __init__(self, watch: Watch, identities: Identities, forwarding: Forwarding) -> None:
        self.teller: Teller | None = None
        self._watch = watch
        self._identities = identities
        self._forwarding = forwarding

    def publish(self, entries: Sequence[HistoryEntry]) -> None:
        """See `ports.Notifier`."""
        self._identities.forget(entries)  # first: who is woken may call again at once
        self._watch.tell([entry.change.object for entry in entries])
        if self.teller is not None:
            self.teller.news()

    def elsewhere(self, leader: str) -> None:
        """See `ports.Notifier`."""
        self._forwarding.leader_changed(DEFAULT_WORKSPACE, leader)
        self._watch.tell([])


class Uses:
    """Has it noted when a token was last used: by the scheduler here, or by the server that has it."""

    def __init__(self, forwarding: Forwarding) -> None:
        self.loop: SchedulerLoop | None = None
        self._forwarding = forwarding

    def __call__(self, used: str, at: Instant, shown: bytes) -> None:
        """See `Identities`."""
        loop = self.loop
        assert loop is not None, "nobody calls before there is one"
        if loop.is_leading:
            loop.do("system", lambda tx: tokens.used(tx, [(used, at)]))
        else:
            self._forwarding.introduce(shown, leader=loop.leader_address)


def version() -> str:
    """The version of this installation."""
    return metadata.version("fairpool")


@contextmanager
def build(settings: Settings, token: str, *, address: str, oidc: OidcSettings | None = None) -> Iterator[Runtime]:
    """A running server over the settings' database, taken down at the end of the block. Raises CannotWire.

    address: where the other servers of the database find it. oidc: where people sign in; None for by token only.
    """
    try:
        sealer = sealer_of(settings.vault_keys)
    except WrongKey as error:
        raise CannotWire(f"{VAULT_KEY_ENV}: {error}") from None
    with ExitStack() as stack:
        try:
            store = open_store(settings.database_url)
            stack.callback(store.close)
            watch, clock, metrics = Watch(), SystemClock(), Metrics()
            forwarding = Forwarding(address, Vouching(token))
            uses = Uses(forwarding)
            identities = Identities(Tokens([token]), readers=lambda workspace: store.reader, clock=clock, note_use=uses)
            wakes = Wakes(watch, identities, forwarding)
            scheduler = Scheduler(
                store,
                clock,
                TimeOrderedIds(),
                wakes,
                leading=_leading(settings, store, address),
                meter=metrics.meter(DEFAULT_WORKSPACE),
            )
            loop = uses.loop = SchedulerLoop(scheduler, clock, opening=[stacks.ensure_defaults])
            loop.start()
            stack.callback(loop.stop)
            teller = wakes.teller = Teller(
                workspace=DEFAULT_WORKSPACE,
                loop=loop,
                reader=store.reader,
                clock=clock,
                sealer=sealer,
                metrics=metrics,
                allow_private=settings.webhook_allow_private,
                agent=f"fairpool/{version()}",
            )
            teller.start()
            stack.callback(teller.stop)
        except StoreError as error:
            raise CannotWire(error.message) from None
        services = Services(
            workspaces=Workspaces(Workspace(loop=loop, reader=store.reader, watch=watch, teller=teller)),
            clock=clock,
            identities=identities,
            hosts=_hosts(settings, address, oidc),
            body_limit_bytes=settings.body_limit_bytes,
            sealer=sealer,
            has_work=lambda: has_work(store),
            started_at=clock.now(),
            version=version(),
            database=settings.database_url.partition(":")[0],
            address=address,
            sign_ins=None if oidc is None else _sign_ins(oidc, token),
            max_queued=settings.max_queued,
            checks=checks(store, loop, clock),
            doorkeeper=Doorkeeper(Limits(rate_per_s=settings.rate_per_s, max_waits=settings.max_waits)),
            metrics=metrics,
            forwarding=forwarding,
            token_secret=token.encode(),
        )
        yield Runtime(app=create_app(services), services=services)


def _sign_ins(oidc: OidcSettings, token: str) -> SignIns:
    # Where there is no provider, a server starts in half the time without these.
    from fairpool.server.oidc.flows import SignIns
    from fairpool.server.oidc.provider import Provider

    # All servers have the same of both, and whoever has one of them can sign in as anybody anyway.
    return SignIns(oidc, Provider(oidc), secret=oidc.client_secret or token, now_s=time.time)


def checks(store: SqlStore, loop: SchedulerLoop, clock: Clock) -> Mapping[str, Callable[[], str]]:
    """What must hold for calls to be served. Anybody may ask, so what is said of it names no address or path."""

    def database() -> str:
        try:
            store.reader.history.last_seq()
        except StoreError as error:
            log.warning("not ready: %s", error.message)
            return "the database does not answer; the log says more"
        return ""

    def schema() -> str:
        try:
            found = store.schema()
        except StoreError as error:
            log.warning("not ready: %s", error.message)
            return "the database does not say which schema it has; the log says more"
        # A newer one is fine: while servers are replaced one after the other, the old ones go on.
        return f"the database has schema {found}; this server needs {HEAD}" if found < HEAD else ""

    def scheduler() -> str:
        if loop.is_leading:
            return ""
        try:
            leadership = store.leases.current()
        except StoreError:
            return "the database does not say who decides"
        return "" if leadership is not None and leadership.until > clock.now() else "no server decides at the moment"

    return {"database": database, "schema": schema, "scheduler": scheduler}


def _leading(settings: Settings, store: Store, address: str) -> Leading:
    place = f"{socket.gethostname()}:{settings.data_dir}"
    if settings.shares_database:
        return Leading(store.leases, holder=f"{place}:{secrets.token_hex(8)}", address=address)
    # The folder's lock says that its last holder is dead: by the same name its lease need not lapse first.
    return Leading(store.leases, holder=place, address=address, ttl_s=LONE_TTL_S)


def _hosts(settings: Settings, address: str, oidc: OidcSettings | None) -> frozenset[str]:
    """The names by which the server may be called; empty for any."""
    if settings.allow_remote and not settings.hosts:
        return frozenset()
    urls = [address] if oidc is None else [address, oidc.public_url]
    names = frozenset(name for url in urls if (name := urlsplit(url).hostname))
    return LOOPBACK_HOSTS | settings.hosts | names


def has_work(store: Store) -> bool:
    """Whether anything is queued, allocated or running."""
    live = frozenset(status for status in Status if not status.is_final)
    going = frozenset(status for status in RunStatus if not status.is_final)
    if store.reader.requests.count(RequestQuery(statuses=live)):
        return True
    return bool(store.reader.runs.page(RunQuery(statuses=going), limit=1).items)

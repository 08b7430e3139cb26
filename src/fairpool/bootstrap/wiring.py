"""Putting the server together: store, scheduler, application."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.types import ASGIApp

from fairpool.app.ports import Clock
from fairpool.app.store_errors import StoreError
from fairpool.app.use_cases.workspaces import work_in
from fairpool.bootstrap.sealing import WrongKey, sealer_of
from fairpool.bootstrap.settings import VAULT_KEY_ENV, Settings
from fairpool.bootstrap.sources import SystemClock
from fairpool.bootstrap.workspaces import Installation, Uses, version
from fairpool.server.application import create_app
from fairpool.server.forwarding import Forwarding
from fairpool.server.gate import LOOPBACK_HOSTS
from fairpool.server.identities import Identities, Tokens
from fairpool.server.limits import Doorkeeper, Limits
from fairpool.server.metrics import Metrics
from fairpool.server.oidc.settings import OidcSettings
from fairpool.server.services import Services
from fairpool.server.vouching import Vouching
from fairpool.server.workspaces import Workspaces
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
            clock, metrics, forwarding = SystemClock(), Metrics(), Forwarding(address, Vouching(token))
            uses = Uses(forwarding)
            identities = Identities(Tokens([token]), readers=store.reader_of, clock=clock, note_use=uses)
            installation = Installation(
                settings=settings,
                store=store,
                address=address,
                clock=clock,
                sealer=sealer,
                metrics=metrics,
                identities=identities,
                forwarding=forwarding,
            )
            default = installation.open_default()
        except StoreError as error:
            raise CannotWire(error.message) from None
        stack.callback(default.close)
        workspaces = uses.workspaces = Workspaces(default, installation)
        installation.news = workspaces.news
        workspaces.start()
        stack.callback(workspaces.stop)
        services = Services(
            workspaces=workspaces,
            clock=clock,
            identities=identities,
            hosts=_hosts(settings, address, oidc),
            body_limit_bytes=settings.body_limit_bytes,
            sealer=sealer,
            has_work=lambda: any(work_in(workspace.reader) for workspace in workspaces),
            started_at=clock.now(),
            version=version(),
            database=settings.database_url.partition(":")[0],
            address=address,
            sign_ins=None if oidc is None else _sign_ins(oidc, token),
            max_queued=settings.max_queued,
            checks=checks(store, workspaces, clock),
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


def checks(store: SqlStore, workspaces: Workspaces, clock: Clock) -> Mapping[str, Callable[[], str]]:
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
        now = clock.now()
        unled = [workspace.name for workspace in workspaces if not workspace.loop.is_led(now)]
        if unled:
            log.warning("not ready: no server decides for the workspaces %s", ", ".join(unled))
        return f"no server decides for {len(unled)} of the workspaces at the moment" if unled else ""

    return {"database": database, "schema": schema, "scheduler": scheduler}


def _hosts(settings: Settings, address: str, oidc: OidcSettings | None) -> frozenset[str]:
    """The names by which the server may be called; empty for any."""
    if settings.allow_remote and not settings.hosts:
        return frozenset()
    urls = [address] if oidc is None else [address, oidc.public_url]
    names = frozenset(name for url in urls if (name := urlsplit(url).hostname))
    return LOOPBACK_HOSTS | settings.hosts | names

"""What an installation has for all of its workspaces: put together by the bootstrap."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairpool.app.ports import Clock, Sealer
from fairpool.app.use_cases.vaults import Keyless
from fairpool.core.ids import Instant
from fairpool.server.bridge import Bridge
from fairpool.server.forwarding import Forwarding
from fairpool.server.identities import Identities
from fairpool.server.limits import Doorkeeper, Limits
from fairpool.server.metrics import Metrics
from fairpool.server.workspaces import Workspaces

if TYPE_CHECKING:
    from fairpool.server.oidc.flows import SignIns


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What the handlers work with, besides the workspace of their call.

    hosts: names by which the server may be called; empty for any.
    sealer: keeps the vaults' secrets. database: what kind of database it is, for people.
    max_queued: requests that one caller may have waiting; 0 for any number.
    has_work: whether anything is queued, allocated or running.
    sign_ins: sign-ins at the provider, None where none is set up.
    checks: what must hold for calls to be served; each says what is wrong, or "" (from any thread, may take long).
    forwarding: passes on what another server decides. address: where other servers find this one.
    token_secret: what all servers of the installation share; from it tokens are drawn whose creation may be repeated.
    large_bodies: held while one is parsed. recalling: held while a past moment is made anew.
    """

    workspaces: Workspaces
    clock: Clock
    identities: Identities
    hosts: frozenset[str]
    body_limit_bytes: int
    has_work: Callable[[], bool]
    started_at: Instant
    version: str
    database: str
    max_queued: int = 0
    sign_ins: SignIns | None = None
    checks: Mapping[str, Callable[[], str]] = field(default_factory=dict)
    sealer: Sealer = field(default_factory=Keyless)
    doorkeeper: Doorkeeper = field(default_factory=lambda: Doorkeeper(Limits()))
    address: str = ""
    forwarding: Forwarding = field(default_factory=Forwarding)
    metrics: Metrics = field(default_factory=Metrics)
    bridge: Bridge = field(default_factory=Bridge)
    token_secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    large_bodies: asyncio.Lock = field(default_factory=asyncio.Lock)
    recalling: asyncio.Lock = field(default_factory=asyncio.Lock)

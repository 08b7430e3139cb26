"""What one caller may ask of the server: calls a second, and calls that wait at the same time.

The installation's own token is not limited: whoever has it can read the server's files. All state is in memory and
belongs to one process; with several servers each counts for itself.
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from starlette.types import Scope

from fairpool.app.authz import Principal
from fairpool.server.problems import Refused
from fairpool.wire.problems import Slug

BURST_S: Final = 2.0
"""A caller may spend the calls of so many seconds at once; then they come back at the rate."""

HELD_BACK_S: Final = 0.5
"""A refusal for being too fast is answered only after so long at least. Whoever calls without a pause then makes two
calls a second on each connection, not thousands."""

REFUSALS_PER_S: Final = 50
"""Refusals of one caller that are answered in a second, one after the other: the more of them wait, the longer each
does. However many connections a caller has, refusing costs hardly anything, and never much at once."""

_MOST_HELD_BACK_S: Final = 15.0

MAX_HELD_BACK: Final = 1000
"""Refusals of one caller that are held back at a time; more are told at once."""

_REMEMBERED: Final = 10_000
"""Callers whose spending is remembered; beyond that, those who have spent nothing lately are forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The bounds. rate_per_s: calls a second of one token (and of an address without one); 0 for any number.
    max_waits: long polls and event streams of one token at a time; 0 for any number."""

    rate_per_s: float = 0
    max_waits: int = 0


class Rates:
    """Calls a second, caller by caller."""

    def __init__(self, per_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_s = per_s
        self._clock = clock
        # When all that a caller has spent will have come back.
        self._settled_at: dict[str, float] = {}

    def wait_s(self, caller: str) -> float:
        """0 where the caller may make a call now, which then counts; else how long until it may."""
        if not self._per_s:
            return 0.0
        now = self._clock()
        settled_at = max(now, self._settled_at.get(caller, 0.0)) + 1 / self._per_s
        early_s = settled_at - now - max(BURST_S, 1 / self._per_s)
        if early_s > 1e-9:
            return early_s
        if len(self._settled_at) >= _REMEMBERED:
            self._settled_at = {who: at for who, at in self._settled_at.items() if at > now}
        self._settled_at[caller] = settled_at
        return 0.0


class Doorkeeper:
    """Keeps callers to the limits. On the loop's thread."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._rates = Rates(limits.rate_per_s, clock)
        self._held_back: dict[str, int] = {}
        self._waits: dict[str, int] = {}

    async def let_in(self, scope: Scope, principal: Principal | None) -> None:
        """Count a call. principal: None for one that nobody vouches for, which counts for its address.

        Raises Refused, after a while, for one call too many.
        """
        if principal is not None and not principal.token:
            return
        caller = principal.token if principal is not None else _address(scope)
        wait_s = self._rates.wait_s(caller)
        if not wait_s:
            return
        await self._hold_back(caller)
        seconds = max(1, int(wait_s + 1))
        raise Refused(
            Slug.TOO_MANY,
            f"more than {self._limits.rate_per_s:g} calls a second; nothing was done",
            guidance="wait for what you wait for (wait_s, GET /events) instead of asking again and again; "
            "send many requests in one call (requests:bulk)",
            numbers={"rate_per_s": self._limits.rate_per_s, "retry_after_s": seconds},
            # What the caller has sent after this call is not read then.
            headers={"Retry-After": str(seconds), "Connection": "close"},
        )

    async def _hold_back(self, caller: str) -> None:
        """Take time for a refusal, unless too many of this caller's take theirs."""
        held = self._held_back.get(caller, 0)
        if held >= MAX_HELD_BACK:
            return
        self._held_back[caller] = held + 1
        try:
            await asyncio.sleep(min(HELD_BACK_S + held / REFUSALS_PER_S, _MOST_HELD_BACK_S))
        finally:
            self._leave(self._held_back, caller)

    def begin_wait(self, principal: Principal) -> Callable[[], None]:
        """A call begins to wait; what to call when it no longer does. Raises Refused for one too many."""
        token, most = principal.token, self._limits.max_waits
        if not token or not most:
            return _nothing
        waiting = self._waits.get(token, 0)
        if waiting >= most:
            raise Refused(
                Slug.TOO_MANY,
                f"{waiting} calls with this token wait already; at most {most} may",
                guidance="follow many requests with one stream (GET /events) instead of one call for each",
                numbers={"waiting": waiting, "limit": most},
                headers={"Retry-After": "1"},
            )
        self._waits[token] = waiting + 1
        left = False

        def leave() -> None:
            nonlocal left
            if not left:
                left = True
                self._leave(self._waits, token)

        return leave

    @staticmethod
    def _leave(counts: dict[str, int], who: str) -> None:
        if counts[who] == 1:
            del counts[who]
        else:
            counts[who] -= 1


def _nothing() -> None:
    """Nothing has to be given back."""


def _address(scope: Scope) -> str:
    """Whose address it is: of IPv6 the network, since one machine has any number of addresses in it."""
    client = scope.get("client")
    if client is None:
        return "nowhere"
    try:
        address = ipaddress.ip_address(client[0])
    except ValueError:
        return str(client[0])
    if address.version == 4 or address.is_loopback:
        return str(address)
    return str(ipaddress.ip_network((int(address) >> 64 << 64, 64)))

"""Who leads: this process, by a lease that it keeps alive, or another, which says where it takes calls.

A leader renews its lease when a third of it is over, also while a round takes long (`Heartbeat`). Who follows looks at
the lease several times a second, and takes it as soon as it has lapsed or was given back. The clocks of two servers may
differ: that can make leadership change hands too early, but what two leaders write is kept apart by the token.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from fairpool.app.ports import Clock, Leases
from fairpool.app.records import Leadership
from fairpool.app.store_errors import StaleLeader, StoreError, StoreFull, StoreReadOnly, StoreUnavailable
from fairpool.core.ids import Instant, seconds

log = logging.getLogger(__name__)

LEADER_TTL_S: Final = 3.0
"""How long a leader that has died keeps the others from deciding."""

LONE_TTL_S: Final = 15.0
"""The same where no other can take over, and each renewal costs a disk a write."""

FOLLOW_EVERY_S: Final = 0.2
"""How often one that follows looks who leads and what was committed."""

_TRY_AGAIN_S: Final = 1.0


class Leading:
    """Leads or follows. For the scheduler's thread, but for `beat` and what is only read.

    workspace: which one, for the log. admits: whether it is there at all. Asked with the lease in hand: whoever removes
    a workspace takes the lease too, so it cannot go unnoticed between the answer and the first commit.
    """

    def __init__(
        self,
        leases: Leases,
        *,
        holder: str,
        workspace: str = "default",
        address: str = "",
        ttl_s: float = LEADER_TTL_S,
        admits: Callable[[], bool] = lambda: True,
    ) -> None:
        self._leases = leases
        self._holder = holder
        self._workspace = workspace
        self._address = address
        self._ttl_s = ttl_s
        self._admits = admits
        self._renewing = threading.Lock()
        self._until = Instant(0)
        self.token: int | None = None
        self.renew_at = Instant(0)
        self.leader: Leadership | None = None
        """Who leads, as was last seen: this process or another. None while nobody does."""

    def keep(self, now: Instant) -> bool:
        """Become or stay the leader; whether it is. Raises StoreError."""
        if self.token is None:
            return self._take(now)
        if now < self.renew_at:
            return True
        try:
            self._renew(self.token, now)
        except StaleLeader as error:
            log.warning("leads no more in the workspace %s: %s", self._workspace, error)
            self.step_down()
            return False
        except StoreUnavailable as error:
            # A full disk is no reason not to answer what is asked; whether the token is still good, the next commit
            # says. A store that cannot even be read might have another leader once the lease is over.
            if now >= self._until and not isinstance(error, StoreFull | StoreReadOnly):
                raise
            log.debug("the lease of the workspace %s could not be renewed: %s", self._workspace, error)
            self.renew_at = Instant(now + seconds(_TRY_AGAIN_S))
        return True

    def _take(self, now: Instant) -> bool:
        seen = self._leases.current()
        if seen is None or seen.until <= now or seen.holder == self._holder:
            seen = self._leases.acquire(self._holder, now, self._ttl_s, self._address)
        self.leader = seen if seen.until > now else None
        if seen.holder != self._holder:
            return False
        if not self._admits():
            self.leader = None
            self._leases.release(seen.token)
            return False
        self._held(seen, now)
        self.token = seen.token
        log.info("leads in the workspace %s, by token %d", self._workspace, seen.token)
        return True

    def _renew(self, token: int, now: Instant) -> None:
        self._held(self._leases.renew(token, now, self._ttl_s), now)

    def _held(self, seat: Leadership, now: Instant) -> None:
        self._until = seat.until
        self.renew_at = Instant(now + seconds(self._ttl_s / 3))

    def beat(self, now: Instant) -> None:
        """Renew the lease where the scheduler's thread is late to. From any thread; what the store refuses, the
        scheduler's thread will hear when it renews."""
        with self._renewing, suppress(StoreError):
            if self.token is not None and now >= self.renew_at + seconds(self._ttl_s / 6):
                self._renew(self.token, now)

    def step_down(self) -> None:
        """Another leads now, or will."""
        self.token = self.leader = None

    def resign(self) -> None:
        """Give the lease back, so that another can take it at once."""
        with self._renewing:  # or a heartbeat could still renew what was given back
            token = self.token
            self.step_down()
            if token is not None:
                with suppress(StoreError):
                    self._leases.release(token)


class Heartbeat:
    """The thread that keeps a lease alive while a round takes long."""

    def __init__(self, leading: Leading, clock: Clock) -> None:
        self._leading = leading
        self._clock = clock
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fairpool-heartbeat", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(LEADER_TTL_S / 6):
            try:
                self._leading.beat(self._clock.now())
            except Exception:
                log.exception("the lease could not be renewed")

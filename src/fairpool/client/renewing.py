"""Leases kept alive: one thread per process renews all of them, and tells owners what they must know (S35)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

from fairpool.client.api import Client
from fairpool.client.errors import ClientError
from fairpool.wire.requests import LeaseView

RENEW_EVERY_S = 15.0
AFTER_FAILURE_S = 2.0

Told = Callable[[LeaseView | None], None]
"""Called from the renewing thread with the lease after each renewal; None when the server does not know the request."""


class LeaseRenewer:
    """Renews the leases of this process in bulk. The thread starts with the first lease and ends with `close`."""

    def __init__(self, client: Client, *, every_s: float = RENEW_EVERY_S) -> None:
        self._client = client
        self._every_s = every_s
        self._leases: dict[str, Told] = {}
        self._condition = threading.Condition()
        self._closing = False
        self._thread: threading.Thread | None = None

    def add(self, request: str, told: Told) -> None:
        """Keep the lease of a request alive."""
        with self._condition:
            self._leases[request] = told
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="fairpool-leases", daemon=True)
                self._thread.start()

    def remove(self, request: str) -> None:
        """Stop renewing; unknown requests are none of its business."""
        with self._condition:
            self._leases.pop(request, None)

    def close(self) -> None:
        """End the thread."""
        with self._condition:
            self._closing = True
            self._condition.notify()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        wait_s = self._every_s
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._closing, wait_s)
                if self._closing:
                    return
                leases = dict(self._leases)
            wait_s = self._every_s if self._renew(leases) else min(AFTER_FAILURE_S, self._every_s)

    def _renew(self, leases: dict[str, Told]) -> bool:
        """Whether the server answered. A server that is away is asked again soon: it gives everybody a full lease."""
        if not leases:
            return True
        try:
            result = self._client.renew_many(list(leases))
        except ClientError:
            return False
        for lease in result.items:
            if lease.request in leases:
                with suppress(Exception):  # one owner's trouble must not cost the others their leases
                    leases[lease.request](lease)
        for request in result.missing:
            with suppress(Exception):
                leases[request](None)
        return True

"""The line that each call leaves in the log: failures at level info, all others at level debug."""

from __future__ import annotations

import logging
import random
import re
import time
from typing import Final

from starlette.types import Scope

from fairpool.app.authz import Principal
from fairpool.server.logs import about

log = logging.getLogger(__name__)

HEADER: Final = b"x-request-id"
"""Names a call: what a caller sends in it, the server logs and sends back."""

_WELL_FORMED: Final = re.compile(rb"[A-Za-z0-9._-]{1,64}")

# No secret, and the system's own source of randomness would give up the interpreter to other threads at each call.
_draw: Final = random.Random().getrandbits  # noqa: S311 (names a call, guards nothing)

LINES_PER_S: Final = 50
"""Failures that are logged each second; of more only their number, so that nobody can fill the disk by failing."""


def request_id(scope: Scope) -> str:
    """The id of a call: the caller's own if it is well-formed, else a new one."""
    for name, value in scope["headers"]:
        if name == HEADER and _WELL_FORMED.fullmatch(value):
            return str(value, "ascii")
    return f"{_draw(64):016x}"


class AccessLog:
    """Writes the lines. On the loop's thread."""

    def __init__(self) -> None:
        self._second = 0
        self._lines = 0

    def note(self, scope: Scope, status: int, seconds: float) -> None:
        """A call has been answered; status 0 for one that was broken off."""
        level = logging.INFO if status >= 400 or not status else logging.DEBUG
        if not log.isEnabledFor(level) or (level > logging.DEBUG and not self._may()):
            return
        client = scope.get("client")
        principal: Principal | None = scope.get("fairpool.principal")
        fields = about(
            method=scope["method"] if scope["method"].isalpha() else "other",
            route=scope.get("fairpool.route", "none"),
            status=status,
            ms=round(seconds * 1000, 1),
            problem=scope.get("fairpool.problem"),
            actor=principal.actor if principal is not None else None,
            workspace=principal.workspace if principal is not None else None,
            client=client[0] if client else None,
        )
        log.log(level, "call", extra=fields)

    def _may(self) -> bool:
        second = int(time.monotonic())
        if second != self._second:
            left_out = self._lines - LINES_PER_S
            self._second, self._lines = second, 0
            if left_out > 0:
                log.warning("%d more calls failed within a second than are logged", left_out)
        self._lines += 1
        return self._lines <= LINES_PER_S

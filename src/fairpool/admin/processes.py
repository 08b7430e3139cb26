"""Starting, stopping and looking at the local server from outside."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

from fairpool.wire import local_server
from fairpool.wire.local_server import NotStarted, ServerFile

__all__ = ["NotStarted", "NotStopped", "start", "status", "stop"]


class NotStopped(RuntimeError):
    """The local server did not end in time; the message says what can be done."""


def start(directory: Path, *arguments: str) -> ServerFile:
    """Start the folder's server in the background, or find the one that runs. Raises NotStarted."""
    return local_server.find(directory) or local_server.start(directory, *arguments)


def status(directory: Path) -> ServerFile | None:
    """The folder's server, or None where none runs."""
    return local_server.find(directory)


def stop(directory: Path, *, timeout_s: float = 30) -> ServerFile | None:
    """Ask the folder's server to stop and wait until it has; None where none was running. Raises NotStopped.

    Calls under way are finished, what waits or runs stays in the database, owners keep their leases (S35).
    """
    found = local_server.find(directory)
    if found is None:
        return None
    with contextlib.suppress(ProcessLookupError):
        os.kill(found.pid, signal.SIGTERM)
    give_up_at = time.monotonic() + timeout_s
    while local_server.is_alive(directory):
        if time.monotonic() > give_up_at:
            raise NotStopped(
                f"server {found.pid} was asked to stop and still runs after {timeout_s:g} s; kill -9 {found.pid} loses "
                "nothing that it has acknowledged"
            )
        time.sleep(0.02)
    return found

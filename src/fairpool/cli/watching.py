"""``--watch``: show something again whenever it has changed, told by the server's event stream."""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, TypeVar

import click

if TYPE_CHECKING:
    from fairpool.client.api import Client

Function = TypeVar("Function", bound=Callable[..., object])

GATHER_S: Final = 0.2
"""What happens within this time is shown together: nobody reads faster."""

RECONNECT_S: Final = 1.0


def watch_option(function: Function) -> Function:
    """``--watch``."""
    return click.option("--watch", is_flag=True, help="Show it again whenever it changes, until Ctrl-C.")(function)


def show(client: Client, once: Callable[[], None], *, watch: bool) -> None:
    """Call `once`, and with `watch` after each change again. On a terminal each picture takes the last one's place."""
    if not watch:
        once()
        return
    changes = changes_of(client)
    next(changes)  # what happens from here on is not missed
    while True:
        if sys.stdout.isatty():
            click.clear()
        once()
        sys.stdout.flush()
        next(changes)
        if not sys.stdout.isatty():
            click.echo()


def changes_of(client: Client) -> Iterator[None]:
    """Once at the start, then once after each burst of changes; goes on when the server comes back."""
    heard: queue.SimpleQueue[None] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(client, heard), name="fairpool-events", daemon=True).start()
    while True:
        heard.get()
        time.sleep(GATHER_S)
        while not heard.empty():
            heard.get()
        yield


def _listen(client: Client, heard: queue.SimpleQueue[None]) -> None:
    from fairpool.client.errors import ClientError

    while True:
        try:
            # Its first line, a comment, says that the stream has begun; after a gap everything may have changed.
            for number, line in enumerate(client.transport.lines("events")):
                if number == 0 or line.startswith("data: "):
                    heard.put(None)
        except ClientError:
            pass
        time.sleep(RECONNECT_S)

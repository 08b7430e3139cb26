"""Following what happens: the event stream, taken up again after the last event whenever the connection breaks."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator

from fairpool.client.errors import Problem, Unreachable
from fairpool.client.transport import Query, Transport
from fairpool.wire.events import Event

TRY_AGAIN = frozenset({429, 502, 503, 504})
"""Refusals that pass by themselves."""

LONGEST_PAUSE_S = 5.0


def follow(
    transport: Transport,
    *,
    after: int | None = None,
    query: Query | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> Iterator[Event]:
    """Each event after `after` (None: after now) once and in order, for ever. Raises Problem where the server refuses.

    pause: waits so many seconds before the next try.
    """
    last = after
    failures = 0
    while True:
        try:
            for event in _stream(transport, last, query):
                failures = 0
                if isinstance(event, int):
                    last = event
                else:
                    last = event.id
                    yield event
        except Unreachable:
            failures += 1
        except Problem as error:
            if error.status not in TRY_AGAIN:
                raise
            failures += 1
        # A server that stops ends its streams in good order: the next one is asked soon.
        pause(min(LONGEST_PAUSE_S, 0.1 * 2**failures) * (0.5 + random.random()))  # noqa: S311 (spreads retries)


def _stream(transport: Transport, after: int | None, query: Query | None) -> Iterator[Event | int]:
    """One connection's events; before them the id after which it goes on. What was cut off half way is not told."""
    begins: int | None = None
    for line in transport.lines("events", query={**(query or {}), "after": after}):
        if line.startswith("data: "):
            begins = None
            yield Event.model_validate_json(line.removeprefix("data: "))
        elif line.startswith("id: ") and after is None:
            begins = int(line.removeprefix("id: "))
        elif not line and begins is not None:
            yield begins
            begins = None

"""What happened, as a stream and as history, over HTTP."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from fairpool.wire.model import Object, View


class HistoryEntry(View):
    """One change of one object: when, by whom, why.

    id: counts all changes of the workspace, so that a reader can go on after the last one it saw.
    kind: of what (``request``, ``pool``, ``policy``, …). what: what happened (``allocated``, ``capacity changed``).
    source: from where it was done. run: the run that it concerns. before, after: what changed, as the API shows it.
    """

    id: int
    at: datetime
    kind: str
    object: str
    name: str = ""
    what: str
    actor: str = ""
    source: str = ""
    cause: str = ""
    run: str = ""
    before: Object = Field(default_factory=dict)
    after: Object = Field(default_factory=dict)


class Event(HistoryEntry):
    """A history entry as ``GET /events`` streams it: the server-sent event's id is `id`, its name is `kind`."""

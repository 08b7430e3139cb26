"""Everything that a scheduler needs to go on, read in one transaction."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

from sqlalchemy import Connection, func, select, text

from fairpool.app.ports import Stored
from fairpool.app.records import DECLARED
from fairpool.store import request_rows, schema
from fairpool.store.reading_declared import read_all
from fairpool.store.snapshots import stored


def load(connection: Connection, workspace: str) -> Stored:
    """What the workspace holds."""
    declared = tuple(one for kind in DECLARED for one in read_all(connection, workspace, kind))
    requests = schema.requests
    chosen = select(requests).where(requests.c.workspace == workspace, text(schema.LIVE)).order_by(requests.c.seq)
    with _no_collection():
        rows = connection.execute(chosen)
        live = {record.id: record for record in map(request_rows.record_of, rows)}
    sequences = select(schema.workspaces.c.grant_sequence).where(schema.workspaces.c.name == workspace)
    return stored(
        declared,
        live,
        sequence=connection.execute(sequences).scalar() or 0,
        history_seq=connection.execute(select(func.max(schema.history.c.seq))).scalar() or 0,
    )


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Nothing that is read here is garbage: looking for some, over and over, would take a quarter of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()

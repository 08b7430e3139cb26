"""Removing all of a workspace, some rows at a time, so that nobody else waits long for a turn to write.

What stays is the row that says who led it last: tokens of a later workspace of the same name go on growing from there
(S34).
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, Table, delete, select, tuple_

from fairpool.store import schema

ROWS_AT_ONCE: Final = 10_000
"""Rows of one transaction: enough that a million take a minute, few enough that a commit of others waits a moment."""

_CHILDREN_FIRST: Final = tuple(
    table for table in reversed(schema.metadata.sorted_tables) if table is not schema.leaders
)


def erase(connection: Connection, workspace: str, most: int) -> bool:
    """Remove at most so many rows of a workspace; whether there may be more of them."""
    left = most
    for table in _CHILDREN_FIRST:
        left -= _erase_from(connection, table, workspace, left)
        if left <= 0:
            return True
    return False


def _erase_from(connection: Connection, table: Table, workspace: str, most: int) -> int:
    owner = table.c.name if table is schema.workspaces else table.c.workspace
    key = tuple(table.primary_key.columns)
    found = select(*key).where(owner == workspace).limit(most)
    chosen = key[0].in_(found) if len(key) == 1 else tuple_(*key).in_(found)
    return connection.execute(delete(table).where(chosen)).rowcount

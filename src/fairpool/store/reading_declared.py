"""Declared objects, read."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, select

from fairpool.app.records import AnyDeclared, Kind
from fairpool.store import declared_rows, schema
from fairpool.store.connections import Reading
from fairpool.store.matching import MOST_MATCHES, begins_with
from fairpool.store.unreadable import readable


class SqlDeclaredReader:
    """See `ports.DeclaredReader`."""

    def __init__(self, reading: Reading, workspace: str) -> None:
        self._reading = reading
        self._workspace = workspace

    def get(self, kind: Kind, object_id: str) -> AnyDeclared | None:
        """See `ports.DeclaredReader`."""
        with self._reading() as connection:
            column = declared_rows.TABLES[kind].c.id
            return next(iter(read_all(connection, self._workspace, kind, column == object_id)), None)

    def all(self, kind: Kind) -> tuple[AnyDeclared, ...]:
        """See `ports.DeclaredReader`."""
        with self._reading() as connection:
            return read_all(connection, self._workspace, kind)

    def match(self, kind: Kind, ref: str) -> tuple[AnyDeclared, ...]:
        """See `ports.DeclaredReader`."""
        columns = declared_rows.TABLES[kind].c
        with self._reading() as connection:
            for condition in (columns.id == ref, columns.name == ref, begins_with(columns.id, ref)):
                found = read_all(connection, self._workspace, kind, condition)
                if found:
                    return tuple(sorted(found, key=lambda one: one.id)[:MOST_MATCHES])
        return ()


@readable
def read_all(
    connection: Connection, workspace: str, kind: Kind, condition: ColumnElement[bool] | None = None
) -> tuple[AnyDeclared, ...]:
    """The objects of a kind, by name (policies of one name: by id)."""
    table = declared_rows.TABLES[kind]
    query = select(table).where(table.c.workspace == workspace).order_by(table.c.name, table.c.id)
    if table is schema.documents:
        query = query.where(table.c.kind == kind.value)
    if condition is not None:
        query = query.where(condition)
    rows = connection.execute(query).all()
    ids = None if condition is None else [row.id for row in rows]
    if kind is Kind.POOL:
        nodes, amounts = schema.pool_nodes, schema.pool_amounts
        of_nodes = select(nodes).where(nodes.c.workspace == workspace).order_by(nodes.c.pool_id, nodes.c.position)
        of_amounts = select(amounts).where(amounts.c.workspace == workspace)
        if ids is not None:
            of_nodes, of_amounts = (
                of_nodes.where(nodes.c.pool_id.in_(ids)),
                of_amounts.where(amounts.c.pool_id.in_(ids)),
            )
        return tuple(declared_rows.pools_of(rows, connection.execute(of_nodes), connection.execute(of_amounts)))
    if kind is Kind.POLICY:
        amounts, pools = schema.policy_amounts, schema.policy_pools
        of_amounts = select(amounts).where(amounts.c.workspace == workspace)
        of_pools = select(pools).where(pools.c.workspace == workspace).order_by(pools.c.policy_id, pools.c.position)
        if ids is not None:
            of_amounts, of_pools = (
                of_amounts.where(amounts.c.policy_id.in_(ids)),
                of_pools.where(pools.c.policy_id.in_(ids)),
            )
        return tuple(declared_rows.policies_of(rows, connection.execute(of_amounts), connection.execute(of_pools)))
    if kind is Kind.PROFILE:
        return tuple(map(declared_rows.profile_of, rows))
    return tuple(map(declared_rows.document_of, rows))

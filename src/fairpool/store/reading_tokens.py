"""Tokens, and how far webhooks have come, read."""

from __future__ import annotations

from sqlalchemy import select

from fairpool.app.records import TokenRecord, WebhookCursor
from fairpool.store import report_rows, schema
from fairpool.store.connections import Reading

_T = schema.tokens.c


class SqlTokenReader:
    """See `ports.TokenReader`."""

    def __init__(self, reading: Reading, workspace: str) -> None:
        self._reading = reading
        self._workspace = workspace

    def get(self, token_id: str) -> TokenRecord | None:
        """See `ports.TokenReader`."""
        with self._reading() as connection:
            row = connection.execute(select(schema.tokens).where(_T.id == token_id)).one_or_none()
        return None if row is None else report_rows.token_of(row)

    def all(self, owner: str = "") -> tuple[TokenRecord, ...]:
        """See `ports.TokenReader`."""
        chosen = select(schema.tokens).where(_T.workspace == self._workspace).order_by(_T.created_at, _T.id)
        if owner:
            chosen = chosen.where(_T.owner == owner)
        with self._reading() as connection:
            return tuple(map(report_rows.token_of, connection.execute(chosen)))


class SqlCursorReader:
    """See `ports.CursorReader`."""

    def __init__(self, reading: Reading, workspace: str) -> None:
        self._reading = reading
        self._workspace = workspace

    def all(self) -> dict[str, WebhookCursor]:
        """See `ports.CursorReader`."""
        table = schema.webhook_cursors
        chosen = select(table).where(table.c.workspace == self._workspace).order_by(table.c.webhook_id)
        with self._reading() as connection:
            return {row.webhook_id: report_rows.cursor_of(row) for row in connection.execute(chosen)}

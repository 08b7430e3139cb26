"""The six readers of an SQL store, each call on a connection and a moment of its own."""

from __future__ import annotations

from fairpool.store.connections import Reading
from fairpool.store.reading_declared import SqlDeclaredReader
from fairpool.store.reading_reports import SqlHistoryReader, SqlRunReader
from fairpool.store.reading_requests import SqlRequestReader
from fairpool.store.reading_tokens import SqlCursorReader, SqlTokenReader


class SqlReader:
    """See `ports.Reader`."""

    def __init__(self, reading: Reading, workspace: str) -> None:
        self._declared = SqlDeclaredReader(reading, workspace)
        self._requests = SqlRequestReader(reading, workspace)
        self._runs = SqlRunReader(reading, workspace)
        self._history = SqlHistoryReader(reading, workspace)
        self._tokens = SqlTokenReader(reading, workspace)
        self._cursors = SqlCursorReader(reading, workspace)

    @property
    def declared(self) -> SqlDeclaredReader:
        """See `ports.Reader`."""
        return self._declared

    @property
    def requests(self) -> SqlRequestReader:
        """See `ports.Reader`."""
        return self._requests

    @property
    def runs(self) -> SqlRunReader:
        """See `ports.Reader`."""
        return self._runs

    @property
    def history(self) -> SqlHistoryReader:
        """See `ports.Reader`."""
        return self._history

    @property
    def tokens(self) -> SqlTokenReader:
        """See `ports.Reader`."""
        return self._tokens

    @property
    def cursors(self) -> SqlCursorReader:
        """See `ports.Reader`."""
        return self._cursors

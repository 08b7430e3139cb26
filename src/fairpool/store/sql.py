"""The store on an SQL database: one who writes, many who read, nothing in between."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from sqlalchemy import Connection, Engine

from fairpool.app.ports import Stored
from fairpool.app.records import DEFAULT_WORKSPACE, Batch
from fairpool.store import erasing, migrating
from fairpool.store.connections import Reading
from fairpool.store.databases import Database, settled
from fairpool.store.leases import SqlLeases, check_token, leader_name
from fairpool.store.loading import load
from fairpool.store.reading import SqlReader
from fairpool.store.writing import Writer


class SqlStore:
    """See `ports.Store`. Opened by `opening.open_store`, which looks at the database first."""

    def __init__(
        self,
        database: Database,
        writer: Engine,
        readers: Engine,
        workspace: str = DEFAULT_WORKSPACE,
        *,
        owns_readers: bool = True,
    ) -> None:
        self._database = database
        self._writer = writer
        self._readers = readers
        self._owns_readers = owns_readers
        self._workspace = workspace
        self._rows = Writer(workspace, database)
        self._reading = Reading(readers, database)
        self._leases = SqlLeases(self._writing, self._reading, database, workspace)
        self._reader = SqlReader(self._reading, workspace)

    @property
    def leases(self) -> SqlLeases:
        """Who may write."""
        return self._leases

    @property
    def reader(self) -> SqlReader:
        """What is there to read."""
        return self._reader

    def commit(self, batch: Batch, token: int) -> int:
        """See `ports.Store`."""
        with (
            self._database.translated(),
            self._writer.connect() as connection,
            connection.begin() as transaction,
            self._database.together(connection) as settle,
        ):
            last = self._rows.write(connection, batch, token, settle)
            transaction.commit()
        self._rows.committed()
        self._database.acknowledge(last)
        return last

    def erase(self, token: int) -> bool:
        """See `ports.Store`."""
        with self._writing() as connection:
            turn = self._database.take_turn(connection, leader_name(self._workspace), settled)
            check_token(token, turn.token)
            more = erasing.erase(connection, self._workspace, erasing.ROWS_AT_ONCE)
        self._database.acknowledge(self._reader.history.last_seq())  # what went is not missed
        return more

    def beside(self, workspace: str) -> SqlStore:
        """The store of another workspace of the same database. It has its own connections to write, and reads over
        those of this one, which must be closed after it."""
        return SqlStore(self._database, self._database.writer(), self._readers, workspace, owns_readers=False)

    def reader_of(self, workspace: str) -> SqlReader:
        """What is there to read in another workspace."""
        return SqlReader(self._reading, workspace)

    def load(self) -> Stored:
        """See `ports.Store`."""
        with self._reading() as connection:
            return load(connection, self._workspace)

    def schema(self) -> str:
        """The schema that the database has by now; another server may have brought it further than this one knows.
        Raises StoreError."""
        with self._reading() as connection:
            return migrating.revision_of(connection, self._database.name) or ""

    def close(self) -> None:
        """See `ports.Store`."""
        # Readers first: the last one to close moves the log into the file, and only the writer may write.
        if self._owns_readers:
            self._readers.dispose()
        self._writer.dispose()
        self._database.closed()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[Connection]:
        with self._database.translated(), self._writer.begin() as connection:
            yield connection

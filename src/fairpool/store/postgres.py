"""Everything that is PostgreSQL's own: connections, waiting for one's turn, and how its errors read."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from sqlalchemy import Connection, Engine, Table, create_engine, event, text
from sqlalchemy.exc import DBAPIError, DisconnectionError, SQLAlchemyError

from fairpool.app.store_errors import (
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    StoreUnusable,
)
from fairpool.store import migrating
from fairpool.store.constraints import violated
from fairpool.store.databases import Found, Settle, Turn
from fairpool.store.postgres_rows import JsonRows, driver
from fairpool.store.soundness import dangling_rows

CONNECT_TIMEOUT_S: Final = 3
STATEMENT_TIMEOUT_S: Final = 60
LOCK_TIMEOUT_S: Final = 10
IDLE_TIMEOUT_S: Final = 5
"""A writer that stops in the middle of a transaction (a paused process, a machine that lost its power) holds the
leader's row until then, and nobody can take over before."""

_READERS: Final = 16
_SPARE_READERS: Final = 4
_WRITERS: Final = 2  # the scheduler's, and its lease's
_POOL_TIMEOUT_S: Final = 10
_TRUSTED_S: Final = 1.0

# Where the URL says nothing else: what lets a process notice within ten seconds that the other machine is gone.
_CONNECTION: Final = MappingProxyType(
    {
        "application_name": "fairpool",
        "client_encoding": "UTF8",
        "connect_timeout": str(CONNECT_TIMEOUT_S),
        "keepalives_idle": "4",
        "keepalives_interval": "2",
        "keepalives_count": "3",
        "tcp_user_timeout": "10000",
    }
)
_TIMEOUTS: Final = MappingProxyType(
    {
        "statement_timeout": f"{STATEMENT_TIMEOUT_S}s",
        "lock_timeout": f"{LOCK_TIMEOUT_S}s",
        "idle_in_transaction_session_timeout": f"{IDLE_TIMEOUT_S}s",
    }
)

TAKEOVER_LOCK_S: Final = 1
STALLED_S: Final = 3
"""A session that has locked a leader's row and says nothing for so long in the middle of a transaction has lost its
client, or the client is paused. Clients send what they have to say in one go."""

_END_STALLED: Final = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity JOIN pg_locks USING (pid)
WHERE datname = current_database() AND usename = current_user AND relation = 'leaders'::regclass AND granted
AND mode = 'RowShareLock' AND wait_event_type = 'Client' AND wait_event = 'ClientRead'
AND state_change < clock_timestamp() - make_interval(secs => %s)
"""

# Advisory locks are numbers in one space per database: the first is ours ("FPOL"), the second says what for.
_LOCK_SPACE: Final = 0x46504F4C
_MIGRATION, _COMMIT = 1, 2
_NUMBERS: Final = (
    "SELECT (SELECT max(seq) FROM requests), (SELECT max(seq) FROM history), (SELECT max(seq) FROM runs), "
    "(SELECT max(seq) FROM steps)"
)
_WAIT_FOR_TURN: Final = text("SELECT pg_advisory_xact_lock(:space, :what)")


class PostgresDatabase:
    """See `databases.Database`. Raises StoreUnusable for a URL that libpq does not understand."""

    def __init__(self, url: str) -> None:
        # One name per scheme for all who read the URL: SQLAlchemy's, which names the driver, is one that libpq refuses.
        plain = "postgresql:" + url.partition(":")[2]
        try:
            given = {key: str(value) for key, value in conninfo_to_dict(plain).items() if value is not None}
        except psycopg.Error:  # its message may repeat a part of the URL, and that part may be the password
            raise StoreUnusable(
                "the database URL is none that PostgreSQL understands; possible: "
                "postgresql://user:password@host:5432/database, with % and other special letters of a password "
                "written as %25 and so on"
            ) from None
        self._conninfo = make_conninfo(**{**_CONNECTION, **given})
        self._name = _name(given)

    @property
    def name(self) -> str:
        """See `databases.Database`."""
        return self._name

    # ---- connections ------------------------------------------------------------------------------------------------

    def writer(self) -> Engine:
        """See `databases.Database`."""
        # On: a commit that returned survives a power cut, whatever the server's own default is.
        settings = {"synchronous_commit": "on"}
        # It finds rows by their keys and in no other way; a table that grew a minute ago looks small to the planner,
        # which would read all of it.
        settings |= dict.fromkeys(("enable_seqscan", "enable_hashjoin", "enable_mergejoin"), "off")
        return self._engine(settings, size=_WRITERS, kept=_WRITERS, begin="BEGIN ISOLATION LEVEL READ COMMITTED")

    def readers(self) -> Engine:
        """See `databases.Database`."""
        settings = {
            "default_transaction_read_only": "on",
            # A page of a list is a hundred rows that are found by an index, in memory as a rule. And how to find them
            # best differs with what is asked for: most of the rows, or none.
            "random_page_cost": "1.1",
            "plan_cache_mode": "force_custom_plan",
            # Neither pays for a page; where a planner overrates the work, both cost more than all the rest.
            "jit": "off",
            "max_parallel_workers_per_gather": "0",
        }
        begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        return self._engine(settings, size=_READERS, kept=_SPARE_READERS, begin=begin)

    def _engine(self, settings: Mapping[str, str], *, size: int, kept: int, begin: str) -> Engine:
        session = {**_TIMEOUTS, **settings}
        set_up = "SELECT " + ", ".join("set_config(%s, %s, false)" for _ in session)
        values = [part for setting in session.items() for part in setting]

        def connect() -> psycopg.Connection[Any]:
            # Transactions begin where we say so; a statement alone needs none.
            connection = psycopg.connect(self._conninfo, autocommit=True)
            try:
                connection.execute(set_up, values)
            except BaseException:
                connection.close()
                raise
            return connection

        engine = create_engine(
            "postgresql+psycopg://",
            creator=connect,
            pool_size=kept,
            max_overflow=size - kept,
            pool_timeout=_POOL_TIMEOUT_S,
            hide_parameters=True,
            use_native_hstore=False,  # or each connection begins by looking for a type that we do not use
        )
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
        event.listen(engine, "checkout", _check_alive)
        event.listen(engine, "checkin", _note_use)
        return engine

    # ---- taking turns -----------------------------------------------------------------------------------------------

    def acknowledge(self, history_seq: int) -> None:
        """See `databases.Database`. The server sees to its own log and, where it has been told to, to its pages."""

    def closed(self) -> None:
        """See `databases.Database`."""

    def losses(self, connection: Connection) -> Sequence[str]:
        """See `databases.Database`."""
        return []

    def accept(self) -> None:
        """See `databases.Database`."""

    def begin_takeover(self, connection: Connection) -> None:
        """See `databases.Database`."""
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{TAKEOVER_LOCK_S}s'")

    def end_stalled(self) -> int:
        """See `databases.Database`. Between two statements of a pipeline no timeout of the server's own runs: for it,
        the session is at work, and waits for the rest of what its client has to say."""
        with self.translated(), psycopg.connect(self._conninfo, autocommit=True) as connection:
            return len(connection.execute(_END_STALLED, [STALLED_S]).fetchall())

    def begin_migration(self, connection: Connection) -> None:
        """See `databases.Database`."""
        # A step over a large table takes as long as it takes, and so does waiting for the one who is at it.
        for setting in ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"):
            connection.exec_driver_sql(f"SET LOCAL {setting} = 0")
        connection.execute(_WAIT_FOR_TURN, {"space": _LOCK_SPACE, "what": _MIGRATION})

    def end_migration(self, connection: Connection) -> None:
        """See `databases.Database`."""

    def take_turn(self, connection: Connection, leader: str, settle: Settle) -> Turn:
        """See `databases.Database`.

        The numbers are read by a statement of their own: a statement sees what was committed before it began, and
        those that wait begin before the commits for which they wait.
        """
        link = driver(connection)
        token = link.execute("SELECT token FROM leaders WHERE name = %s FOR UPDATE", [leader])
        link.execute("SELECT pg_advisory_xact_lock(%s, %s)", [_LOCK_SPACE, _COMMIT])
        numbers = link.execute(_NUMBERS)
        settle()
        held = token.fetchone()
        requests, history, runs, steps = (number or 0 for number in numbers.fetchone() or ())
        return Turn(token=held[0] if held else 0, requests=requests, history=history, runs=runs, steps=steps)

    @contextlib.contextmanager
    def together(self, connection: Connection) -> Iterator[Settle]:
        """See `databases.Database`. One way to the server and back for all that is not settled in between.

        The transaction must end inside the block. At its end the driver sends a message after which the server no
        longer ends a session that stays idle in its transaction, and one that is paused would keep its locks for ever.
        """
        with driver(connection).pipeline() as pipeline:
            yield pipeline.sync

    def table_writer(self, table: Table) -> JsonRows:
        """See `databases.Database`."""
        return JsonRows(table)

    # ---- what is there ----------------------------------------------------------------------------------------------

    def found(self) -> Found:
        """See `databases.Database`."""
        readers = self.readers()
        try:
            with self.translated(), readers.begin() as connection:
                size = connection.exec_driver_sql("SELECT pg_database_size(current_database())").scalar_one()
                return Found(exists=True, size_bytes=size)
        finally:
            readers.dispose()

    def look(self) -> None:
        """See `databases.Database`."""
        readers = self.readers()
        try:
            with self.translated(), readers.begin() as connection:
                encoding, standby = connection.exec_driver_sql(
                    "SELECT current_setting('server_encoding'), pg_is_in_recovery()"
                ).one()
                if encoding != "UTF8":
                    raise StoreUnusable(
                        f"{self._name} keeps its texts as {encoding}, which does not have every letter; "
                        "possible: a database made with ENCODING 'UTF8'"
                    )
                if standby:
                    raise StoreReadOnly(
                        f"{self._name} is a standby, which only follows another: name the one it follows"
                    )
                migrating.is_current(migrating.revision_of(connection, self._name), self._name)
        finally:
            readers.dispose()

    def problems(self, connection: Connection) -> Sequence[str]:
        """See `databases.Database`."""
        return [
            f"the constraint {name} of {table} was never checked against all rows (ALTER TABLE {table} VALIDATE "
            f"CONSTRAINT {name} does)"
            for name, table in connection.execute(_NOT_VALID)
        ] + [
            f"the index {name} of {table} is not whole (REINDEX INDEX {name} makes it anew)"
            for name, table in connection.execute(_BROKEN_INDEXES)
        ]

    def dangling(self, connection: Connection) -> Sequence[str]:
        """See `databases.Database`."""
        return dangling_rows(connection)

    # ---- errors -----------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def translated(self) -> Iterator[None]:
        """See `databases.Database`."""
        try:
            yield
        except DBAPIError as error:
            raise self._error_of(error.orig or error) from error
        except psycopg.Error as error:
            raise self._error_of(error) from error
        except SQLAlchemyError as error:  # e.g. no connection became free
            raise StoreUnavailable(f"{self._name} cannot be reached: {error}") from error

    def _error_of(self, error: BaseException) -> StoreError:
        code = (getattr(error, "sqlstate", None) or "") if isinstance(error, psycopg.Error) else ""
        said = _one_line(error)
        if code.startswith("23") and isinstance(error, psycopg.Error):
            return violated(error.diag.constraint_name or error.diag.column_name or code, said)
        if isinstance(error, psycopg.DataError):  # such as a NUL in a text: who asks again meets it again
            return violated(code or "data", said)
        if code in _FULL:
            return StoreFull(f"{self._name} cannot grow ({said}): nothing was changed; make room on its disk")
        if code in _READ_ONLY:
            return StoreReadOnly(
                f"{self._name} cannot be written ({said}): it may be a standby, or this user may not write to it"
            )
        if code in _CORRUPT:
            return StoreCorrupt(f"{self._name} is damaged ({said}); it is left as it is: restore a backup of it")
        if code in _BUSY:
            return StoreUnavailable(f"{self._name} is busy ({said}); try again")
        return StoreUnavailable(f"{self._name} cannot be reached or does not answer: {said}")


_FULL: Final = frozenset({"53100"})
_READ_ONLY: Final = frozenset({"25006", "42501"})
_CORRUPT: Final = frozenset({"XX001", "XX002"})
# Deadlock, failed serialisation, a lock or a statement that took too long, too many connections.
_BUSY: Final = frozenset({"40001", "40P01", "55P03", "57014", "53300"})

_NOT_VALID: Final = text(
    "SELECT conname, conrelid::regclass::text FROM pg_constraint "
    "WHERE NOT convalidated AND connamespace = current_schema()::regnamespace ORDER BY conname"
)
_BROKEN_INDEXES: Final = text(
    "SELECT indexrelid::regclass::text, indrelid::regclass::text FROM pg_index JOIN pg_class ON oid = indexrelid "
    "WHERE NOT (indisvalid AND indisready) AND relnamespace = current_schema()::regnamespace ORDER BY 1"
)


def _check_alive(connection: psycopg.Connection[Any], record: Any, proxy: object) -> None:
    """Whether a connection that was idle for a while still leads anywhere: after the database was away, the next call
    gets a new one. One that was used just now is trusted, since asking costs as much as the call itself."""
    if time.monotonic() - record.info.get("used_at", float("inf")) < _TRUSTED_S:
        return
    try:
        # Nothing, asked outside of any transaction.
        connection.pgconn.exec_(b"")
        if connection.pgconn.status != psycopg.pq.ConnStatus.OK:
            raise DisconnectionError
    except psycopg.Error:
        raise DisconnectionError from None


def _note_use(connection: object, record: Any) -> None:
    record.info["used_at"] = time.monotonic()


def _name(given: Mapping[str, str]) -> str:
    host, port = given.get("host", ""), given.get("port", "")
    where = f" at {host or 'this machine'}" + (f":{port}" if port and not host.startswith("/") else "")
    return f"the PostgreSQL database {given.get('dbname', given.get('user', 'of the default name'))!r}{where}"


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__

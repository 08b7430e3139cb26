"""The leader lease of a workspace in a row of its own. What counts is the token: who holds an old one cannot write."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final

from sqlalchemy import Connection, Row, select

from fairpool.app.records import DEFAULT_WORKSPACE, Leadership
from fairpool.app.store_errors import StaleLeader, StoreUnavailable
from fairpool.core.ids import Instant, seconds
from fairpool.store.databases import Database
from fairpool.store.schema import leaders

log = logging.getLogger(__name__)

_SCHEDULER: Final = "scheduler"


def leader_name(workspace: str) -> str:
    """The name of the row that says who schedules the workspace."""
    return _SCHEDULER if workspace == DEFAULT_WORKSPACE else f"{_SCHEDULER}/{workspace}"


def check_token(token: int, current: int) -> None:
    """Raises StaleLeader unless `token` is the current one. current: 0 where nobody led yet."""
    if current != token:
        raise StaleLeader(token=token, current=current)


class SqlLeases:
    """The leader lease of one workspace. transaction, reading: begin one that may write, and one that may not."""

    def __init__(
        self,
        transaction: Callable[[], AbstractContextManager[Connection]],
        reading: Callable[[], AbstractContextManager[Connection]],
        database: Database,
        workspace: str,
    ) -> None:
        self._transaction = transaction
        self._reading = reading
        self._database = database
        self._row = database.table_writer(leaders)
        self._leader = leader_name(workspace)

    def acquire(self, holder: str, now: Instant, ttl_s: float, address: str = "") -> Leadership:
        """See `ports.Leases`."""
        try:
            return self._acquire(holder, now, ttl_s, address)
        except StoreUnavailable:
            ended = self._database.end_stalled()
            if ended:
                log.warning("%d sessions that had stopped in the middle of writing were ended", ended)
            raise

    def _acquire(self, holder: str, now: Instant, ttl_s: float, address: str) -> Leadership:
        with self._transaction() as connection:
            self._database.begin_takeover(connection)
            old = _leadership(_locked(connection, self._leader))
            if old is not None and old.holder != holder and old.until > now:
                return old
            token, until = old.token + 1 if old else 1, Instant(now + seconds(ttl_s))
            values = {"holder": holder, "token": token, "until": until, "address": address}
            if old is not None:
                self._change(connection, values)
                return Leadership(holder=holder, token=token, until=until, address=address)
            # The first ever: where two find no row at once, one of them makes it, and the other waits and finds it.
            self._row.add_missing(connection, [{"name": self._leader, **values}])
            first = _leadership(_locked(connection, self._leader))
            assert first is not None
            return first

    def renew(self, token: int, now: Instant, ttl_s: float) -> Leadership:
        """See `ports.Leases`."""
        with self._transaction() as connection:
            row = _locked(connection, self._leader)
            check_token(token, 0 if row is None else row.token)
            self._change(connection, {"until": Instant(now + seconds(ttl_s))})
            renewed = _leadership(_read(connection, self._leader))
            assert renewed is not None
            return renewed

    def release(self, token: int) -> None:
        """See `ports.Leases`."""
        with self._transaction() as connection:
            row = _locked(connection, self._leader)
            if row is not None and row.token == token:
                self._change(connection, {"until": 0})

    def current(self) -> Leadership | None:
        """See `ports.Leases`. Takes no lock: those who follow look several times a second."""
        with self._reading() as connection:
            return _leadership(_read(connection, self._leader))

    def _change(self, connection: Connection, values: dict[str, Any]) -> None:
        connection.execute(leaders.update().where(leaders.c.name == self._leader).values(**values))


def _read(connection: Connection, leader: str) -> Row[Any] | None:
    return connection.execute(select(leaders).where(leaders.c.name == leader)).one_or_none()


def _locked(connection: Connection, leader: str) -> Row[Any] | None:
    """The row as it is now; nobody else changes it until the transaction ends (on SQLite, nobody writes at all)."""
    return connection.execute(select(leaders).where(leaders.c.name == leader).with_for_update()).one_or_none()


def _leadership(row: Row[Any] | None) -> Leadership | None:
    if row is None:
        return None
    return Leadership(holder=row.holder, token=row.token, until=Instant(row.until), address=row.address)

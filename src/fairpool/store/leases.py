"""The leader lease in a row of its own. What counts is the token: who holds an old one cannot write."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final

from sqlalchemy import Connection, insert, select, update

from fairpool.app.records import Leadership
from fairpool.app.store_errors import StaleLeader
from fairpool.core.ids import Instant, seconds
from fairpool.store.schema import leaders

SCHEDULER: Final = "scheduler"

_CURRENT: Final = select(leaders).where(leaders.c.name == SCHEDULER)
_TOKEN: Final = select(leaders.c.token).where(leaders.c.name == SCHEDULER)


def _fence(connection: Connection, token: int) -> None:
    """Raises StaleLeader unless `token` is the current one; it stays so until the transaction ends."""
    current = connection.execute(_TOKEN).scalar() or 0
    if current != token:
        raise StaleLeader(token=token, current=current)


class SqlLeases:
    """The leader lease of one database. transaction: begins one that may write."""

    def __init__(self, transaction: Callable[[], AbstractContextManager[Connection]]) -> None:
        self._transaction = transaction

    def acquire(self, holder: str, now: Instant, ttl_s: float, address: str = "") -> Leadership:
        """See `ports.Leases`."""
        with self._transaction() as connection:
            old = _current(connection)
            if old is not None and old.holder != holder and old.until > now:
                return old
            token, until = old.token + 1 if old else 1, Instant(now + seconds(ttl_s))
            new = Leadership(holder=holder, token=token, until=until, address=address)
            values = {"holder": holder, "token": token, "until": until, "address": address}
            if old is None:
                connection.execute(insert(leaders).values(name=SCHEDULER, **values))
            else:
                connection.execute(update(leaders).where(leaders.c.name == SCHEDULER).values(**values))
            return new

    def renew(self, token: int, now: Instant, ttl_s: float) -> Leadership:
        """See `ports.Leases`."""
        with self._transaction() as connection:
            _fence(connection, token)
            until = Instant(now + seconds(ttl_s))
            connection.execute(update(leaders).where(leaders.c.name == SCHEDULER).values(until=until))
            renewed = _current(connection)
            assert renewed is not None
            return renewed

    def release(self, token: int) -> None:
        """See `ports.Leases`."""
        with self._transaction() as connection:
            mine = (leaders.c.name == SCHEDULER) & (leaders.c.token == token)
            connection.execute(update(leaders).where(mine).values(until=0))

    def current(self) -> Leadership | None:
        """See `ports.Leases`."""
        with self._transaction() as connection:
            return _current(connection)


def _current(connection: Connection) -> Leadership | None:
    row = connection.execute(_CURRENT).one_or_none()
    if row is None:
        return None
    return Leadership(holder=row.holder, token=row.token, until=Instant(row.until), address=row.address)

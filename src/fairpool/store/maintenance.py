"""Whether a database is sound. Changes nothing, and may run beside a server. (`backups.py` copies one.)"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy import Connection, func, select

from fairpool.app.store_errors import StoreError, StoreForeign, StoreTooNew, StoreUnavailable, StoreUnusable
from fairpool.store import migrating, schema
from fairpool.store.databases import Database, Found
from fairpool.store.soundness import broken_rules
from fairpool.store.urls import database_of

_COUNTED: Final = (schema.pools, schema.policies, schema.requests, schema.runs, schema.steps, schema.history)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """What a look at a database found.

    name: what messages call it. revision: its schema (None: empty, or it could not be told). known: this version's.
    problems: what is wrong, in sentences; empty for a sound database. losses: what it once held and holds no more,
    which is wrong too until somebody accepts it. counts: rows by table.
    """

    name: str
    found: Found
    revision: str | None = None
    known: str = migrating.HEAD
    problems: tuple[str, ...] = ()
    losses: tuple[str, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems and not self.losses

    @property
    def needs_migration(self) -> bool:
        """Whether `migrate` would change it."""
        return self.found.exists and self.is_sound and self.revision != self.known


def check(url: str) -> CheckReport:
    """Read all of a database and say what is wrong with it.

    Raises StoreUnavailable where it cannot be read, StoreUnusable for a URL that names no such database.
    """
    database = database_of(url)
    try:
        found = database.found()
    except StoreUnusable as error:
        return CheckReport(name=database.name, found=Found(exists=True), problems=(error.message,))
    if not found.exists:
        return CheckReport(name=database.name, found=found, problems=(f"{database.name} does not exist",))
    with contextlib.closing(_Look(database)) as look:
        problems = tuple(look.problems())
        return CheckReport(
            name=database.name,
            found=found,
            revision=look.revision,
            problems=problems,
            losses=look.losses,
            counts=look.counts,
        )


def accept(url: str) -> CheckReport:
    """Go on with what is there, where a database has lost something and is sound otherwise. Returns what there was to
    accept: the report from before.

    Raises StoreUnusable where anything else is wrong with it; what `check` raises.
    """
    report = check(url)
    if report.problems:
        raise StoreUnusable("\n".join(report.problems))
    if report.losses:
        database_of(url).accept()
    return report


class _Look:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._engine = database.readers()
        self.revision: str | None = None
        self.counts: dict[str, int] = {}
        self.losses: tuple[str, ...] = ()

    def problems(self) -> list[str]:
        """Everything that is wrong. Each look is a transaction of its own: one that fails hides no other."""
        name = self._database.name
        try:
            with self._database.translated(), self._engine.begin() as connection:
                self.revision = migrating.revision_of(connection, name)
                current = migrating.is_current(self.revision, name)
        except (StoreForeign, StoreTooNew) as error:
            return [error.message]
        except StoreUnavailable:
            raise
        except StoreError as error:
            return [error.message]
        looks: list[Callable[[Connection], list[str]]] = [
            self._losses,
            lambda connection: list(self._database.problems(connection)),
            lambda connection: list(self._database.dangling(connection)),
        ]
        if current:
            looks += [broken_rules, self._count]
        found: list[str] = []
        for look in looks:
            try:
                with self._database.translated(), self._engine.begin() as connection:
                    found += look(connection)
            except StoreUnusable as error:
                found.append(error.message)
        return found

    def _losses(self, connection: Connection) -> list[str]:
        self.losses = tuple(self._database.losses(connection))
        return []

    def _count(self, connection: Connection) -> list[str]:
        for table in _COUNTED:
            self.counts[table.name] = connection.execute(select(func.count()).select_from(table)).scalar_one()
        return []

    def close(self) -> None:
        """Let go of the database."""
        self._engine.dispose()

"""``fairpool db``: bring the server's database up to date, look whether it is sound, copy it, fill it from a copy, and
accept what it has lost."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from fairpool.app.store_errors import StoreError
from fairpool.bootstrap.settings import Settings, WrongSetting, load
from fairpool.bootstrap.sources import SystemClock
from fairpool.store import backups, maintenance, opening
from fairpool.store.maintenance import CheckReport
from fairpool.wire.problems import Exit


class DatabaseTrouble(Exception):
    """Something is wrong with the database. help: what to do."""

    def __init__(self, message: str, *, help: str = "") -> None:  # noqa: A002 (the word of doctor's findings)
        super().__init__(message)
        self.help = help


def run_migrate() -> int:
    """Bring the database to this version's schema. Returns the exit code."""
    return _run(_migrate)


def run_check() -> int:
    """Read all of the database and say what is wrong with it. Returns the exit code: 1 where something is."""
    return _run(_check)


def run_backup(to: str) -> int:
    """Copy the database to the file `to`, also while it is in use. Returns the exit code."""
    return _run(lambda settings: _backup(settings, Path(to)))


def run_restore(file: str) -> int:
    """Fill the empty database from the backup `file`: all of it or nothing. Returns the exit code."""
    return _run(lambda settings: _restore(settings, Path(file)))


def run_accept() -> int:
    """Go on with what is there, where the database has lost something. Returns the exit code."""
    return _run(_accept)


def check(settings: Settings) -> str:
    """What there is to say of a sound database. Raises DatabaseTrouble."""
    try:
        report = maintenance.check(settings.database_url)
    except StoreError as error:
        raise DatabaseTrouble(error.message) from None
    if not report.found.exists:
        return f"{report.name} (made when the server first starts)"
    if not report.is_sound:
        raise DatabaseTrouble("; ".join(_wrong(report)), help="restore a backup; it is left as it is")
    return _told(report)


def _migrate(settings: Settings) -> str:
    _make_folder(settings)
    done = opening.migrate(settings.database_url)
    if done.before == done.after:
        return f"already at schema {done.after}"
    return f"schema {done.after}, was {done.before or 'empty'}"


def _check(settings: Settings) -> str:
    report = maintenance.check(settings.database_url)
    if not report.is_sound:
        raise DatabaseTrouble("\n".join(_wrong(report)))
    return _told(report)


def _accept(settings: Settings) -> str:
    report = maintenance.accept(settings.database_url)
    if not report.found.exists or not report.losses:
        return f"{report.name}: nothing is missing, and nothing was changed"
    return f"{report.name}: taken as it is from now on, though {'; '.join(report.losses)}"


def _wrong(report: CheckReport) -> list[str]:
    """What is wrong, and what to do about what is lost."""
    lost = f"{report.name} has lost something: {'; '.join(report.losses)}; restore a backup, or take it as it is with "
    return [*report.problems, *([f"{lost}'fairpool db accept'"] if report.losses else [])]


def _backup(settings: Settings, to: Path) -> str:
    done = backups.backup(settings.database_url, to, progress=_progress)
    return f"{done.path}: {done.size_bytes:,} bytes, schema {done.revision or 'empty'}, checked"


def _restore(settings: Settings, file: Path) -> str:
    _make_folder(settings)
    done = backups.restore(settings.database_url, file, SystemClock().now(), progress=_progress)
    counts = ", ".join(f"{table} {count:,}" for table, count in done.counts.items() if count)
    told = f"{done.name}: restored from {file}; {counts or 'no rows'}; the same on both sides"
    if done.in_use:
        told += f"\n{file} is in use: what its server did since the restore began is not in it"
    return told


def _make_folder(settings: Settings) -> None:
    if not settings.database_url.startswith("postgres"):
        settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)


def _progress(table: str, copied: int, total: int) -> None:
    """Shows a person how far it is; a file or a pipe gets the outcome alone."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{table}: {copied:,} of {total:,}" + ("\n" if copied == total else ""))


def _told(report: CheckReport) -> str:
    counts = ", ".join(f"{name} {count:,}" for name, count in report.counts.items())
    size = f"{(report.found.size_bytes + report.found.wal_bytes) / 10**6:,.1f} MB"
    behind = f"; fairpool db migrate brings it to {report.known}" if report.needs_migration else ""
    return f"{report.name}: sound, {size}, schema {report.revision or 'empty'}{behind}" + (
        f"; {counts}" if counts else ""
    )


def _run(do: Callable[[Settings], str]) -> int:
    try:
        told = do(load())
    except (StoreError, DatabaseTrouble) as error:
        return _refused(str(error), Exit.FAILED)
    except WrongSetting as error:
        return _refused(str(error), Exit.USAGE)
    sys.stdout.write(told + "\n")
    return Exit.DONE


def _refused(message: str, code: Exit) -> int:
    sys.stderr.write(f"fairpool: {message}\n")
    return code

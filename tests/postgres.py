"""A real PostgreSQL for the tests: a cluster of their own in a temporary folder, on a free loopback port.

It is started for the first test that asks for it (the fixture `postgres` of tests/conftest.py), and gone at the end.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

USER = "fairpool"
# PostgreSQL refuses to run as root. Debian's package makes this user; anywhere else `nobody` does.
_UNPRIVILEGED = ("postgres", "nobody")
# Nothing here survives the tests, so nothing waits for a disk: durability is PostgreSQL's own affair, and what is ours
# (that a commit asks for it) is read back from its settings.
_SETTINGS: Mapping[str, object] = {
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "listen_addresses": "127.0.0.1",
    "log_min_messages": "warning",
    "timezone": "Asia/Kathmandu",  # nothing may depend on the server's own
}


class NoPostgres(RuntimeError):
    """The programs of a PostgreSQL server are not on this machine, or do not start. The message says what to do."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running server. folder: where its files are. programs: of its version."""

    port: int
    folder: Path
    programs: Path

    def url(self, database: str) -> str:
        """The URL of one of its databases."""
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{database}"

    @property
    def superuser(self) -> str:
        """The URL of its first database."""
        return self.url("postgres")

    def control(self, action: str) -> None:
        """``stop`` it in the middle of whatever it does, or ``start`` it again."""
        how = ["-m", "immediate"] if action == "stop" else ["-l", str(self.folder / "log")]
        pg_ctl = [str(self.programs / "pg_ctl"), "-D", str(self.folder / "data"), "-w", *how, action]
        user = _unprivileged() if os.geteuid() == 0 else None
        subprocess.run(pg_ctl, stdout=subprocess.DEVNULL, check=True, cwd="/", **_as(user))

    def new_database(self, options: str = "") -> str:
        """The URL of a new, empty database."""
        name = f"t{uuid.uuid4().hex}"
        with psycopg.connect(self.superuser, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} {options}".encode())
        return self.url(name)

    def drop_database(self, url: str) -> None:
        """Remove a database, whoever is connected to it."""
        with psycopg.connect(self.superuser, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {url.rpartition('/')[2]} WITH (FORCE)".encode())


def programs() -> Path:
    """The folder of the server's programs. Raises NoPostgres."""
    on_path = shutil.which("pg_ctl")
    if on_path and (Path(on_path).parent / "initdb").exists():
        return Path(on_path).parent
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if not found:
        raise NoPostgres(
            "these tests need the programs of a PostgreSQL server, and there are none on the PATH nor in "
            "/usr/lib/postgresql; `make programs` installs Debian's"
        )
    return found[-1].parent


def empty(url: str) -> None:
    """Empty all tables: a twentieth of the time that a new database takes."""
    with psycopg.connect(url) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        connection.execute("SET session_replication_role = replica")  # in any order: it all goes
        for (table,) in tables:
            if table != "alembic_version":
                connection.execute(f"DELETE FROM {table}".encode())


@contextlib.contextmanager
def running(*, checksums: bool = False, **settings: object) -> Iterator[Cluster]:
    """A new cluster, for the block. It goes too when this process is killed. settings: of its own, beside the usual.
    checksums: whether its pages have some."""
    where = programs()
    # Not under pytest's folders, which only their owner may enter.
    folder = Path(tempfile.mkdtemp(prefix="fairpool-postgres-"))
    user = _unprivileged() if os.geteuid() == 0 else None
    if user is not None:
        os.chown(folder, user.pw_uid, user.pw_gid)
    try:
        initdb = [
            str(where / "initdb"),
            "-D",
            str(folder / "data"),
            "-U",
            USER,
            "-A",
            "trust",
            "-E",
            "UTF8",
            *_locale(where),
            *(["--data-checksums"] if checksums else []),
        ]
        made = subprocess.run(initdb, capture_output=True, text=True, check=False, cwd="/", **_as(user))
        if made.returncode:
            raise NoPostgres(f"initdb failed: {made.stderr or made.stdout}")
        port = _free_port()
        wanted = {**_SETTINGS, **settings, "port": port, "unix_socket_directories": folder}
        with (folder / "data" / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in wanted.items())
        with _server(user, where, folder):
            yield Cluster(port=port, folder=folder, programs=where)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# Runs until its input ends, which it does when whoever started it is gone.
_KEEPER = """
pg_ctl="$1"; folder="$2"
"$pg_ctl" -D "$folder/data" -l "$folder/log" -w start >/dev/null && echo started && read -r _
"$pg_ctl" -D "$folder/data" -m immediate stop >/dev/null
"""


@contextlib.contextmanager
def _server(user: pwd.struct_passwd | None, where: Path, folder: Path) -> Iterator[None]:
    keeper = subprocess.Popen(
        ["/bin/sh", "-c", _KEEPER, "sh", where / "pg_ctl", folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,  # Ctrl-C is for the tests, which stop it when they are done
        **_as(user),
    )
    assert keeper.stdin is not None
    assert keeper.stdout is not None
    try:
        if keeper.stdout.readline() != b"started\n":
            raise NoPostgres(f"PostgreSQL did not start: {(folder / 'log').read_text('utf-8', 'replace')}")
        yield
    finally:
        keeper.stdin.close()
        keeper.stdout.close()
        keeper.wait(60)


def _locale(where: Path) -> list[str]:
    """An order that is not letter by letter, so that a test shows it where something depends on the database's own."""
    possible = subprocess.run([where / "initdb", "--help"], capture_output=True, text=True, check=True).stdout
    return [
        "--locale=C.UTF-8",
        *(["--locale-provider=icu", "--icu-locale=en-US"] if "--icu-locale" in possible else []),
    ]


def _as(user: pwd.struct_passwd | None) -> dict[str, Any]:
    if user is None:
        return {}
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _unprivileged() -> pwd.struct_passwd:
    for name in _UNPRIVILEGED:
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise NoPostgres(f"PostgreSQL refuses to run as root, and there is no user {' or '.join(_UNPRIVILEGED)}")


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])

"""Several servers over one database, each a process with a data folder of its own."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairpool.wire import local_server
from tests.integration.serving import Caller
from tests.waiting import wait_until


@dataclass
class Server:
    """One server process, and the calls to it."""

    directory: Path
    pid: int
    call: Caller

    @property
    def url(self) -> str:
        return self.call.url

    def send(self, number: signal.Signals) -> None:
        """Send its process a signal."""
        os.kill(self.pid, number)

    def kill(self) -> None:
        """End it without a word, and wait until it is gone."""
        self.send(signal.SIGKILL)
        self.wait_until_gone()

    def stop(self) -> None:
        """Ask it to end, and wait until it has."""
        self.send(signal.SIGTERM)
        self.wait_until_gone()

    def wait_until_gone(self) -> None:
        """Wait until it has ended."""
        wait_until(lambda: not local_server.is_alive(self.directory), what="the server to end")

    def info(self) -> Any:
        """What it says of itself."""
        return self.call.ok("GET", "/server")

    @property
    def leads(self) -> bool:
        """Whether it decides."""
        return bool(self.info()["leader"])

    @property
    def log(self) -> str:
        """All that it has logged."""
        return (self.directory / local_server.LOG_FILE).read_text("utf-8")


@dataclass
class Installation:
    """Servers of one database. url: the database's; a SQLite file in the folder where none is given."""

    folder: Path
    url: str = ""
    servers: dict[str, Server] = field(default_factory=dict)

    @property
    def token_file(self) -> Path:
        return self.folder / "token"

    @property
    def token(self) -> str:
        return self.token_file.read_text("utf-8").strip()

    @property
    def database_url(self) -> str:
        return self.url or f"sqlite:///{self.folder / 'shared.db'}"

    def start(self, name: str, *arguments: str) -> Server:
        """Start a server, by a name of the test's own; under the same name, it comes back where it was."""
        directory = self.folder / name
        port = self.servers[name].url.rpartition(":")[2] if name in self.servers else "0"
        found = local_server.start(
            directory,
            "--database-url",
            self.database_url,
            "--token-file",
            str(self.token_file),
            "--idle-s",
            "0",
            "--port",
            port,
            *arguments,
        )
        self.servers[name] = Server(directory, found.pid, Caller(found.url, self.token))
        return self.servers[name]

    def leader(self) -> Server:
        """The server that decides; waits until one does."""

        def look() -> Server | None:
            living = [server for server in self.servers.values() if local_server.is_alive(server.directory)]
            return next((server for server in living if server.leads), None)

        found = wait_until(look, what="a server to lead")
        assert found is not None
        return found

    def other(self, than: Server) -> Server:
        """The other one of two."""
        return next(server for server in self.servers.values() if server is not than)

    def close(self) -> None:
        """End all of them."""
        for server in self.servers.values():
            if local_server.is_alive(server.directory):
                server.kill()


@contextmanager
def installed(folder: Path, url: str = "") -> Iterator[Installation]:
    """An installation without any server yet; those that it has at the end are ended."""
    made = Installation(folder, url)
    try:
        yield made
    finally:
        made.close()


ASK = {"demand": {"gpu": 1}, "subjects": ["team:red"], "lease_s": 3600}
"""A submission of the team that `add_pool` lets in."""


def add_pool(server: Server, gpus: int = 2) -> None:
    """A pool, and a team that may use all of it."""
    server.call.ok("POST", "/pools", {"name": "p", "capacity": {"gpu": gpus}})
    server.call.ok("POST", "/policies", {"pool": "p", "subject": "team:red", "reserved": {"gpu": gpus}})
    server.call.ok("POST", "/policies", {"pool": "p", "subject": "team:blue", "limit": {"gpu": gpus}, "grace_s": 0})

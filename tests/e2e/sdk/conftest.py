"""A private installation per test: a data folder of its own, in which the first program starts a server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairpool.client import connecting
from fairpool.client.api import Client
from fairpool.wire import local_server
from fairpool.wire.policies import PolicyCreate
from fairpool.wire.pools import PoolCreate
from fairpool.wire.stacks import ComponentCreate


class Installation:
    """One person's machine: programs, commands, and the server that they start."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        self._client: Client | None = None
        self._started: list[subprocess.Popen[str]] = []
        cleared = {name: value for name, value in os.environ.items() if not name.startswith(("FAIRPOOL_", "XDG_"))}
        cleared.pop("CUDA_VISIBLE_DEVICES", None)
        self.environment = {
            **cleared,
            "FAIRPOOL_DATA_DIR": str(self.data),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "FAIRPOOL_LEASE_S": "4",
            "NO_COLOR": "1",
        }

    def start(self, text: str, name: str = "program", **environment: str) -> subprocess.Popen[str]:
        """Write a program to a file of its own and start it."""
        path = self.folder / f"{name}.py"
        path.write_text(textwrap.dedent(text))
        process = subprocess.Popen(
            [sys.executable, str(path)],
            cwd=self.folder,
            env={**self.environment, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._started.append(process)
        return process

    def run(self, text: str, name: str = "program", **environment: str) -> str:
        """What a program writes that ends well."""
        process = self.start(text, name, **environment)
        out, err = process.communicate(timeout=90)
        assert process.returncode == 0, err
        return out

    @property
    def client(self) -> Client:
        """Calls to its server, which is started if need be."""
        found = local_server.find(self.data)
        if self._client is None or found is None or found.url != self._client.url:
            self.data.mkdir(parents=True, exist_ok=True)
            self._client = connecting.local(self.data)
        return self._client

    def pool(self, name: str, **capacity: int) -> None:
        """A pool."""
        self.client.create_pool(PoolCreate(name=name, capacity=dict(capacity)))

    def component(self, name: str) -> None:
        """A component on this machine."""
        self.client.create_component(ComponentCreate(name=name))

    def policy(self, pool: str, subject: str, **reserved: int) -> None:
        """A policy."""
        self.client.attach_policy(PolicyCreate(pool=pool, subject=subject, priority=10, reserved=dict(reserved)))

    def statuses(self) -> list[str]:
        """What became of all requests, sorted."""
        return sorted(request.status.value for request in self.client.requests(view="all"))

    def kill_server(self) -> None:
        """SIGKILL to the server."""
        found = local_server.find(self.data)
        assert found is not None
        os.kill(found.pid, signal.SIGKILL)

    def close(self) -> None:
        """End everything that was started here."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.communicate()
        if self._client is not None:
            self._client.close()
        if local_server.find(self.data) is not None:
            self.kill_server()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Installation]:
    """A machine on which nothing has run yet."""
    installation = Installation(tmp_path)
    yield installation
    installation.close()

"""A private installation per test: the real `fairpool` program, and the server that its first command starts."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pexpect
import pytest

from fairpool.client import connecting
from fairpool.client.api import Client
from fairpool.wire import local_server
from fairpool.wire.policies import PolicyCreate
from fairpool.wire.pools import PoolCreate
from fairpool.wire.requests import RequestView
from fairpool.wire.stacks import ComponentCreate
from tests import forking
from tests.waiting import wait_until

PROGRAM = str(Path(sys.executable).with_name("fairpool"))


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    code: int
    out: str
    err: str


class Machine:
    """One person's machine: settings, a working folder, and commands typed there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        cleared = {name: value for name, value in os.environ.items() if not name.startswith(("FAIRPOOL_", "XDG_"))}
        for name in ("CUDA_VISIBLE_DEVICES", "COLUMNS", "LINES"):  # of whoever runs the tests
            cleared.pop(name, None)
        self.environment = {
            **cleared,
            "HOME": str(folder),
            "FAIRPOOL_DATA_DIR": str(self.data),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "FAIRPOOL_LEASE_S": "4",
            "TERM": "xterm",
        }
        self._client: Client | None = None
        self._started: list[subprocess.Popen[str]] = []
        self._terminals: list[pexpect.spawn[str]] = []

    def __call__(self, *words: str, stdin: str = "", **environment: str) -> Done:
        """Run a command without a terminal."""
        done = forking.run(
            [PROGRAM, *words],
            folder=self.folder,
            environment={**self.environment, **environment},
            stdin=stdin,
            timeout_s=90,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def ok(self, *words: str, **environment: str) -> str:
        """What a command that succeeds prints."""
        done = self(*words, **environment)
        assert done.code == 0, (words, done.code, done.out, done.err)
        return done.out

    def json(self, *words: str) -> Any:
        """What a command prints as JSON."""
        return json.loads(self.ok(*words, "-o", "json"))

    def start(self, *words: str, environment: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """Start a command; it is ended with the test."""
        process = subprocess.Popen(
            [PROGRAM, *words],
            cwd=self.folder,
            env={**self.environment, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._started.append(process)
        return process

    def terminal(self, *words: str) -> pexpect.spawn[str]:
        """Type a command at a terminal of 100 columns."""
        typed = pexpect.spawn(
            PROGRAM, list(words), cwd=str(self.folder), env=self.environment, encoding="utf-8", dimensions=(30, 100)
        )
        typed.timeout = 90
        self._terminals.append(typed)
        return typed

    def file(self, name: str) -> Path:
        """A file in the working folder."""
        return self.folder / name

    def wait_for(self, name: str) -> str:
        """The text of a file that somebody is about to write a line to."""
        path = self.file(name)
        return wait_until(lambda: path.read_text().strip() if path.exists() else "", what=f"{name} to be written")

    @property
    def client(self) -> Client:
        """Calls to its server, which is started if need be: to look on without a process for every look."""
        if self._client is None:
            self.data.mkdir(parents=True, exist_ok=True)
            self._client = connecting.local(self.data)
        return self._client

    def requests(self, component: str = "") -> list[RequestView]:
        """All requests, or a component's, the newest first."""
        subject = f"component:{component}" if component else None
        return list(self.client.requests(view="all", subject=subject))

    def statuses(self) -> list[str]:
        """The status of all requests, the newest first."""
        return [request.status.value for request in self.requests()]

    def wait_for_statuses(self, *wanted: str) -> None:
        """Wait until all requests, the newest first, are there."""
        wait_until(lambda: self.statuses() == list(wanted), what=f"requests to be {wanted}")

    def end_server(self, number: signal.Signals = signal.SIGKILL) -> None:
        """End the server, if one runs, with that signal."""
        found = local_server.find(self.data)
        if found is not None:
            os.kill(found.pid, number)
            wait_until(lambda: not local_server.is_alive(self.data), what="the server to be gone")

    def close(self) -> None:
        """End everything that was started here."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.communicate()
        for typed in self._terminals:
            typed.close(force=True)
        if self._client is not None:
            self._client.close()
        self.end_server()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """A machine on which nothing has run yet."""
    made = Machine(tmp_path)
    yield made
    made.close()


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data of a machine with two GPUs, which research may borrow, and of which both are reserved for prod."""
    made = Machine(tmp_path_factory.mktemp("prepared"))
    made.client.create_pool(PoolCreate(name="gpus", capacity={"gpu": 2}))
    for name in ("research", "prod"):
        made.client.create_component(ComponentCreate(name=name))
    made.client.attach_policy(PolicyCreate(pool="gpus", subject="research", priority=1, grace_s=20))
    made.client.attach_policy(PolicyCreate(pool="gpus", subject="prod", priority=9, reserved={"gpu": 2}))
    made.end_server(signal.SIGTERM)  # in good order: the copies are other servers' and must not wait for its lease
    made.close()
    return made.data


@pytest.fixture
def served(machine: Machine) -> None:
    """Its server runs, for tests to which it does not matter who started it."""
    assert machine.client.pools() == []


@pytest.fixture
def stopped(machine: Machine, prepared: Path) -> Machine:
    """A machine of its own with what was prepared, and no server at work."""
    shutil.copytree(prepared, machine.data)
    return machine


@pytest.fixture
def pooled(stopped: Machine) -> Machine:
    """A machine of its own with what was prepared, and its server."""
    assert stopped.client.pools()
    return stopped


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """A machine for tests that only look, or that leave everything as it was."""
    made = Machine(tmp_path_factory.mktemp("shared"))
    made.client.create_pool(PoolCreate(name="gpus", capacity={"gpu": 4}))
    made.client.attach_policy(PolicyCreate(pool="gpus", subject="local", priority=5, reserved={"gpu": 2}))
    yield made
    made.close()

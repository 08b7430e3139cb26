"""A private installation per test: a data folder of its own, in which the first program starts a server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairpool.wire import local_server


class Installation:
    """One person's machine: programs, commands, and the server that they start."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
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

    def fairpool(self, *words: str) -> str:
        """What a command writes that ends well."""
        done = subprocess.run(
            [sys.executable, "-c", "from fairpool.cli.main import main; main()", *words],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, f"fairpool {' '.join(words)}: {done.stderr}"
        return done.stdout

    def show(self, *words: str) -> Any:
        """What a command says as JSON."""
        return json.loads(self.fairpool(*words, "-o", "json"))

    def requests(self) -> list[dict[str, Any]]:
        """All requests, whatever became of them."""
        found = self.show("request", "list", "--view", "all")
        items: list[dict[str, Any]] = found["items"] if isinstance(found, dict) else found
        return items

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
        if local_server.find(self.data) is not None:
            self.kill_server()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Installation]:
    """A machine on which nothing has run yet."""
    installation = Installation(tmp_path)
    yield installation
    installation.close()

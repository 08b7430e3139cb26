"""Every test has a driver of its own, a private data folder, and a server in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fairpool.sdk import driver
from fairpool.sdk.broker import Broker
from tests.unit.sdk.fake_server import FakeServer


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., FakeServer]]:
    """Make the SDK of this process talk to a server in memory."""
    monkeypatch.setenv("FAIRPOOL_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("FAIRPOOL_ARTIFACTS", raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("FAIRPOOL_ECHO", "never")

    servers = []

    def start(**options: object) -> FakeServer:
        server = FakeServer(**options)  # type: ignore[arg-type]
        servers.append(server)
        driver.use_broker(Broker(server, renew_every_s=0.2))
        return server

    yield start
    driver.use_broker(None)
    for server in servers:
        server.hang_up()

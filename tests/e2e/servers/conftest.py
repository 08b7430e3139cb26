"""Two servers of one database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.servers.installation import Installation, Server, add_pool


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    """An installation without any server yet."""
    made = Installation(tmp_path)
    yield made
    made.close()


@pytest.fixture
def leader(installation: Installation) -> Server:
    """The server that was started first, and leads."""
    return installation.start("one")


@pytest.fixture
def follower(installation: Installation, leader: Server) -> Server:
    """Another, that follows."""
    return installation.start("two")


@pytest.fixture
def pool(leader: Server) -> None:
    """A pool of two GPUs, and a team that may use it."""
    add_pool(leader)

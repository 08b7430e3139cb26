"""Two servers of one database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.servers.installation import Installation, Server, add_pool, installed


@pytest.fixture
def database_url() -> str:
    """Of the test's database; a SQLite file where a module says nothing else."""
    return ""


@pytest.fixture
def installation(tmp_path: Path, database_url: str) -> Iterator[Installation]:
    """An installation without any server yet."""
    with installed(tmp_path, database_url) as made:
        yield made


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

"""Two servers for all tests of a module: none of these ends one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.servers.installation import Installation, Server, add_pool, installed


@pytest.fixture(scope="module")
def database_url() -> str:
    """Of the module's database; a SQLite file where a module says nothing else."""
    return ""


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory, database_url: str) -> Iterator[Installation]:
    """The module's installation."""
    with installed(tmp_path_factory.mktemp("two"), database_url) as made:
        yield made


@pytest.fixture(scope="module")
def leader(installation: Installation) -> Server:
    """The server that was started first, and leads; with a pool."""
    server = installation.start("one")
    add_pool(server)
    return server


@pytest.fixture(scope="module")
def follower(installation: Installation, leader: Server) -> Server:
    """Another, that follows."""
    return installation.start("two")

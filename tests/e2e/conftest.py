"""What holds for every test that looks on from outside."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import forking


@pytest.fixture(scope="module", autouse=True)
def forked_servers() -> Iterator[None]:
    """Servers that a test's own process starts are forked from one that has loaded everything."""
    with forking.forked_servers():
        yield

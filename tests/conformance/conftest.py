"""Every test here runs on every store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.store_samples import Trial, trial

STORES = ("memory", "sqlite")


@pytest.fixture(params=STORES)
def on(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Trial]:
    """A new store of each kind, in the hands of its leader."""
    trying = trial(request.param, tmp_path)
    yield trying
    trying.store.close()

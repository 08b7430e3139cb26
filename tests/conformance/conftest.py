"""Every test here runs on every store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.store_samples import Trial, trial, trial_of

STORES = ("memory", "sqlite", "postgres")


@pytest.fixture(params=STORES)
def on(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Trial]:
    """A new store of each kind, in the hands of its leader."""
    if request.param == "postgres":
        trying = trial_of(request.getfixturevalue("postgres_url"))
    else:
        trying = trial(request.param, tmp_path)
    yield trying
    trying.store.close()

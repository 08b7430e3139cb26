"""The crashes find mistakes: a store that makes one is caught, and what it did is said."""

from __future__ import annotations

import pytest

from tests.crashes.running import crashed
from tests.crashes.spoiling import SPOILS

SAID = {
    "history-apart": "is left is neither what was before the commit nor what it was to be",
    "evictions-apart": "is evicted for a request that does not exist",
    "claims-forgotten": "for which nothing is kept",
    "keys-forgotten": "sent again, it would make another request",
    "history-forgotten": "history says",
    "written-later": "red is entitled",
}


@pytest.mark.parametrize("spoil", SPOILS)
def test_a_store_that_makes_a_mistake_is_found_out(spoil: str) -> None:
    report = crashed("--store", "sqlite", "--spoil", spoil, "--step", "red is entitled")
    assert [problem for problem in report["problems"] if SAID[spoil] in problem]


def test_without_a_mistake_nothing_is_found() -> None:
    report = crashed("--store", "sqlite", "--step", "red is entitled")
    assert report["crashes"] >= 3
    assert report["problems"] == []

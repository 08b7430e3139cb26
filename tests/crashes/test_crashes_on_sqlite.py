"""S34, on SQLite: the server is killed at every commit of a day with everything in it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.crashes.running import crashed


@pytest.mark.timeout(900)
def test_a_crash_at_any_commit_loses_nothing_doubles_nothing_and_halves_nothing(
    record_property: Callable[[str, object], None],
) -> None:
    report = crashed("--store", "sqlite", "--whole-every", "20")
    record_property("figure", report["told"])
    assert report["problems"] == []
    assert report["crashes"] == 3 * report["commits"] > 450

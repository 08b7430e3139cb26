"""S34, on PostgreSQL: the server is killed at every commit of a day with everything in it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.crashes.running import crashed


@pytest.mark.timeout(900)
def test_a_crash_at_any_commit_loses_nothing_doubles_nothing_and_halves_nothing(
    record_property: Callable[[str, object], None],
) -> None:
    # Killed before a transaction begins, what is left is what the kill after the last one left: no need to look twice.
    report = crashed("--store", "postgres", "--points", "within", "after", "--whole-every", "20")
    record_property("figure", report["told"])
    assert report["problems"] == []
    assert report["crashes"] == 2 * report["commits"] > 300

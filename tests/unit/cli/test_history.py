"""S34: what changed, from what to what, in words."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from fairpool.cli.historyview import changes
from fairpool.wire.events import HistoryEntry


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ({"capacity": {"gpu": 4}}, {"capacity": {"gpu": 6}}, "capacity gpu 4 → gpu 6"),
        ({"limit": {}, "grace_s": 30}, {"limit": {"gpu": 0.5}, "grace_s": 3}, "limit none → gpu 0.5, grace 30 s → 3 s"),
        ({"min_runtime_s": 0}, {"min_runtime_s": 300}, "min-runtime 0 s → 300 s"),
        ({"max_runtime_s": None}, {"max_runtime_s": 60}, "max-runtime none → 60 s"),
        ({"profiles": ["a", "b"]}, {"profiles": None}, "profiles a, b → all"),
        ({"dedicated": False, "weight": 1}, {"dedicated": True, "weight": 1}, "dedicated no → yes"),
        ({}, {"description": "new"}, "description none → new"),
        ({"description": "old"}, {}, "description old → none"),
    ],
)
def test_a_change_names_each_field_with_its_old_and_new_value(
    before: dict[str, Any], after: dict[str, Any], told: str
) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    entry = HistoryEntry(id=1, at=at, kind="pool", object="p", what="changed", before=before, after=after)
    assert changes(entry) == told


@pytest.mark.parametrize(("what", "before", "after"), [("created", {}, {"name": "x"}), ("deleted", {"name": "x"}, {})])
def test_what_was_made_or_has_gone_is_no_change(what: str, before: dict[str, Any], after: dict[str, Any]) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    assert changes(HistoryEntry(id=1, at=at, kind="pool", object="p", what=what, before=before, after=after)) == ""

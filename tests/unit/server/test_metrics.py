"""What is counted is found under its labels, stays bounded, and goes with its workspace."""

from __future__ import annotations

import pytest

from fairpool.server import metrics as counting
from fairpool.server.metrics import Metrics

ENDED = "fairpool_requests_ended_total"
DECIDED = "fairpool_decision_duration_seconds"


def told(metrics: Metrics, name: str) -> list[str]:
    """The lines of a metric."""
    return [line for line in metrics.text({}).decode().splitlines() if line.startswith(name)]


def test_what_is_counted_again_is_added_to_its_series() -> None:
    metrics = Metrics()
    for _ in range(3):
        metrics.add(ENDED, "default", "released", by=2)
    metrics.add(ENDED, "default", "expired")
    assert told(metrics, ENDED) == [
        f'{ENDED}{{status="released",workspace="default"}} 6.0',
        f'{ENDED}{{status="expired",workspace="default"}} 1.0',
    ]


def test_series_beyond_the_bound_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "MAX_SERIES", 2)
    metrics = Metrics()
    for workspace in ("a", "b", "c", "d", "a"):
        metrics.add(ENDED, workspace, "released")
    assert told(metrics, ENDED) == [
        f'{ENDED}{{status="released",workspace="a"}} 2.0',
        f'{ENDED}{{status="released",workspace="b"}} 1.0',
        f'{ENDED}{{status="other",workspace="other"}} 2.0',
    ]


def test_a_workspace_that_is_forgotten_begins_anew_and_others_stay() -> None:
    metrics = Metrics()
    for workspace in ("gone", "kept"):
        metrics.add(ENDED, workspace, "released")
        metrics.observe(DECIDED, 0.1, workspace)
    metrics.forget("gone")
    assert [line for name in (ENDED, DECIDED) for line in told(metrics, name) if "gone" in line] == []
    metrics.add(ENDED, "gone", "released")
    assert told(metrics, ENDED) == [
        f'{ENDED}{{status="released",workspace="kept"}} 1.0',
        f'{ENDED}{{status="released",workspace="gone"}} 1.0',
    ]

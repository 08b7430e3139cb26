"""`fairpool report usage`: each request counts with the part of the period in which it held something."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from fairpool.cli.usage import Period, team_of, used
from fairpool.wire.requests import AllocationView, RequestView
from fairpool.wire.values import RequestStatus

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
PERIOD = Period(since=NOON, until=NOON + timedelta(hours=10))


def _view(start_h: float, end_h: float | None, *, waited_h: float = 0, **named: Any) -> RequestView:
    """A request that held two GPUs from so many hours after the period's beginning on."""
    granted_at = NOON + timedelta(hours=start_h)
    asked_at = granted_at - timedelta(hours=waited_h)
    given: dict[str, Any] = {
        "id": "r",
        "version": 1,
        "status": RequestStatus.RELEASED,
        "demand": {"gpu": 2, "step_run": 1},
        "subjects": ["component:local", "team:red"],
        "created_at": asked_at,
        "queued_at": asked_at,
        "ended_at": None if end_h is None else NOON + timedelta(hours=end_h),
        "allocation": AllocationView(pool="gpus", granted_at=granted_at),
    }
    return RequestView(**(given | named))


@pytest.mark.parametrize(
    ("start_h", "end_h", "gpu_hours"),
    [(1, 3, 4), (-5, 1, 2), (9, 15, 2), (-5, 15, 20), (8, None, 4), (-3, -1, None), (11, 12, None), (0, 0, None)],
)
def test_only_what_lies_in_the_period_counts(start_h: float, end_h: float | None, gpu_hours: int | None) -> None:
    found = used([_view(start_h, end_h)], PERIOD, ["team"])
    assert [group.hours("gpu") for group in found] == ([] if gpu_hours is None else [Decimal(gpu_hours)])


def test_requests_are_grouped_as_asked_and_what_has_no_profile_or_pool_is_a_group_too() -> None:
    views = [
        _view(0, 1),
        _view(0, 2, profile="small"),
        _view(0, 3, subjects=["team:blue"]),
        _view(0, 1, subjects=["user:eve"], allocation=AllocationView(granted_at=NOON)),
    ]
    told = [(tuple(group.by.values()), group.hours("gpu")) for group in used(views, PERIOD, ["team", "profile"])]
    hours = [(("blue", ""), 6), (("red", ""), 2), (("red", "small"), 4), (("user:eve", ""), 2)]
    assert told == [(by, Decimal(number)) for by, number in hours]
    assert [tuple(group.by.values()) for group in used(views, PERIOD, ["pool"])] == [("",), ("gpus",)]
    (whole,) = used(views, PERIOD, [])
    assert (whole.requests, whole.hours("gpu"), whole.hours("step_run")) == (4, Decimal(14), Decimal(7))


def test_waits_are_of_those_that_started_in_the_period_and_evictions_of_those_that_ended_in_it() -> None:
    preempted = RequestStatus.PREEMPTED
    views = [
        _view(1, 2, waited_h=1),
        _view(2, 3, waited_h=2),
        _view(-1, 1, waited_h=8, status=preempted),
        _view(9, 11, waited_h=3, status=preempted),
    ]
    (group,) = used(views, PERIOD, ["team"])
    assert group.as_data() == {
        "team": "red",
        "requests": 4,
        "hours": {"gpu": 8.0, "step_run": 4.0},
        "started": 3,
        "mean_wait_s": 7200.0,
        "evicted": 1,
    }


def test_what_never_held_anything_and_what_is_of_others_does_not_count() -> None:
    waiting = _view(0, None, allocation=None, status=RequestStatus.QUEUED)
    assert used([waiting, _view(0, 1, foreign=True)], PERIOD, ["team"]) == []


def test_fractions_of_a_gpu_and_of_an_hour_are_exact_to_a_thousandth() -> None:
    third = _view(0, None, demand={"gpu": Decimal("0.333")}, ended_at=NOON + timedelta(minutes=20))
    (group,) = used([third] * 3, PERIOD, ["team"])
    assert group.hours("gpu") == Decimal("0.333")


@pytest.mark.parametrize(
    ("subjects", "team"),
    [
        (["user:eve", "team:b", "team:a"], "a"),
        (["component:local", "user:eve"], "user:eve"),
        (["component:local"], "component:local"),
        ([], ""),
    ],
)
def test_work_of_several_teams_counts_once(subjects: list[str], team: str) -> None:
    assert team_of(_view(0, 1, subjects=subjects)) == team

"""Estimates in words: whose run times they rest on is told of one's own work only."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from fairpool.app.records import RequestRecord, State, Submission
from fairpool.app.use_cases.requests import Explained
from fairpool.cli.estimates import dated, start
from fairpool.core.explain import Explanation
from fairpool.core.ids import SECOND, Instant, RequestId
from fairpool.core.outlook import Estimate, Ground, Unknown, Why
from fairpool.core.requests import Status
from fairpool.core.usual import Basis
from fairpool.server.estimating import estimate_view
from fairpool.testing import builders as make
from fairpool.wire.explanations import EstimateView

MINE, THEIRS = RequestId("mine"), RequestId("theirs")


def _told(estimate: Estimate | Unknown | None) -> EstimateView | None:
    explanation = Explanation(request=make.request("w", "team:t", {"gpu": 1}), status=Status.QUEUED, estimate=estimate)
    return estimate_view(
        Explained(
            explanation=explanation,
            record=None,
            mentioned={request: _record(request) for request in (MINE, THEIRS)},
            pool_names={},
            policy_subjects={},
            policy_spans={},
            nameless=frozenset({THEIRS}),
            as_of=Instant(0),
        )
    )


def _record(request: RequestId) -> RequestRecord:
    asked = make.request(request, "team:t", {"gpu": 1})
    return RequestRecord(
        request=asked, submission=Submission(created_at=Instant(0)), state=State(status=Status.ALLOCATED)
    )


def _basis(*grounds: Ground) -> str:
    at = Instant(SECOND)
    told = _told(Estimate(low=at, about=at, high=at, grounds=grounds))
    assert told is not None
    return told.basis


def test_own_steps_profiles_and_teams_are_named_and_others_are_others() -> None:
    grounds = (
        Ground(basis=Basis.STEP, name="train", finished=23, request=MINE),
        Ground(basis=Basis.STEP, name="secret", finished=7, request=THEIRS),
        Ground(basis=Basis.OWNER, name="team:secret", finished=9, request=THEIRS),
        Ground(basis=Basis.PROFILE, name="small", finished=40, request=MINE),
        Ground(basis=Basis.MAX_RUNTIME, request=THEIRS),
    )
    assert _basis(*grounds) == (
        "running work takes all the time that it asked for (max_runtime_s); "
        "work runs as long as usual: step train (23 finished), others' work, profile small (40 finished)"
    )


def test_work_that_the_caller_could_not_be_checked_for_is_others() -> None:
    ended = RequestId("ended-meanwhile")
    assert _basis(Ground(basis=Basis.STEP, name="secret", finished=7, request=ended)).endswith("others' work")


def test_no_more_kinds_of_work_are_named_than_a_person_reads() -> None:
    told = _basis(*(Ground(basis=Basis.STEP, name=f"s{at}", finished=5, request=MINE) for at in range(9)))
    assert told.endswith("step s0 (5 finished), step s1 (5 finished), step s2 (5 finished), other work")


@pytest.mark.parametrize("why", list(Why))
def test_where_nothing_can_be_said_it_says_why(why: Why) -> None:
    told = _told(Unknown(why=why, requests=(MINE, THEIRS)))
    assert told is not None
    assert (told.low, told.about, told.high) == (None, None, None)
    assert told.basis
    if why is Why.RUN_TIMES:
        assert "request mine and others' work takes" in told.basis


def test_where_it_was_not_looked_further_it_says_how_far() -> None:
    told = _told(Unknown(why=Why.TOO_FAR, later_than=Instant(3600 * SECOND)))
    assert told is not None
    assert start(told, lambda moment: f"{moment:%H:%M}") == (
        "starts later than 01:00: more has to start and end before it than is looked at"
    )


def test_an_estimate_says_of_which_moment_it_speaks() -> None:
    told = _told(Unknown(why=Why.NOTHING_ENDS))
    assert told is not None
    assert dated(told, lambda moment: f"{moment:%H:%M}").endswith(" (as of 00:00)")


def test_what_does_not_wait_has_no_estimate() -> None:
    assert _told(None) is None


def test_a_range_is_told_where_there_is_one() -> None:
    def at(minute: int) -> datetime:
        return datetime(2026, 11, 21, 9, minute, tzinfo=UTC)

    def told(low: int, high: int | None) -> str:
        found = EstimateView(low=at(low), about=at(5), high=None if high is None else at(high), basis="all goes well")
        return start(found, lambda moment: f"{moment:%H:%M}")

    assert told(5, 5) == "starts at about 09:05, if all goes well"
    assert told(2, 9) == "starts at about 09:05, most likely between 09:02 and 09:09, if all goes well"
    assert told(2, None) == "starts at about 09:05, or later (not before 09:02), if all goes well"

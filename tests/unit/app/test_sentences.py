"""S37: reasons and what would help, in sentences that read well for any number."""

from __future__ import annotations

import pytest

from fairpool.app import sentences
from fairpool.app.sentences import Names
from fairpool.core.explain import CandidateView, Explanation
from fairpool.core.ids import PolicyId, PoolId
from fairpool.core.reasons import Code, Reason
from fairpool.core.requests import Status
from fairpool.testing.builders import request

NAMES = Names({"p": "gpus"}, {"p/team:t": "team:t"})


def helped(*, missing: tuple[tuple[str, int], ...] = (), codes: tuple[Code, ...] = ()) -> list[str]:
    view = CandidateView(
        pool=PoolId("p"),
        policy=PolicyId("p/team:t"),
        position=1,
        entitled=False,
        reasons=tuple(Reason(code=code, pool=PoolId("p"), policy=PolicyId("p/team:t")) for code in codes),
        missing=missing,
        holders=(),
    )
    asked = request("r", "team:t", {"gpu": 1})
    return sentences.helps(view, Explanation(request=asked, status=Status.QUEUED), NAMES)


@pytest.mark.parametrize(
    ("thousandths", "told"),
    [
        (500, "0.5 more gpu is free in pool gpus"),
        (1000, "1 more gpu is free in pool gpus"),
        (1500, "1.5 more gpu are free in pool gpus"),
        (2000, "2 more gpu are free in pool gpus"),
    ],
)
def test_what_is_missing_is_counted_in_grammar(thousandths: int, told: str) -> None:
    assert helped(missing=(("gpu", thousandths),)) == [told]


def test_what_no_amount_would_mend_is_told_by_what_would() -> None:
    assert helped(codes=(Code.LIMIT_IN_USE, Code.FRAGMENTED)) == [
        "other work of team:t ends, or its limit is raised",
        "units that lie together are free in pool gpus, or smaller parts are asked for",
    ]


@pytest.mark.parametrize(
    ("number", "told"), [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (13, "13th"), (22, "22nd")]
)
def test_places_in_line_are_counted_as_people_do(number: int, told: str) -> None:
    assert sentences.ordinal(number) == told


def test_what_two_ways_fail_for_alike_is_said_once() -> None:
    policies = (PolicyId("p/team:t"), PolicyId("p/team:u"))
    gone = [Reason(code=Code.PROFILE_GONE, pool=PoolId("p"), policy=policy, name="half") for policy in policies]
    other = Reason(code=Code.POOL_GONE, name="cloud")
    assert sentences.reasons([*gone, other], NAMES) == "profile half is no more; pool cloud is no more"

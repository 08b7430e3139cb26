"""S15: work that no policy speaks of runs uncounted, and whoever did not mean that is told."""

from __future__ import annotations

import pytest

from fairpool.cli.running.ungoverned import options_instead

KNOWN = ["team:production", "team:research", "user:ada"]


@pytest.mark.parametrize(
    ("named", "told"),
    [
        (["team:reserch"], "did you mean --team research?"),
        (["user:adda"], "did you mean --as user:ada?"),
        (["team:ada"], "there are policies for"),
        (["team:rd"], "there are policies for"),
        (["component:local"], "there are policies for team:production, team:research, user:ada: --team or --as"),
    ],
)
def test_a_slip_in_a_name_is_noticed_and_else_those_are_named_who_have_policies(named: list[str], told: str) -> None:
    assert options_instead(named, KNOWN).startswith(told)


def test_of_many_policies_a_few_are_named() -> None:
    assert "team:t4, …:" in options_instead(["component:local"], [f"team:t{number}" for number in range(9)])

"""What a scenario looks at without being asked: a clean audit after every step, and rest at the end."""

from __future__ import annotations

import pytest

from fairpool.core import events as ev
from fairpool.core.ids import PoolId, RequestId
from fairpool.core.plan import Plan
from fairpool.sim.scenario_run import START, Broken, Run
from fairpool.sim.scenarios import read_text
from fairpool.testing import builders as make

TEXT = """\
scenario: s
pools: {p: {capacity: {gpu: 4}}}
policies:
  - {pool: p, subject: team:t}
steps:
  - submit: {id: a, subject: team:t, demand: {gpu: 3}}
  - advance: 5
  - expect: {a: allocated}
"""


def _under_way(steps: int) -> Run:
    """The scenario after its first so many steps."""
    (scenario,) = read_text(TEXT)
    run = Run(scenario)
    run.set_up()
    for step in scenario.steps[:steps]:
        run.play(step)
    return run


def test_a_sound_run_goes_to_its_end() -> None:
    run = _under_way(3)
    run.finish()
    assert run.stories["a"].status == "allocated"


def test_an_invariant_that_breaks_is_found_after_the_next_step_under_the_names_of_the_file() -> None:
    """INV-8: a running total that is not what the allocations add up to."""
    run = _under_way(1)
    run.world.books[PoolId("p")].free_now["gpu"] += 1000
    with pytest.raises(Broken, match="the audit finds nothing: INV-8: pool p: free_now"):
        run.play(run.scenario.steps[1])


def test_a_request_is_told_by_the_name_that_the_file_gives_it() -> None:
    run = _under_way(1)
    identity = run.stories["a"].id
    assert identity != "a"
    assert run.named(f"{identity} waits") == "a waits"


def test_a_world_that_is_not_at_rest_fails_at_the_end() -> None:
    """S33."""
    run = _under_way(3)
    run.world.apply(ev.Submitted(request=make.request("late", "team:t", {"gpu": 1})), run.now)
    with pytest.raises(Broken, match=r"planning again changes nothing \(S33\): it grants late"):
        run.finish()


def test_a_planner_that_would_wake_itself_for_ever_is_stopped() -> None:
    run = _under_way(1)
    run.latest = Plan(at=START, wake_at=START)
    with pytest.raises(Broken, match="the planner wants to be woken later than now"):
        run.play(run.scenario.steps[1])


def test_a_story_keeps_what_the_planner_decided() -> None:
    run = _under_way(1)
    held = run.stories["a"].allocation
    assert held is not None
    assert held == run.world.allocations[RequestId(run.stories["a"].id)]

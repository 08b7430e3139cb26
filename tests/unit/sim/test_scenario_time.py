"""The virtual clock of a scenario, and what each action does."""

from __future__ import annotations

import pytest

from fairpool.sim.scenario_run import Run
from fairpool.sim.scenarios import assert_holds, read_text

HEAD = """\
scenario: s
pools: {p: {capacity: {gpu: 4}}, q: {nodes: {n1: {gpu: 4}}}}
policies:
  - {pool: p, subject: team:t, reserved: {gpu: 4}}
  - {pool: p, subject: team:b, grace_s: 10}
  - {pool: q, subject: team:n}
steps:
"""


def _steps(*steps: str) -> str:
    return HEAD + "".join(f"  - {step}\n" for step in steps)


def _played(*steps: str) -> Run:
    (scenario,) = read_text(_steps(*steps))
    run = Run(scenario)
    run.set_up()
    for step in scenario.steps:
        run.play(step)
    return run


def test_time_begins_at_nothing_and_moves_only_as_told() -> None:
    assert _played("submit: {id: a, subject: team:b, demand: {gpu: 1}}").now == 0
    assert _played("at: 5", "advance: 0.5", "release: []").now == 5_500_000


def test_deadlines_pass_on_the_way() -> None:
    """S31: 10 s after the eviction at 3 s, although no step is there."""
    run = _played(
        "submit: {id: b, subject: team:b, demand: {gpu: 4}}",
        "{at: 3, submit: {id: t, subject: team:t, demand: {gpu: 4}}}",
        "at: 1000",
    )
    assert run.stories["b"].status == "preempted"
    held = run.stories["t"].allocation
    assert held is not None
    assert held.granted_at == 13_000_000


def test_a_wait_ends_at_its_moment_and_not_before() -> None:
    """S36."""
    assert_holds(
        _steps(
            "submit: {id: a, subject: team:t, demand: {gpu: 4}}",
            "submit: {id: w, subject: team:b, demand: {gpu: 1}, wait_timeout_s: 7}",
            "{at: 6.999999, expect: {w: queued}}",
            "{at: 7, expect: {w: {status: rejected, reasons: WAIT_TIMEOUT}}}",
        )
    )


ACTIONS = {
    "release": ("release: a", "a: released, w: allocated"),
    "cancel": ("cancel: a", "a: cancelled, w: allocated"),
    "cancel of who waits": ("cancel: w", "a: allocated, w: cancelled"),
    "set_capacity": ("set_capacity: {p: {gpu: 5}}", "a: allocated, w: allocated"),
    "set_policy": (
        "set_policy: {pool: q, subject: team:b}",
        "w: {status: allocated, pool: q, node: n1}",
    ),
    "drop_policy": (
        "drop_policy: {pool: p, subject: team:b}",
        "a: allocated, w: {status: cancelled, reasons: POLICY_GONE}",
    ),
    "drain_pool": ("drain_pool: p", "a: allocated, w: {status: queued, reasons: [POOL_FULL, POOL_DRAINING]}"),
    "drop_pool": ("drop_pool: p", "a: allocated, w: {status: rejected, reasons: POOL_GONE}"),
}


@pytest.mark.parametrize(("action", "expected"), ACTIONS.values(), ids=ACTIONS)
def test_each_action_does_what_it_says(action: str, expected: str) -> None:
    """`a` fills the pool and `w` waits behind it."""
    before = (
        "submit: {id: a, subject: team:t, demand: {gpu: 4}}",
        "submit: {id: w, subject: team:b, demand: {gpu: 1}}",
    )
    assert_holds(_steps(*before, "expect: {a: allocated, w: queued}", action, f"expect: {{{expected}}}"))


def test_a_node_goes_and_comes_back() -> None:
    """S6."""
    assert_holds(
        _steps(
            "node: {pool: q, name: n1, state: down}",
            "submit: {id: a, subject: team:n, demand: {gpu: 1}}",
            "expect: {a: {status: queued, reasons: POOL_FULL}}",
            "node: {pool: q, name: n1, state: ready}",
            "expect: {a: {status: allocated, node: n1}}",
        )
    )


def test_borrowers_are_evicted_only_when_asked_for() -> None:
    """S9: the capacity falls from 8 to 4 with 6 in use."""
    assert_holds(
        _steps(
            "set_capacity: {p: {gpu: 8}}",
            "submit: [{id: a, subject: team:b, demand: {gpu: 3}}, {id: b, subject: team:b, demand: {gpu: 3}}]",
            "set_capacity: {p: {gpu: 4}}",
            "expect: {a: allocated, b: allocated}",
            "evict_borrowers: p",
            "expect: {a: allocated, b: {status: preempting, because: capacity}}",
        )
    )


def test_what_one_step_submits_arrives_at_once() -> None:
    """The planner looks afterwards: the entitled request is served though it is written second."""
    b, t = "{id: b, subject: team:b, demand: {gpu: 4}}", "{id: t, subject: team:t, demand: {gpu: 4}}"
    assert_holds(_steps(f"submit: [{b}, {t}]", "expect: {only_allocated: t}"))
    assert_holds(_steps(f"submit: {b}", f"submit: {t}", "expect: {b: preempting}"))


def test_a_preempted_request_queues_again_at_its_old_age() -> None:
    """S24."""
    run = _played(
        "submit: {id: b, subject: team:b, demand: {gpu: 4}}",
        "{at: 3, submit: {id: t, subject: team:t, demand: {gpu: 4}}}",
        "{at: 5, release: b}",
        "{at: 6, submit: {id: b, subject: team:b, demand: {gpu: 4}}}",
    )
    assert run.stories["b"].status == "queued"
    assert run.world.request(run.stories["b"].id).queued_at == 0


def test_letting_go_after_the_deadline_does_no_harm() -> None:
    assert_holds(
        _steps(
            "submit: {id: b, subject: team:b, demand: {gpu: 4}}",
            "submit: {id: t, subject: team:t, demand: {gpu: 4}}",
            "{at: 20, release: b}",
            "expect: {b: preempted, t: allocated}",
        )
    )

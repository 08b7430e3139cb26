"""A scenario that does not hold fails: each expectation on its own, with what was expected, found, and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairpool.sim.scenarios import ScenarioFileError, assert_holds, read_text, run_files, run_scenario

STORY = """\
scenario: s
pools: {p: {nodes: {n1: {gpu: 4}, n2: {gpu: 4}}}}
policies:
  - {pool: p, subject: team:t, reserved: {gpu: 4}}
  - {pool: p, subject: team:b}
steps:
  - submit: {id: a, subject: team:b, parts: [{gpu: 4}, {gpu: 4}]}
  - submit: {id: c, subject: team:t, demand: {gpu: 2}}
  - submit: {id: w, subject: team:b, demand: {gpu: 1}}
  - submit: {id: never, subject: team:b, demand: {gpu: 5}}
"""
"""`a` holds both nodes and must let go for `c`; `w` waits behind; `never` is rejected."""

HOLDS = [
    "a: preempting",
    "a: {pool: p, policy: team:b, nodes: [n1, n2], devices: 8, for: c, because: reclaim}",
    "c: {status: queued, reasons: [POOL_FULL, WAITING_FOR_EVICTION]}",
    "w: {reasons: POOL_FULL}",
    "never: {status: rejected, reasons: NO_NODE_FITS}",
    "only_allocated: []",
    "usage: {p: {gpu: 8}}",
]

FAILS = {
    "a: allocated": ("a: status", "allocated", "preempting"),
    "c: {pool: p}": ("c: pool", "p", "none"),
    "a: {policy: team:t}": ("a: policy", "team:t", "team:b"),
    "c: {policy: team:t}": ("c: policy", "team:t", "none"),
    "a: {node: n1}": ("a: node", "n1", "n1, n2"),
    "c: {node: n1}": ("c: node", "n1", "none"),
    "a: {nodes: [n1]}": ("a: nodes", "n1", "n1, n2"),
    "a: {nodes: [n1, n1]}": ("a: nodes", "n1, n1", "n1, n2"),
    "a: {devices: 4}": ("a: devices", "4", "8"),
    "c: {devices: 1}": ("c: devices", "1", "0"),
    "a: {for: w}": ("a: for", "w", "c"),
    "w: {for: c}": ("w: for", "c", "nobody"),
    "a: {because: priority}": ("a: because", "priority", "reclaim"),
    "w: {because: reclaim}": ("w: because", "reclaim", "nothing"),
    "w: {reasons: [POOL_FULL, FRAGMENTED]}": ("w: reasons", "FRAGMENTED, POOL_FULL", "POOL_FULL"),
    "c: {reasons: POOL_FULL}": ("c: reasons", "POOL_FULL", "POOL_FULL, WAITING_FOR_EVICTION"),
    "a: {reasons: POOL_FULL}": ("a: reasons", "POOL_FULL", ""),
    "only_allocated: a": ("only_allocated", "a", ""),
    "usage: {p: {gpu: 7.5}}": ("usage of gpu in p", "7.5", "8"),
    "usage: {p: {tpu: 1}}": ("usage of tpu in p", "1", "0"),
}
"""Expectations that do not hold, and (what, expected, found)."""


@pytest.mark.parametrize("expectation", HOLDS)
def test_an_expectation_that_is_true_holds(expectation: str) -> None:
    assert_holds(f"{STORY}  - expect: {{{expectation}}}\n")


@pytest.mark.parametrize(("expectation", "told"), FAILS.items())
def test_an_expectation_that_is_not_true_fails_and_says_what_is(expectation: str, told: tuple[str, str, str]) -> None:
    (scenario,) = read_text(f"{STORY}  - expect: {{{expectation}}}\n", file="f.yaml")
    (failure,) = run_scenario(scenario)
    assert (failure.what, failure.expected, failure.found) == told
    assert (failure.line, failure.step) == (11, 5)


def test_the_report_names_the_place_the_difference_and_the_cause() -> None:
    (scenario,) = read_text(f"{STORY}  - {{at: 10, expect: {{c: allocated}}}}\n", file="f.yaml")
    (failure,) = run_scenario(scenario)
    assert failure.lines() == (
        "FAILED f.yaml:11: s (step 5, at 10 s)",
        "  c: status",
        "    expected: allocated",
        "    found:    queued",
        "    c is number 1 in p, entitled",
        "      POOL_FULL in p: gpu asked 2, possible 8, free 0, used 8",
        "      WAITING_FOR_EVICTION in p: for c",
        "      a must let go for it (reclaim)",
        "    pool p: gpu 8 of 8 in use",
    )


@pytest.mark.parametrize(
    ("expectation", "line"),
    [
        ("a: released", "a had to let go for c (reclaim, 20 s left)"),
        ("a: released", "a was granted in p through p/team:b at 0 s"),
        ("never: queued", "never was rejected: NO_NODE_FITS in p: gpu asked 5, possible 4"),
        ("w: allocated", "w is number 2 in p, borrowing"),
    ],
)
def test_the_report_explains_whatever_the_request_is(expectation: str, line: str) -> None:
    (scenario,) = read_text(f"{STORY}  - {{at: 10, expect: {{{expectation}}}}}\n")
    (failure,) = run_scenario(scenario)
    assert line in failure.explanation


def test_what_is_submitted_with_a_count_is_numbered_and_can_be_counted() -> None:
    story = """\
scenario: s
pools: {p: {capacity: {gpu: 8}}}
policies: [{pool: p, subject: team:t}]
steps:
  - submit: {id: j, subject: team:t, demand: {gpu: 1}, count: 10}
"""
    assert_holds(f"{story}  - expect: {{j-01: allocated, j-08: allocated, j-09: queued, allocated: {{j: 8}}}}\n")
    (scenario,) = read_text(f"{story}  - expect: {{allocated: {{j: 9}}}}\n")
    (failure,) = run_scenario(scenario)
    assert (failure.what, failure.expected, failure.found) == ("allocated of j", "9", "8")


def test_a_story_stops_at_the_first_step_that_fails_with_all_that_fails_there() -> None:
    text = f"{STORY}  - expect: {{a: allocated, c: allocated, w: queued}}\n  - expect: {{w: allocated}}\n"
    (scenario,) = read_text(text)
    assert [failure.what for failure in run_scenario(scenario)] == ["a: status", "c: status"]


def test_a_story_that_expects_nothing_fails() -> None:
    (scenario,) = read_text(STORY)
    (failure,) = run_scenario(scenario)
    assert (failure.expected, failure.found) == ("a scenario expects something", "it has no 'expect'")


def test_assert_holds_raises_with_the_report() -> None:
    with pytest.raises(AssertionError, match=r"(?s)FAILED <text>:11: s .*expected: allocated"):
        assert_holds(f"{STORY}  - expect: {{c: allocated}}\n")


def test_what_fails_and_what_holds_is_counted(tmp_path: Path) -> None:
    """Exit status 1."""
    file = tmp_path / "f.yaml"
    file.write_text(f"{STORY}  - expect: {{c: queued}}\n---\n{STORY}  - expect: {{c: allocated}}\n", encoding="utf-8")
    outcome = run_files([file])
    assert outcome.exit_status == 1
    assert outcome.lines()[-1] == "2 scenarios: 1 hold, 1 fail"
    assert (outcome.passed, outcome.failed) == (("s",), ("s",))


def test_files_in_which_all_holds_leave_with_nothing_to_complain(tmp_path: Path) -> None:
    """Exit status 0."""
    file = tmp_path / "f.yaml"
    file.write_text(f"{STORY}  - expect: {{c: queued}}\n", encoding="utf-8")
    outcome = run_files([file])
    assert (outcome.exit_status, outcome.lines()) == (0, ("1 scenario: 1 hold, 0 fail",))


# ---- deeds that cannot be -------------------------------------------------------------------------------------------


def _fault(steps: str) -> str:
    (scenario,) = read_text(f"{STORY}{steps}  - expect: {{w: queued}}\n", file="f.yaml")
    with pytest.raises(ScenarioFileError) as refusal:
        run_scenario(scenario)
    return str(refusal.value)


DEEDS = {
    "a time before the last step": (
        "  - at: 10\n  - at: 5\n",
        "f.yaml:12: steps[5].at: lies before the time of the step before (10 s)",
    ),
    "a request that runs is submitted again": (
        "  - submit: {id: c, subject: team:t, demand: {gpu: 1}}\n",
        (
            "f.yaml:11: steps[4].submit.id: request 'c' was submitted before and is queued: only a preempted one "
            "queues again"
        ),
    ),
    "a capacity below the reservations": (
        "  - node: {pool: p, name: n1, state: down}\n  - set_policy: {pool: p, subject: team:t, reserved: {gpu: 9}}\n",
        (
            "f.yaml:12: steps[5].set_policy.reserved.gpu: reserved 9 of 'gpu' for team:t is over the capacity 8 of "
            "pool 'p'"
        ),
    ),
    "a policy that was dropped already": (
        "  - drop_policy: {pool: p, subject: team:t}\n  - drop_policy: {pool: p, subject: team:t}\n",
        "f.yaml:12: steps[5].drop_policy: no policy 'p/team:t'",
    ),
    "borrowers of a pool that was dropped": (
        "  - drop_pool: p\n  - evict_borrowers: p\n",
        "f.yaml:12: steps[5].evict_borrowers: no pool 'p'",
    ),
    "draining a pool that was dropped": (
        "  - drop_pool: p\n  - drain_pool: p\n",
        "f.yaml:12: steps[5].drain_pool: no pool 'p'",
    ),
}


@pytest.mark.parametrize(("steps", "complaint"), DEEDS.values(), ids=DEEDS)
def test_a_deed_that_contradicts_the_rules_by_then_is_a_fault_of_the_file(steps: str, complaint: str) -> None:
    assert _fault(steps) == complaint


@pytest.mark.parametrize(
    ("deed", "expected", "found"),
    [
        ("release: w", "w can be released", "it is queued"),
        ("release: never", "never can be released", "it is rejected"),
        ("cancel: never", "never can be cancelled", "it is rejected"),
    ],
)
def test_ending_what_cannot_be_ended_fails(deed: str, expected: str, found: str) -> None:
    (scenario,) = read_text(f"{STORY}  - {deed}\n  - expect: {{w: queued}}\n")
    (failure,) = run_scenario(scenario)
    assert (failure.expected, failure.found, failure.step) == (expected, found, 5)


def test_such_a_fault_is_told_with_those_of_the_other_files(tmp_path: Path) -> None:
    """Exit status 2."""
    file = tmp_path / "f.yaml"
    file.write_text(f"{STORY}  - drop_pool: p\n  - drop_pool: p\n  - expect: {{a: allocated}}\n", encoding="utf-8")
    outcome = run_files([file])
    assert outcome.exit_status == 2
    assert outcome.lines() == (
        f"WRONG {file}:12: steps[5].drop_pool: no pool 'p'",
        "0 scenarios: 0 hold, 0 fail; 1 file is wrong",
    )

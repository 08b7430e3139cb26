"""Whatever a scenario file says wrongly is named by file, line and key, with the nearest thing that there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairpool.sim.scenarios import ScenarioFileError, read_file, read_text, run_files, run_scenario

HEAD = """\
scenario: s
pools: {p: {capacity: {gpu: 8}}, nodes: {nodes: {n1: {gpu: 4}}}}
profiles: {half: {demand: {gpu: 0.5}, pools: [p]}}
policies:
  - {pool: p, subject: team:t}
steps:
  - submit: {id: a, subject: team:t, demand: {gpu: 1}}
"""
"""Sound as far as it goes; the cases below add a step on line 8."""


def _fault(text: str) -> str:
    with pytest.raises(ScenarioFileError) as refusal:
        read_text(text, file="f.yaml")
    return str(refusal.value)


def test_the_head_of_these_cases_is_sound() -> None:
    (scenario,) = read_text(HEAD + "  - expect: {a: allocated}\n")
    assert run_scenario(scenario) == ()


STEPS = {
    "an unknown key, with the nearest": (
        "- sumbit: {}",
        "steps[1].sumbit: unknown key; did you mean 'submit'?",
    ),
    "an unknown key, with all where none is near": (
        "- node: {pool: nodes, name: n1, state: down, zzz: 1}",
        "steps[1].node.zzz: unknown key; possible: name, pool, state",
    ),
    "an unknown key of a request": (
        "- submit: {id: b, subject: team:t, demand: {gpu: 1}, prority: 3}",
        "steps[1].submit.prority: unknown key; did you mean 'priority'?",
    ),
    "a key that is missing": ("- submit: {id: b, demand: {gpu: 1}}", "steps[1].submit: 'subject' is missing"),
    "a step that says nothing": (
        "- {}",
        (
            "steps[1]: says nothing; possible: at, advance, submit, release, cancel, set_capacity, set_policy, "
            "drop_policy, give_policy, set_profile, drop_profile, redirect, node, "
            "evict_borrowers, drain_pool, drop_pool, expect"
        ),
    ),
    "a step that is no mapping": ("- 5", "steps[1]: should be a mapping of keys to values"),
    "two times in one step": (
        "- {at: 5, advance: 5}",
        "steps[1].advance: a step has either 'at' or 'advance'",
    ),
    "a number beyond all sense": (
        "- submit: {id: b, subject: team:t, demand: {gpu: 1}, priority: 1e99}",
        "steps[1].submit.priority: '1e99' is no number that makes sense here",
    ),
    "a time that is no number": ("- at: soon", "steps[1].at: 'soon' is no number"),
    "a negative time": ("- advance: -1", "steps[1].advance: -1 is no number of seconds from 0 to 10000000000"),
    "no demand": (
        "- submit: {id: b, subject: team:t}",
        "steps[1].submit: 'demand' is missing; possible: demand, parts, or a profile that has one",
    ),
    "parts beside a demand": (
        "- submit: {id: b, subject: team:t, demand: {gpu: 1}, parts: [{gpu: 1}]}",
        "steps[1].submit.demand: a request has either 'parts' or 'demand'",
    ),
    "parts beside a count": (
        "- submit: {id: b, subject: team:t, node_count: 2, parts: [{gpu: 1}]}",
        "steps[1].submit.node_count: a request has either 'parts' or 'node_count'",
    ),
    "no parts": (
        "- submit: {id: b, subject: team:t, parts: []}",
        "steps[1].submit.parts: a request has one part at least",
    ),
    "too many parts": (
        "- submit: {id: b, subject: team:t, demand: {gpu: 1}, node_count: 10001}",
        "steps[1].submit.node_count: 10001 parts are too many; possible: 1 to 10000",
    ),
    "fewer nodes than one": (
        "- submit: {id: b, subject: team:t, demand: {gpu: 1}, node_count: 0}",
        "steps[1].submit.node_count: 0 is too small; possible: 1 or more",
    ),
    "a count that is no whole number": (
        "- submit: {id: b, subject: team:t, demand: {gpu: 1}, node_count: 1.5}",
        "steps[1].submit.node_count: 1.5 is no whole number",
    ),
    "a flag that is none": (
        "- submit: {id: b, subject: team:t, demand: {gpu: 1}, preemptible: maybe}",
        "steps[1].submit.preemptible: should be true or false",
    ),
    "a run time in parts of seconds": (
        "- submit: {id: b, subject: team:t, demand: {gpu: 1}, max_runtime_s: 0.5}",
        "steps[1].submit.max_runtime_s: 0.5 is no whole number of seconds",
    ),
    "a request called like an expectation": (
        "- submit: {id: usage, subject: team:t, demand: {gpu: 1}}",
        "steps[1].submit.id: a request cannot be called 'usage'",
    ),
    "no request at all": (
        "- submit: {id: b, subject: team:t, demand: {gpu: 1}, count: 0}",
        "steps[1].submit.count: 0 is too small; possible: 1 or more",
    ),
    "more requests than anybody means": (
        "- submit: {id: b, subject: team:t, demand: {gpu: 1}, count: 10001}",
        "steps[1].submit.count: 10001 requests are too many; possible: 1 to 10000",
    ),
    "a name that stands for several requests": (
        "- {submit: {id: b, subject: team:t, demand: {gpu: 1}, count: 3}, expect: {b: allocated}}",
        "steps[1].expect.b: 'b' stands for several requests: name one, as 'b-1', or count them",
    ),
    "a count of what was submitted alone": (
        "- expect: {allocated: {a: 1}}",
        "steps[1].expect.allocated.a: nothing called 'a' was submitted with 'count'",
    ),
    "a profile that is not there": (
        "- submit: {id: b, subject: team:t, profile: hlaf}",
        "steps[1].submit.profile: no profile 'hlaf' here; did you mean 'half'?",
    ),
    "the end of nobody": (
        "- release: zebra",
        "steps[1].release: no request 'zebra' here; there is a",
    ),
    "the withdrawal of nobody, in a list": (
        "- cancel: [a, aa]",
        "steps[1].cancel[1]: no request 'aa' here; did you mean 'a'?",
    ),
    "the capacity of an unknown pool": (
        "- set_capacity: {q: {gpu: 1}}",
        "steps[1].set_capacity.q: no pool 'q' here; there is nodes, p",
    ),
    "a policy on an unknown pool": (
        "- set_policy: {pool: node, subject: team:t}",
        "steps[1].set_policy.pool: no pool 'node' here; did you mean 'nodes'?",
    ),
    "dropping a policy that is not there": (
        "- drop_policy: {pool: nodes, subject: team:t}",
        "steps[1].drop_policy: team:t has no policy on pool 'nodes'",
    ),
    "an unknown node": (
        "- node: {pool: nodes, name: n2, state: down}",
        "steps[1].node.name: no node 'n2' here; there is n1",
    ),
    "an unknown state of a node": (
        "- node: {pool: nodes, name: n1, state: dwon}",
        "steps[1].node.state: 'dwon': did you mean 'down'?; possible: ready, cordoned, down, unknown",
    ),
    "borrowers of an unknown pool": (
        "- evict_borrowers: q",
        "steps[1].evict_borrowers: no pool 'q' here; there is nodes, p",
    ),
    "draining an unknown pool": ("- drain_pool: q", "steps[1].drain_pool: no pool 'q' here; there is nodes, p"),
    "dropping an unknown pool": ("- drop_pool: q", "steps[1].drop_pool: no pool 'q' here; there is nodes, p"),
    "an expectation of nobody": ("- expect: {b: queued}", "steps[1].expect.b: no request 'b' was submitted before"),
    "an expectation of nothing": ("- expect: {}", "steps[1].expect: expects nothing"),
    "an expectation without an aspect": (
        "- expect: {a: {}}",
        (
            "steps[1].expect.a: expects nothing; possible: status, pool, policy, node, nodes, devices, for, because, "
            "reasons"
        ),
    ),
    "an unknown status": (
        "- expect: {a: alocated}",
        (
            "steps[1].expect.a: 'alocated': did you mean 'allocated'?; possible: queued, allocated, preempting, "
            "released, preempted, rejected, cancelled, expired"
        ),
    ),
    "an unknown aspect": (
        "- expect: {a: {becuase: reclaim}}",
        "steps[1].expect.a.becuase: unknown key; did you mean 'because'?",
    ),
    "an unknown cause": (
        "- expect: {a: {because: revenge}}",
        "steps[1].expect.a.because: 'revenge': no such value; possible: reclaim, priority, capacity",
    ),
    "an unknown cause of an eviction": (
        "- expect: {a: {for: zebra}}",
        "steps[1].expect.a.for: no request 'zebra' here; there is a",
    ),
    "the usage of an unknown pool": (
        "- expect: {usage: {q: {gpu: 1}}}",
        "steps[1].expect.usage.q: no pool 'q' here; there is nodes, p",
    ),
    "an amount that is too precise": (
        "- expect: {usage: {p: {gpu: 0.0001}}}",
        (
            "steps[1].expect.usage.p.gpu: amount '0.0001' has more than three fractional digits; possible: a number "
            "from 0 to 1000000000000000 with at most three fractional digits"
        ),
    ),
    "a fraction above one": (
        "- submit: {id: b, subject: team:t, demand: {gpu: 1.5}}",
        (
            "steps[1].submit.demand.gpu: 1.5 GPUs in one part: a fraction lives on one device; possible: a whole "
            "number, or a fraction below one (S2)"
        ),
    ),
    "a key written twice": ("- {advance: 1, advance: 2}", "steps[1].advance: is written twice"),
}


@pytest.mark.parametrize(("step", "complaint"), STEPS.values(), ids=STEPS)
def test_a_slip_in_a_step_is_named_by_line_and_key(step: str, complaint: str) -> None:
    assert _fault(f"{HEAD}  {step}\n") == f"f.yaml:8: {complaint}"


SETUPS = {
    "no pools": (
        "scenario: s\nsteps: []\n",
        "1: 'pools' is missing; possible: pools here, rules: [FILE, …], or --rules FILE",
    ),
    "an unknown key at the top": (
        "scenario: s\npolices: []\npools: {}\nsteps: []\n",
        "2: polices: unknown key; did you mean 'policies'?",
    ),
    "a pool of nothing": (
        "scenario: s\npools: {p: {}}\nsteps: []\n",
        "2: pools.p: needs a capacity or nodes",
    ),
    "a pool that is no mapping": (
        "scenario: s\npools:\n  p: 8\nsteps: []\n",
        "3: pools.p: should be a mapping of keys to values",
    ),
    "an odd resource key": (
        'scenario: s\npools: {p: {capacity: {"g pu": 1}}}\nsteps: []\n',
        (
            "2: pools.p.capacity.g pu: resource key 'g pu' holds characters that it may not; possible: letters, digits "
            "and . _ - /; a letter or digit at both ends"
        ),
    ),
    "a negative capacity": (
        "scenario: s\npools: {p: {capacity: {gpu: -1}}}\nsteps: []\n",
        (
            "2: pools.p.capacity.gpu: amount '-1' is negative; possible: a number from 0 to 1000000000000000 with at "
            "most three fractional digits"
        ),
    ),
    "an odd name of a pool": (
        "scenario: s\npools: {-p: {capacity: {gpu: 1}}}\nsteps: []\n",
        (
            "2: pools.-p: pool name '-p' holds characters that it may not; possible: letters, digits and . _ - @ +; a "
            "letter or digit at both ends"
        ),
    ),
    "an odd name of a node": (
        "scenario: s\npools: {p: {nodes: {-n: {gpu: 1}}}}\nsteps: []\n",
        (
            "2: pools.p.nodes.-n: node name '-n' holds characters that it may not; possible: letters, digits and . _ - "
            "@ +; a letter or digit at both ends"
        ),
    ),
    "an odd name of a profile": (
        "scenario: s\npools: {p: {capacity: {gpu: 1}}}\nprofiles: {-h: {demand: {gpu: 1}, pools: p}}\nsteps: []\n",
        (
            "3: profiles.-h: profile name '-h' holds characters that it may not; possible: letters, digits and . _ - @ "
            "+; a letter or digit at both ends"
        ),
    ),
    "a policy of no weight": (
        "scenario: s\npools: {p: {capacity: {gpu: 1}}}\npolicies: [{pool: p, subject: t, weight: 0}]\nsteps: []\n",
        "3: policies[0].weight: weight must be above 0",
    ),
    "a component that is none": (
        "scenario: s\npools: {p: {capacity: {gpu: 1}, components: [team:t]}}\nsteps: []\n",
        "2: pools.p.components[0]: team:t is no component (S13b); possible: names of components",
    ),
    "reservations that contradict the pool": (
        (
            "scenario: s\npools: {p: {capacity: {gpu: 1}}}\npolicies:\n"
            "  - {pool: p, subject: team:t, reserved: {gpu: 2}}\nsteps: []\n"
        ),
        (
            "4: policies[0].reserved.gpu: reserved 2 of 'gpu' for team:t is over the capacity 1 of pool 'p'; possible: "
            "at most 1"
        ),
    ),
    "two policies for one subject": (
        (
            "scenario: s\npools: {p: {capacity: {gpu: 1}}}\npolicies:\n  - {pool: p, subject: team:t}\n"
            "  - {pool: p, subject: team:t}\nsteps: []\n"
        ),
        "5: policies[1]: team:t already has a policy on pool 'p' (S13)",
    ),
    "an unknown kind of subject": (
        "scenario: s\npools: {p: {capacity: {gpu: 1}}}\npolicies:\n  - {pool: p, subject: squad:t}\nsteps: []\n",
        "4: policies[0].subject: 'squad' is no kind of subject; possible: component, team, user, service-account",
    ),
    "a profile in a pool that is not there": (
        "scenario: s\npools: {p: {capacity: {gpu: 1}}}\nprofiles: {h: {demand: {gpu: 1}, pools: [q]}}\nsteps: []\n",
        "3: profiles.h.pools[0]: no pool 'q' here; there is p",
    ),
    "steps that are no list": (
        "scenario: s\npools: {p: {capacity: {gpu: 1}}}\nsteps: {}\n",
        "3: steps: should be a list",
    ),
    "a title that is no text": (
        "scenario: [s]\npools: {p: {capacity: {gpu: 1}}}\nsteps: []\n",
        "1: scenario: should be a text",
    ),
}


@pytest.mark.parametrize(("text", "complaint"), SETUPS.values(), ids=SETUPS)
def test_a_slip_in_the_setup_is_named_by_line_and_key(text: str, complaint: str) -> None:
    assert _fault(text) == f"f.yaml:{complaint}"


# ---- files -----------------------------------------------------------------------------------------------------------


def test_broken_yaml_is_named_by_line_and_column() -> None:
    told = _fault("scenario: s\npools: {p: [}\n")
    assert told.startswith("f.yaml:2: ")
    assert told.endswith("(column 13)")


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n---\n", "[]\n"])
def test_a_file_without_a_scenario_is_refused(text: str) -> None:
    assert _fault(text) == "f.yaml: holds no scenario"


def test_what_is_nested_without_end_is_refused() -> None:
    assert _fault("[" * 3000 + "]" * 3000) == "f.yaml: is nested too deeply"


def test_a_file_holds_documents_or_a_list_and_json_is_yaml() -> None:
    one = '{"scenario": "s", "pools": {"p": {"capacity": {"gpu": 1}}}, "steps": []}'
    assert [scenario.title for scenario in read_text(f"{one}\n---\n{one}\n")] == ["s", "s"]
    assert len(read_text(f"[{one}, {one}]")) == 2


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "missing.yaml"
    with pytest.raises(ScenarioFileError, match="cannot be read: No such file or directory"):
        read_file(missing)
    odd = tmp_path / "odd.yaml"
    odd.write_bytes(b"scenario: \xff\n")
    with pytest.raises(ScenarioFileError, match=r"is no UTF-8 text \(byte 10\)"):
        read_file(odd)


def test_a_fault_does_not_keep_other_files_from_being_played(tmp_path: Path) -> None:
    """Exit status 2 and the fault first, then what holds."""
    (tmp_path / "bad.yaml").write_text("- {}\n", encoding="utf-8")
    (tmp_path / "good.yaml").write_text(HEAD + "  - expect: {a: allocated}\n", encoding="utf-8")
    outcome = run_files([tmp_path / "bad.yaml", tmp_path / "good.yaml"])
    assert outcome.exit_status == 2
    assert outcome.lines() == (
        f"WRONG {tmp_path / 'bad.yaml'}:1: 'scenario' is missing",
        "1 scenario: 1 hold, 0 fail; 1 file is wrong",
    )

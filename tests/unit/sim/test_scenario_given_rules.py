"""Scenarios on the rules of files that are applied to servers: a repository of rules tests itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fairpool.admin import policy_test

RULES = """\
kind: policy
pool: gpus
subject: team:red
reserved: {gpu: 2}
---
kind: team
name: red
---
kind: pool
name: gpus
capacity: {gpu: 4}
---
{kind: profile, name: half, demand: {gpu: 0.5}, pools: [gpus]}
"""
STORY = """\
scenario: red gets what is reserved for it
rules: [rules/all.yaml]
steps:
  - submit: {id: a, subject: team:red, demand: {gpu: 2}, preemptible: false}
    expect: {a: {status: allocated, pool: gpus}}
  - submit: {id: b, subject: team:red, profile: half}
    expect: {b: allocated}
"""

Write = Callable[[str, str], str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(name: str, text: str) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return str(path)

    write("rules/all.yaml", RULES)
    return write


def test_a_scenario_names_the_files_of_its_rules_from_where_it_lies(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    assert policy_test.run([write("tests/story.yaml", STORY.replace("rules/", "../rules/"))]) == 0
    assert capsys.readouterr().out == "1 scenario: 1 hold, 0 fail\n"


def test_the_command_gives_every_scenario_the_rules_that_it_is_told(write: Write, tmp_path: Path) -> None:
    story = write("story.yaml", STORY.replace("rules: [rules/all.yaml]\n", ""))
    assert policy_test.run([story], [str(tmp_path / "rules")]) == 0
    assert policy_test.run([story]) == 2


def test_a_change_of_the_rules_is_noticed(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    write("rules/all.yaml", RULES.replace("reserved: {gpu: 2}", "reserved: {gpu: 1}"))
    assert policy_test.run([write("story.yaml", STORY)]) == 1
    told = capsys.readouterr().out
    assert "a: status" in told
    assert "found:    rejected" in told


def test_a_scenario_may_add_to_the_rules_and_not_contradict_them(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    more = STORY.replace("steps:", "pools: {cpus: {capacity: {mcpu: 1}}}\nsteps:")
    assert policy_test.run([write("more.yaml", more)]) == 0
    for added, told in (
        ("pools: {gpus: {capacity: {gpu: 1}}}", "pool 'gpus' is in the rules already"),
        ("profiles: {half: {demand: {gpu: 1}, pools: [gpus]}}", "profile 'half' is in the rules already"),
        ("policies: [{pool: gpus, subject: team:red}]", "team:red already has a policy on pool 'gpus'"),
        ("policies: [{pool: gpus, subject: team:blue, reserved: {gpu: 3}}]", "add up to 5"),
    ):
        assert policy_test.run([write("story.yaml", STORY.replace("steps:", f"{added}\nsteps:"))]) == 2
        assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        (RULES.replace("reserved", "reservd"), "all.yaml:4: column 1: reservd: unknown field"),
        (RULES.replace("{gpu: 2}", "{gpu: 9}"), "all.yaml:1: reserved.gpu: reserved 9 of 'gpu'"),
        (RULES.replace("team:red\nres", "tem:red\nres"), "all.yaml:3: subject: 'tem' is no kind of subject"),
        (RULES.replace("pool: gpus", "pool: gpu"), "all.yaml:1: pool: no pool 'gpu' in these files; there is gpus"),
        (RULES.replace("[gpus]", "[gpu]"), "all.yaml:13: pool: no pool 'gpu' in these files; there is gpus"),
        ("", "all.yaml"),
    ],
)
def test_what_is_wrong_in_the_rules_is_told_where_it_is_written(
    write: Write, capsys: pytest.CaptureFixture[str], rules: str, told: str
) -> None:
    write("rules/all.yaml", rules)
    story = STORY if rules else STORY.replace("all.yaml", "gone.yaml")
    assert policy_test.run([write("story.yaml", story)]) == 2
    assert told.replace("all.yaml", "all.yaml" if rules else "gone.yaml") in capsys.readouterr().err


def test_rules_that_the_command_is_told_are_read_before_any_scenario(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    assert policy_test.run([write("story.yaml", STORY)], ["nowhere.yaml"]) == 2
    assert "nowhere.yaml: column 0" not in capsys.readouterr().err


def test_a_policy_of_the_rules_may_span_pools(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    rules = RULES.replace("pool: gpus\n", "pool: gpus\nalso: [more]\n", 1).replace("{gpu: 2}", "{gpu: 6}")
    write("rules/all.yaml", rules + "---\n{kind: pool, name: more, capacity: {gpu: 4}}\n")
    story = STORY.replace("demand: {gpu: 2}, preemptible: false", "demand: {gpu: 4}").replace(
        "submit: {id: b, subject: team:red, profile: half}", "submit: {id: b, subject: team:red, demand: {gpu: 2}}"
    )
    assert policy_test.run([write("story.yaml", story + "  - expect: {b: {pool: more}}\n")]) == 0, capsys.readouterr()
    write("rules/all.yaml", rules)
    assert policy_test.run([write("story.yaml", story)]) == 2
    assert "pool: no pool 'more' in these files" in capsys.readouterr().err

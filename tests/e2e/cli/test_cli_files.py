"""`fairpool apply`, `diff` and `delete` over files, as somebody types them."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal

import pytest

from fairpool.wire.requests import RequestCreate
from tests.e2e.cli.conftest import Machine

RULES = """
kind: policy
pool: gpus
subject: team:red
priority: 5
reserved: {gpu: 2}
---
kind: pool
name: gpus
capacity: {gpu: 8}
"""


@pytest.fixture
def here(machine: Machine, served: None) -> Callable[[str, str], None]:
    def write(name: str, text: str) -> None:
        path = machine.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")

    write("rules/all.yaml", RULES)
    return write


def test_a_folder_is_applied_after_the_plan_was_shown_and_then_nothing_differs(
    machine: Machine, here: Callable[[str, str], None]
) -> None:
    assert machine("diff", "-f", "rules").code == 1
    assert machine.ok("apply", "-f", "rules", "--dry-run").splitlines() == [
        "+ pool gpus",
        "    capacity.gpu: 8",
        "+ policy gpus/team:red",
        "    pool: gpus",
        "    subject: team:red",
        "    priority: 5",
        "    reserved.gpu: 2",
        "No work that waits or runs is affected.",
        "2 to create; 0 unchanged",
    ]
    refused = machine("apply", "-f", "rules")
    assert refused.code == 2
    assert "There is no terminal to ask at: --yes says so." in refused.err
    assert machine.ok("pool", "list", "-o", "name") == ""
    machine.ok("apply", "-f", "rules", "--yes")
    assert machine.ok("apply", "-f", "rules") == "no changes; 2 unchanged\n"
    same = machine("diff", "-f", "rules")
    assert (same.code, same.out, same.err) == (0, "", "")


def test_a_difference_is_shown_as_one_and_an_error_is_none(machine: Machine, here: Callable[[str, str], None]) -> None:
    machine.ok("apply", "-f", "rules", "--yes")
    here("rules/all.yaml", RULES.replace("gpu: 2", "gpu: 4"))
    differs = machine("diff", "-f", "rules")
    assert differs.code == 1
    assert differs.out.splitlines()[:2] == ["--- server/policy/gpus/team:red", "+++ files/policy/gpus/team:red"]
    assert {"-  gpu: 2", "+  gpu: 4"} <= set(differs.out.splitlines())
    here("rules/all.yaml", RULES.replace("reserved", "reservd"))
    wrong = machine("diff", "-f", "rules")
    assert (wrong.code, wrong.out) == (2, "")
    assert wrong.err.startswith("rules/all.yaml:6:1: reservd: unknown field 'reservd': did you mean 'reserved'?")
    here("rules/all.yaml", RULES.replace("gpu: 2", "gpu: 9"))
    refused = machine("diff", "-f", "rules")
    assert refused.code == 2
    assert refused.err.startswith("rules/all.yaml:6:12: reserved.gpu: policy 'gpus/team:red': reserved 9 of 'gpu'")
    assert machine("diff", "-f", "nowhere.yaml").code == 2


def test_the_plan_is_there_for_programs(machine: Machine, here: Callable[[str, str], None]) -> None:
    plan = json.loads(machine.ok("apply", "-f", "rules", "--dry-run", "-o", "json"))
    assert [change["action"] for change in plan["changes"]] == ["create", "create"]
    assert plan["changes"][0]["after"]["capacity"] == {"gpu": 8}


def test_a_terminal_is_asked_and_declining_changes_nothing(machine: Machine, here: Callable[[str, str], None]) -> None:
    asked = machine.terminal("apply", "-f", "rules")
    asked.expect(r"Apply this\? \[y/N\]")
    asked.sendline("n")
    asked.expect("nothing was changed")
    asked.expect_exact("\r\n")
    asked.wait()
    assert asked.exitstatus == 1
    assert machine.ok("pool", "list", "-o", "name") == ""


def test_what_changes_between_the_plan_and_the_answer_is_a_conflict(
    machine: Machine, here: Callable[[str, str], None]
) -> None:
    machine.ok("apply", "-f", "rules", "--yes")
    here("rules/all.yaml", RULES.replace("gpu: 2", "gpu: 4"))
    asked = machine.terminal("apply", "-f", "rules")
    asked.expect(r"Apply this\? \[y/N\]")
    machine.ok("pool", "update", "gpus", "--placement", "spread")
    asked.sendline("y")
    asked.expect("since the plan was made: pool 'gpus' has changed; nothing was changed")
    asked.wait()
    assert asked.exitstatus == 5


def test_pruning_and_deleting_name_what_goes(machine: Machine, here: Callable[[str, str], None]) -> None:
    machine.ok("apply", "-f", "rules", "--yes")
    here("rules/all.yaml", RULES.partition("---")[2])
    assert machine.ok("apply", "-f", "rules") == "no changes; 1 unchanged\n"
    pruned = machine.ok("apply", "-f", "rules", "--prune", "--yes")
    assert pruned.splitlines()[0] == "- policy gpus/team:red"
    machine.ok("policy", "attach", "gpus", "team:blue")
    gone = machine.ok("delete", "-f", "rules", "--yes")
    assert gone.splitlines()[:3] == ["- pool gpus", "Along with that:", "  - policy gpus/team:blue"]
    assert machine.ok("delete", "-f", "rules") == "no changes; 0 unchanged\n"


def test_documents_come_through_standard_input_too(machine: Machine, here: Callable[[str, str], None]) -> None:
    done = machine("apply", "-f", "-", "--yes", stdin=RULES)
    assert done.code == 0, done.err
    assert machine.ok("policy", "list", "-o", "csv", "--columns", "pool,subject") == "POOL,SUBJECT\ngpus,team:red\n"
    wrong = machine("apply", "-f", "-", stdin="kind: pool\nname: 5\n")
    assert wrong.err.startswith("stdin:2:1: name: 5: not text")


def test_a_pool_that_becomes_too_small_for_what_is_in_use_is_warned_of(
    machine: Machine, here: Callable[[str, str], None]
) -> None:
    machine.ok("apply", "-f", "rules", "--yes")
    asked = RequestCreate(subjects=["team:red"], demand={"gpu": Decimal(5)}, pool="gpus")
    machine.client.submit(asked)
    here("rules/all.yaml", RULES.replace("gpu: 8", "gpu: 4"))
    told = "pool gpus has 4 gpu, and 5 in use: it grants no gpu until that fits; nobody is evicted for it"
    assert f"Warning: {told}." in machine.ok("apply", "-f", "rules", "--dry-run").splitlines()
    differs = machine("diff", "-f", "rules")
    assert (differs.code, differs.err) == (1, f"warning: {told}\n")
    tried = machine("pool", "update", "gpus", "--capacity", "gpu=4", "--dry-run")
    assert (tried.code, tried.err) == (0, f"warning: {told}\n")
    assert json.loads(machine.ok("pool", "update", "gpus", "--capacity", "gpu=4", "-o", "json"))["warnings"] == [told]
    assert told in machine.ok("pool", "describe", "gpus")


def test_schemas_are_written_for_editors_without_a_server(machine: Machine) -> None:
    assert json.loads(machine.ok("schema", "policy"))["title"] == "Fairpool policy"
    machine.ok("schema", "--all", "--to", "schemas")
    assert json.loads((machine.folder / "schemas" / "document.schema.json").read_text("utf-8"))["$defs"]["document"]
    wrong = machine("schema", "polcy")
    assert (wrong.code, "did you mean 'policy'?" in wrong.err) == (2, True)
    assert not machine.data.exists(), "no server was started for it"

"""The page on the scenario format knows every key that the parser knows, and its example holds."""

import re

import pytest

from fairpool.core.requests import Because, Status
from fairpool.sim import scenario_expectations, scenario_file, scenario_rules, scenario_steps
from fairpool.sim.scenario_file import read_text
from fairpool.sim.scenarios import run_scenario
from tests.tidy import tree

PAGE = tree.text(tree.ROOT / "docs" / "reference" / "scenario-format.md")
KEYS = {
    "A scenario": scenario_file.SCENARIO_FIELDS,
    "A step": scenario_file.STEP_FIELDS,
    "Pools": (*scenario_rules.POOL_FIELDS, *scenario_rules.NODE_FIELDS),
    "Policies": scenario_rules.POLICY_FIELDS,
    "Profiles": ("demand", "pools"),
    "Requests": scenario_steps.SUBMIT_FIELDS,
    "Expectations": (*scenario_expectations.EXPECT_FIELDS, *scenario_steps.RESERVED_WORDS),
}


@pytest.mark.parametrize("heading", KEYS)
def test_each_table_has_the_keys_of_the_parser_and_no_others(heading: str) -> None:
    section = re.split(r"\n#+ ", PAGE.split(f"# {heading}\n")[1])[0]
    assert sorted(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == sorted(KEYS[heading])


def test_every_word_that_a_key_can_have_is_named() -> None:
    assert [word for word in (*Status, *Because) if f"`{word}`" not in PAGE] == []


def test_the_example_of_the_page_holds() -> None:
    example = re.search(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert example is not None
    (scenario,) = read_text(example[1])
    assert scenario.checks_something
    assert run_scenario(scenario) == ()

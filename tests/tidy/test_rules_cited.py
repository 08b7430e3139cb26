"""Every rule of the semantics is told as a story somewhere."""

import re

from tests.tidy import tree

RULE = re.compile(r"\bS\d+b?\b")
RULES = [f"S{number}" for number in range(1, 38)] + ["S13b"]
# A scenario has no database and owners that renew by themselves: these are tested where there are both.
NOT_SCENARIOS = {"S34", "S35"}


def test_every_rule_is_cited_by_a_scenario() -> None:
    stories = [path for path in tree.files() if path.is_relative_to(tree.ROOT / "tests" / "scenarios")]
    cited = {rule for path in stories if path.suffix in {".yaml", ".yml"} for rule in RULE.findall(tree.text(path))}
    tree.none_of(
        (rule for rule in RULES if rule not in cited | NOT_SCENARIOS),
        "A rule without a scenario in tests/scenarios is a rule that nobody would miss: cite it in a title or comment.",
    )


def test_the_rules_of_durability_are_cited_by_a_test() -> None:
    cited = {
        rule
        for path in tree.python_files("tests")
        if not path.is_relative_to(tree.ROOT / "tests" / "tidy")
        for rule in RULE.findall(tree.text(path))
    }
    tree.none_of(sorted(NOT_SCENARIOS - cited), "No test under tests/ cites it.")

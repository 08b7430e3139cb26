"""The page on security is kept true: the tests that it names are there, and exemptions from its rules are explained."""

import re

from tests.tidy import tree

PAGE = tree.ROOT / "docs" / "explanation" / "security.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py)`")
EXEMPTION = re.compile(r"# noqa: [^(\n]*\bS\d{3}\b[^(\n]*(\(.+\))?")


def test_each_line_of_what_is_not_trusted_names_a_test_that_is_there() -> None:
    section = tree.text(PAGE).split("## What is not trusted")[1].split("\n## ")[0]
    rows = [row for row in section.splitlines() if row.startswith("|")][2:]
    assert len(rows) > 15
    tree.none_of((row[:60] for row in rows if not NAMED.search(row)), "A promise that nothing holds is a wish.")
    tree.none_of(
        (name for name in NAMED.findall(section) if not (tree.ROOT / name).is_file()), "There is no such test."
    )


def test_every_exemption_from_a_rule_of_safety_says_why() -> None:
    tree.none_of(
        (
            f"{tree.place(path, number)}: {line.strip()[:80]}"
            for path in tree.python_files("src", "docs", "examples", "benchmarks")
            for number, line in enumerate(tree.text(path).splitlines(), 1)
            if (found := EXEMPTION.search(line)) and not found[1]
        ),
        "Whoever reads it must be able to judge it: # noqa: S311 (why that is safe here).",
    )


def test_where_to_report_a_weakness_leads_to_the_page() -> None:
    assert "(docs/explanation/security.md)" in tree.text(tree.ROOT / "SECURITY.md")

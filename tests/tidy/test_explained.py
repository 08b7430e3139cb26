"""The explanation pages tell no story that is not played."""

import re

from tests.tidy import tree

PAGES = tree.ROOT / "docs" / "explanation"
STORIES = tree.ROOT / "tests" / "scenarios" / "explained.yaml"
TOLD = re.compile(r"\*\[([^\]]+)\]\*")  # *[The title of a story, without the rules that it cites]*
PLAYED = re.compile(r"^scenario: Explained - (.+?)(?: \(S[^)]*\))?$", re.MULTILINE)


def test_every_story_that_a_page_cites_is_played() -> None:
    played = set(PLAYED.findall(tree.text(STORIES)))
    told = [(page, " ".join(title.split())) for page in PAGES.glob("*.md") for title in TOLD.findall(tree.text(page))]
    assert len(told) >= 8
    tree.none_of(
        (f"{tree.place(page)}: {title}" for page, title in told if title not in played),
        "A worked example is a scenario in tests/scenarios/explained.yaml, and the page says its title.",
    )


def test_the_shown_count_of_stories_is_the_real_one() -> None:
    number = len(PLAYED.findall(tree.text(STORIES)))
    assert f"{number} scenarios: {number} hold, 0 fail" in tree.text(PAGES / "how-a-decision-is-made.md")

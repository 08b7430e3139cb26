"""What the pages promise is there: make targets, files, decisions."""

import itertools
import re
import tomllib
from pathlib import Path

from tests.tidy import tree

TARGET = re.compile(r"^([a-z][a-z-]*):", re.MULTILINE)
# `make x` in a code span, or a line of a code block that runs make.
NAMED = re.compile(r"`make ([a-z][a-z-]*)|^\s*(?:\$ )?make ([a-z][a-z-]*)(?= |$)", re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def pages() -> list[Path]:
    return [path for path in tree.files() if path.suffix == ".md"]


def test_pages_name_only_make_targets_that_exist() -> None:
    targets = set(TARGET.findall(tree.text(tree.ROOT / "Makefile")))
    tree.none_of(
        (
            f"{tree.place(page)}: make {name}"
            for page in pages()
            for match in NAMED.finditer(tree.text(page))
            if (name := match[1] or match[2]) not in targets
        ),
        f"The Makefile has {', '.join(sorted(targets))}.",
    )


def test_links_between_pages_lead_somewhere() -> None:
    tree.none_of(
        (
            f"{tree.place(page)}: {target}"
            for page in pages()
            for target in LINK.findall(_prose(tree.text(page)))
            if not re.match(r"[a-z]+:|#", target) and not (page.parent / target.split("#")[0]).exists()
        ),
        "A link to nowhere.",
    )


def test_every_page_can_be_reached_from_the_first_one() -> None:
    first = tree.ROOT / "docs" / "README.md"
    reached, ahead = {first}, [first]
    while ahead:
        page = ahead.pop()
        for target in LINK.findall(_prose(tree.text(page))):
            there = (page.parent / target.split("#")[0]).resolve()
            if there.suffix == ".md" and there.is_relative_to(first.parent) and there not in reached:
                reached.add(there)
                ahead.append(there)
    tree.none_of(
        (tree.place(page) for page in pages() if page.is_relative_to(first.parent) and page not in reached),
        "Nobody finds a page that no other one leads to.",
    )


def test_links_to_a_heading_lead_to_one() -> None:
    tree.none_of(
        (
            f"{tree.place(page)}: {target}"
            for page in pages()
            for target in LINK.findall(_prose(tree.text(page)))
            if not re.match(r"[a-z]+:", target) and ".md#" in target
            if target.split("#")[1] not in _anchors(page.parent / target.split("#")[0])
        ),
        "No heading of that page has this anchor.",
    )


def _anchors(page: Path) -> set[str]:
    """The anchors that the headings of a page get."""
    headings = re.findall(r"^#+ (.*)$", tree.text(page), re.MULTILINE) if page.exists() else []
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_decision_is_numbered_once_and_listed() -> None:
    folder = tree.ROOT / "docs" / "decisions"
    decisions = sorted(path.name for path in folder.glob("[0-9]*.md"))
    index = tree.text(folder / "README.md")
    assert [name[:4] for name in decisions] == [f"{n:04}" for n in range(1, len(decisions) + 1)], "numbers run on"
    tree.none_of((name for name in decisions if f"({name})" not in index), "docs/decisions/README.md lists them all.")


def test_every_dependency_has_a_decision() -> None:
    decided = "\n".join(tree.text(path).lower() for path in (tree.ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    project = tomllib.loads(tree.text(tree.ROOT / "pyproject.toml"))["project"]
    required = [*project["dependencies"], *itertools.chain(*project["optional-dependencies"].values())]
    chosen = {re.split(r"[\[><=]", requirement)[0] for requirement in required} - {"fairpool"}
    tree.none_of(
        (name for name in sorted(chosen) if name.lower() not in decided),
        "A dependency is chosen on purpose: say why in docs/decisions/.",
    )


def _prose(page: str) -> str:
    """The page without its code, where brackets mean other things."""
    return re.sub(r"`[^`\n]+`", "", re.sub(r"^```.*?^```", "", page, flags=re.MULTILINE | re.DOTALL))

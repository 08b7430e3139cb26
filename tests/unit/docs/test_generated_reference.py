"""The generated parts of the reference are what the code says, and leave nothing out."""

import re
import subprocess
import sys

import click
import pytest

from fairpool.cli.main import cli
from fairpool.core.reasons import Code
from fairpool.server.problems import TABLE
from fairpool.wire.problems import Exit
from fairpool.wire.routes import QUERY, ROUTES
from tests.tidy import tree

REFERENCE = tree.ROOT / "docs" / "reference"
GENERATE = tree.ROOT / "docs" / "dev" / "generate.py"


def test_generated_parts_are_what_the_code_says() -> None:
    done = subprocess.run([sys.executable, GENERATE, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_command_is_on_the_page_with_help_for_each_option() -> None:
    page = tree.text(REFERENCE / "cli.md")
    known = list(commands(cli, click.Context(cli, info_name="fairpool")))
    assert len(known) > 40
    missing = [path for path, _ in known if f"# `{path}`\n" not in page]
    assert missing == []
    silent = [
        f"{path} {parameter.opts[0]}"
        for path, command in known
        for parameter in command.params
        if isinstance(parameter, click.Option) and not parameter.hidden and not parameter.help
    ]
    assert silent == [], "every option says what it does"
    assert [path for path, command in known if not command.help] == [], "every command says what it does"


def test_every_exit_code_is_on_the_page() -> None:
    page = tree.text(REFERENCE / "cli.md")
    assert [code for code in Exit if not re.search(rf"^\| {int(code)} \| \S", page, re.MULTILINE)] == []


@pytest.mark.parametrize("code", Code)
def test_every_reason_has_its_meaning_an_example_and_what_to_do(code: Code) -> None:
    page = tree.text(REFERENCE / "reasons.md")
    assert f"### {code}\n" in page, "run: make docs"
    section = page.split(f"### {code}\n")[1].split("\n### ")[0]
    for word in ("Means", "Example", "To do"):
        assert re.search(rf"^\*\*{word}\.\*\* \S.{{15,}}", section, re.MULTILINE), word
    assert "?" not in section, "a number that the example lacks"


def test_every_route_and_query_parameter_is_on_the_page() -> None:
    page = tree.text(REFERENCE / "http.md")
    missing = [route.template for route in ROUTES.values() if f"| `{route.method} {route.template}` |" not in page] + [
        name for name in QUERY if f"\n| `{name}` | " not in page
    ]
    assert missing == []


def test_every_problem_is_on_the_page_with_its_status() -> None:
    page = tree.text(REFERENCE / "http.md")
    assert [slug for slug, (status, _) in TABLE.items() if f"| `{slug}` | {status} | " not in page] == []


def test_every_link_inside_a_reference_page_leads_to_a_heading() -> None:
    broken = []
    for path in REFERENCE.glob("*.md"):
        text = tree.text(path)
        headings = {anchor(line) for line in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}
        broken += [f"{path.name}: #{to}" for to in re.findall(r"\]\(#([^)]+)\)", text) if to not in headings]
    assert broken == []


def anchor(heading: str) -> str:
    """The anchor that a heading gets."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def commands(group: click.Group, context: click.Context) -> list[tuple[str, click.Command]]:
    """Every command that is not hidden, by its path."""
    found: list[tuple[str, click.Command]] = []
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if command.hidden:
            continue
        inner = click.Context(command, info_name=name, parent=context)
        found.append((inner.command_path, command))
        if isinstance(command, click.Group):
            found += commands(command, inner)
    return found

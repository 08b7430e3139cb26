"""The learning pages stay true: their commands, their Python and their scenarios are tried on the program itself."""

from __future__ import annotations

import ast
import importlib
import json
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner

from fairpool.bootstrap import oidc_settings
from fairpool.bootstrap import settings as server
from fairpool.cli.main import cli
from fairpool.client import settings as client
from fairpool.wire.manifests.files import read_files

ROOT = Path(__file__).parents[3]
PAGES = [
    *(ROOT / name for name in ("README.md", "deploy/README.md")),
    *(
        path
        for name in ("tutorials", "how-to", "explanation", "reference")
        for path in sorted((ROOT / "docs" / name).glob("*.md"))
    ),
    *sorted((ROOT / "examples").rglob("README.md")),
]
SCENARIOS = [
    path for folder in ("policies", "rules/tests") for path in sorted((ROOT / "examples" / folder).glob("*.yaml"))
]
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
SHELL = {"sh", "console", ""}


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(*languages: str) -> Iterator[Block]:
    for page in PAGES:
        text = page.read_text("utf-8")
        for match in FENCE.finditer(text):
            if match[2] in languages:
                yield Block(page, text.count("\n", 0, match.start()) + 1, match[2], match[3])


def typed(block: Block) -> Iterator[str]:
    """The lines that a reader types: all of a script, and of a session those behind the `$`."""
    for line in block.text.replace("\\\n", " ").splitlines():
        if block.language == "sh":
            yield line
        elif line.startswith("$ "):
            yield line.removeprefix("$ ")


def fairpool_calls(line: str) -> Iterator[list[str]]:
    """The words behind each `fairpool` that a line of shell runs."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;()<>")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in [*lexer, ";"]:
        if word and set(word) <= set("|&;()<>"):
            while words and re.fullmatch(r"\w+=.*", words[0]):  # variables for this one command
                words = words[1:]
            if words[:1] == ["fairpool"]:
                yield words[1:]
            words = []
        else:
            words.append(word)


COMMANDS = [
    pytest.param(words, id=f"{block}-{' '.join(words[:3])}")
    for block in blocks(*SHELL)
    for line in typed(block)
    for words in fairpool_calls(line)
]


def command_of(words: list[str]) -> str:
    """The full name of the command that these words call; raises what the program would complain of."""
    command: click.Command = cli
    context = click.Context(cli, info_name="fairpool", allow_interspersed_args=False)
    while isinstance(command, click.Group):
        _, words, _ = command.make_parser(context).parse_args(list(words))
        if not words:
            return context.command_path
        name, found, words = command.resolve_command(context, words)
        assert found is not None, name
        command = found
        context = click.Context(command, info_name=name, parent=context, allow_interspersed_args=False)
    return command.make_context(context.info_name, list(words), parent=context.parent).command_path


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_line_of_the_pages_is_one_that_the_program_takes(words: list[str]) -> None:
    assert command_of(words).startswith("fairpool")


@pytest.mark.parametrize(
    "line",
    [
        "fairpool poool list",
        "fairpool pool lst",
        "FAIRPOOL_OUTPUT=json fairpool run --gpu 1 -- true",
        "ls | fairpool run",
    ],
)
def test_a_command_line_that_the_program_does_not_take_is_noticed(line: str) -> None:
    (words,) = fairpool_calls(line)
    with pytest.raises(click.UsageError):
        command_of(words)


def test_the_pages_have_commands_programs_and_scenarios_to_try() -> None:
    assert len(COMMANDS) > 20
    assert len(list(blocks("python"))) >= 2
    assert len(SCENARIOS) >= 2
    unknown = [str(block) for block in blocks("bash", "shell", "py", "yml")]
    assert not unknown, "blocks are called sh or console, python, and yaml"


@pytest.mark.parametrize("block", list(blocks("python")), ids=str)
def test_every_python_block_compiles_and_imports_only_what_exists(block: Block) -> None:
    tree = compile(block.text, str(block), "exec", ast.PyCF_ONLY_AST)
    assert isinstance(tree, ast.Module)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            module = importlib.import_module(node.module or "")
            missing = [name.name for name in node.names if not hasattr(module, name.name)]
            assert not missing, f"{node.module} has no {', '.join(missing)}"
        elif isinstance(node, ast.Import):
            for name in node.names:
                importlib.import_module(name.name)


def policy_test(*files: Path) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["policy", "test", *map(str, files)])
    return result.exit_code, result.output


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.name)
def test_every_scenario_file_of_the_examples_holds(path: Path) -> None:
    code, output = policy_test(path)
    assert code == 0 and " 0 fail" in output, output


@pytest.mark.parametrize("block", [block for block in blocks("yaml") if "scenario:" in block.text], ids=str)
def test_every_scenario_of_the_pages_holds(block: Block, tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(block.text, "utf-8")
    code, output = policy_test(path)
    assert code == 0, output


@pytest.mark.parametrize("block", list(blocks("yaml")), ids=str)
def test_every_yaml_block_is_yaml(block: Block) -> None:
    assert None not in list(yaml.safe_load_all(block.text))


@pytest.mark.parametrize("block", [block for block in blocks("yaml") if "kind:" in block.text], ids=str)
def test_every_document_of_the_pages_can_be_read(block: Block, tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(block.text, "utf-8")
    assert read_files([str(path)])


@pytest.mark.parametrize("block", list(blocks("toml")), ids=str)
def test_every_setting_of_a_toml_block_exists(block: Block) -> None:
    assert unknown_settings(tomllib.loads(block.text)) == []


def test_a_setting_that_does_not_exist_is_noticed() -> None:
    wrong = '[oidc]\nclientid = "x"\n[server]\nports = 1\n[oidc.teams]\n"a" = "b"\n'
    assert unknown_settings(tomllib.loads(f'servers = "x"\n{wrong}')) == ["servers", "oidc.clientid", "server.ports"]


def unknown_settings(said: Mapping[str, object]) -> list[str]:
    """What these settings name that no program reads."""
    tables = {"server": server.KEYS, "oidc": oidc_settings.KEYS}
    unknown = []
    for key, value in said.items():
        if isinstance(value, dict):
            unknown += [f"{key}.{name}" for name in value if name not in tables.get(key, ())]
        elif key not in client.KEYS:
            unknown.append(key)
    return unknown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_variable_that_a_page_names_is_in_the_list_of_settings(page: Path) -> None:
    listed = (ROOT / "docs" / "reference" / "settings.md").read_text("utf-8")
    named = set(re.findall(r"\bFAIRPOOL_[A-Z_]*[A-Z]\b", page.read_text("utf-8")))
    assert sorted(name for name in named if f"`{name}`" not in listed) == []


@pytest.mark.parametrize("block", list(blocks("json")), ids=str)
def test_every_json_block_is_json(block: Block) -> None:
    assert isinstance(json.loads(block.text), dict | list)


def test_the_workflow_of_the_example_runs_commands_that_the_program_takes() -> None:
    workflow = yaml.safe_load((ROOT / "examples" / "rules" / "ci.yaml").read_text("utf-8"))
    lines = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    calls = [words for line in lines for words in fairpool_calls(line)]
    assert [command_of(words) for words in calls] == ["fairpool policy test", "fairpool apply", "fairpool apply"]


@pytest.mark.parametrize("folder", ["tutorials", "how-to"])
def test_the_index_lists_every_page(folder: str) -> None:
    index = (ROOT / "docs" / folder / "README.md").read_text("utf-8")
    pages = [page.name for page in PAGES if page.parent.name == folder and page.name != "README.md"]
    assert pages and [name for name in pages if f"({name})" not in index] == []

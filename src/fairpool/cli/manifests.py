"""What the commands over files share: reading them, sending them, and saying where in a file a refusal lies."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from fairpool.client.api import Client
    from fairpool.client.errors import Problem
    from fairpool.wire.manifests.files import Written
    from fairpool.wire.manifests.plans import ApplyResult


def from_files(function: click.decorators.FC) -> click.decorators.FC:
    """``-f``."""
    return click.option(
        "-f",
        "--file",
        "files",
        multiple=True,
        required=True,
        metavar="PATH",
        help="A file, a folder with all its .yaml, .yml and .json files, or - for standard input; repeatable.",
    )(function)


def of_set(function: click.decorators.FC) -> click.decorators.FC:
    """``--set``, ``--overwrite``."""
    return _each(
        function,
        click.option("--set", "set_name", default="default", show_default=True, help="Whose these documents are."),
        click.option("--overwrite", is_flag=True, help="Change also what belongs to another set."),
    )


def planned(function: click.decorators.FC) -> click.decorators.FC:
    """``--dry-run``, ``--yes``, ``--lines``, ``-o``."""
    lines = click.IntRange(min=0)
    return _each(
        function,
        click.option("--dry-run", is_flag=True, help="Show the plan, change nothing."),
        click.option("--yes", is_flag=True, help="Do not ask."),
        click.option("--lines", type=lines, default=10, show_default=True, help="Requests named of each effect."),
        as_data,
    )


def as_data(function: click.decorators.FC) -> click.decorators.FC:
    """``-o``."""
    words = click.Choice(("table", "json", "yaml"))
    return click.option("-o", "--output", "form", type=words, default="table", help="How to print the plan (table).")(
        function
    )


def _each(function: click.decorators.FC, *options: Callable[[Any], Any]) -> click.decorators.FC:
    for option in reversed(options):
        function = option(function)
    return function


def written(files: Sequence[str]) -> list[Written]:
    """The documents of these files. Raises a usage error that names each mistake by file, line and column."""
    from fairpool.wire.manifests.files import read_files
    from fairpool.wire.manifests.places import MisplacedText

    try:
        found = read_files(files)
    except MisplacedText as error:
        raise Refused([f"{place}: {message}" for place, message in error.problems]) from None
    if not found:
        raise Refused([f"{', '.join(files)}: no documents"])
    return found


class Refused(click.ClickException):
    """Documents that are wrong, or that the server refuses: a line for each mistake."""

    def __init__(self, told: Sequence[str], exit_code: int = 2) -> None:
        super().__init__("\n".join(told))
        self.exit_code = exit_code  # type: ignore[misc]

    def show(self, file: Any = None) -> None:
        """Every mistake on its own line, as compilers do."""
        click.echo(self.message, err=True, file=file)


def send(client: Client, documents: Sequence[Written], *, dry_run: bool, **said: object) -> ApplyResult:
    """Plan, or with a plan's versions carry out. A refusal is told by file, line and column where it has one."""
    from fairpool.client.errors import Problem
    from fairpool.wire.manifests.plans import ApplyBody

    values = [plain(document.placed.value) for document in documents]
    body = ApplyBody.model_validate({"documents": values, **said})
    try:
        return client.plan(body) if dry_run else client.apply(body)
    except Problem as error:
        told = _located(error, documents)
        if not told:
            raise
        raise Refused([*told, *([f"  {error.hint}"] if error.hint else [])], int(error.exit_code)) from None


def _located(error: Problem, documents: Sequence[Written]) -> list[str]:
    """Each problem at its place in the files; none where no document is meant."""
    told = []
    for problem in error.document.errors:
        match = re.fullmatch(r"documents\.(\d+)(?:\.(.*))?", problem.field, re.DOTALL)
        if match is None or int(match[1]) >= len(documents):
            continue
        field = match[2] or ""
        possible = f" (possible: {problem.possible})" if problem.possible else ""
        where = f"{field}: " if field else ""
        told.append(f"{documents[int(match[1])].place(field)}: {where}{problem.message}{possible}")
    return told


def plain(value: object) -> object:
    """A value as JSON carries it, exact: a decimal as a number, or as text where a number would lose digits."""
    match value:
        case dict():
            return {key: plain(inner) for key, inner in value.items()}
        case list():
            return [plain(inner) for inner in value]
        case Decimal():
            number = float(value)
            return number if Decimal(repr(number)) == value else str(value)
    return value

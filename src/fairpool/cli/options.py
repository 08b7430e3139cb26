"""Options that many commands share, and what they turn into."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fairpool.cli.render import FORMATS, Style

if TYPE_CHECKING:
    import yaml
    from pydantic import BaseModel

    from fairpool.client.api import Client

Function = TypeVar("Function", bound=Callable[..., Any])

PAIRS = re.compile(r"[^\s{}\[\]:=,]+=[^\s{}\[\]=,]+(,[^\s{}\[\]:=,]+=[^\s{}\[\]=,]+)*")
"""``gpu=8,mcpu=4000``."""

_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s?)?")


class Duration(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions of click
    """``90``, ``90s``, ``30m``, ``2h``, ``1d12h``: seconds."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Seconds."""
        match = _DURATION.fullmatch(str(value))
        if not value or match is None:
            self.fail(f"{value!r} is no duration; possible: 90, 30m, 2h, 1d12h", param, ctx)
        days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
        return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


class Moment(click.ParamType):  # type: ignore[type-arg]  # as Duration
    """``2h`` ago, or a date with or without a time, of here unless it says of where: as the API takes it."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The moment with its zone."""
        match = _DURATION.fullmatch(str(value))
        if value and match is not None and not str(value).isdigit():
            days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
            ago = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
            return (datetime.now(UTC) - ago).isoformat()
        try:
            return datetime.fromisoformat(str(value)).astimezone().isoformat()
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is no time; possible: 2h, 1d12h (ago), 2026-11-21, '2026-11-21 08:00'", param, ctx)


def past(function: click.decorators.FC) -> click.decorators.FC:
    """``--at``."""
    return click.option("--at", type=Moment(), metavar="TIME", help="As it was then: 2h ago, or '2026-11-21 08:00'.")(
        function
    )


def connected(function: Function) -> Function:
    """Give the command a `client`, of the server that flags, environment and files say."""

    @click.pass_context
    @wraps(function)
    def wrapper(ctx: click.Context, *args: Any, **kwargs: Any) -> Any:
        return function(client_of(ctx), *args, **kwargs)

    return wrapper  # type: ignore[return-value]


def flags_of(ctx: click.Context) -> dict[str, str | None]:
    """What was said before the command: which server, by which token, in which workspace."""
    said = ctx.find_root().obj or {}
    return {name: said.get(name) for name in ("server", "token", "workspace")}


def client_of(ctx: click.Context) -> Client:
    """The client of this command, made once."""
    from fairpool.client.connecting import connect

    root = ctx.find_root()
    if not isinstance(root.obj, dict):
        root.obj = {}
    if "client" not in root.obj:
        root.obj["client"] = connect(flags_of(ctx))
    client: Client = root.obj["client"]
    return client


def printed(function: Function) -> Function:
    """Give the command a `style`, from ``-o`` and its relatives."""

    @click.option(
        "-o", "--output", "form", type=click.Choice(FORMATS), help="How to print it (FAIRPOOL_OUTPUT; table)."
    )
    @click.option("--no-headers", is_flag=True, help="Leave the heading out.")
    @click.option("--columns", default="", help="Which columns, by name, separated by commas.")
    @click.option("--sort-by", default="", help="Sort the rows by a column.")
    @wraps(function)
    def wrapper(*args: Any, form: str | None, no_headers: bool, columns: str, sort_by: str, **kwargs: Any) -> Any:
        chosen = tuple(name.strip() for name in columns.split(",") if name.strip())
        style = Style(format=form or default_format(), headers=not no_headers, columns=chosen, sort_by=sort_by)
        return function(*args, style=style, **kwargs)

    return wrapper  # type: ignore[return-value]


def default_format() -> str:
    """The output format where no ``-o`` says otherwise."""
    from fairpool.client.settings import resolve

    chosen = resolve()["output"].value
    if chosen not in FORMATS:
        raise click.UsageError(f"output {chosen!r} is not possible; possible: {', '.join(FORMATS)}")
    return chosen


def dry_run(function: Function) -> Function:
    """``--dry-run``."""
    return click.option("--dry-run", is_flag=True, help="Check and show it, change nothing.")(function)


def data(text: str, *, option: str) -> dict[str, Any]:
    """What an option says, ``gpu=8,mcpu=4000`` or an object in JSON or YAML. Raises UsageError with line and column."""
    from fairpool.wire.text import MalformedText, loads

    if PAIRS.fullmatch(text):
        return _pairs(text, option)
    try:
        value = loads(text)
    except MalformedText:
        value = _yaml(text, option)
    if not isinstance(value, dict):
        raise click.UsageError(
            f"{option} is {text!r}; possible: gpu=8,mcpu=4000, or an object such as '{{\"gpu\": 8}}'"
        )
    return value


def listed(text: str, *, option: str) -> list[Any]:
    """What an option says as a list in JSON or YAML. Raises UsageError."""
    from fairpool.wire.text import MalformedText, loads

    try:
        value = loads(text)
    except MalformedText:
        value = _yaml(text, option)
    if not isinstance(value, list):
        raise click.UsageError(f"{option} is {text!r}; possible: a list, such as '[{{…}}]'")
    return value


def _pairs(text: str, option: str) -> dict[str, Any]:
    from fairpool.wire.text import MalformedText, loads

    found: dict[str, Any] = {}
    for pair in text.split(","):
        key, _, said = pair.partition("=")
        if key in found:
            raise click.UsageError(f"{option}: the key {key!r} is there twice")
        try:
            found[key] = loads(said)
        except MalformedText:
            found[key] = said
    return found


def _yaml(text: str, option: str) -> object:
    import yaml

    try:
        for node in yaml.compose_all(text, Loader=yaml.SafeLoader):
            _check_keys(node, option)
        return yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
        raise click.UsageError(f"{option} is neither JSON nor YAML: {where}{error.problem}") from None
    except yaml.YAMLError as error:
        raise click.UsageError(f"{option} is neither JSON nor YAML: {str(error).partition(chr(10))[0]}") from None
    except (ValueError, RecursionError):  # such as a date that no calendar has
        raise click.UsageError(f"{option} is neither JSON nor YAML: it holds a value that cannot be read") from None


def _check_keys(node: yaml.Node, option: str) -> None:
    """Refuse a key that a mapping has twice: YAML would take the last one and say nothing."""
    import yaml

    inner = [part for pair in node.value for part in pair] if isinstance(node, yaml.MappingNode) else []
    seen: set[str] = set()
    for key in inner[::2]:
        if isinstance(key, yaml.ScalarNode):
            if key.value in seen:
                where = f"line {key.start_mark.line + 1}, column {key.start_mark.column + 1}"
                raise click.UsageError(f"{option}: {where}: the key {key.value!r} is there twice")
            seen.add(key.value)
    for part in inner or (node.value if isinstance(node, yaml.SequenceNode) else []):
        _check_keys(part, option)


def pairs(texts: tuple[str, ...], *, option: str) -> dict[str, str]:
    """What an option that is given several times says as ``key=value``."""
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise click.UsageError(f"{option} {text!r}; possible: KEY=VALUE")
        found[key] = value
    return found


def replaced(values: tuple[str, ...], *, none: bool, option: str, no: str) -> list[str] | None:
    """A list that takes the place of the one before: what the option says, [] for `no` or for '', None for nothing
    said. Raises UsageError."""
    if values and none:
        raise click.UsageError(f"{option} and {no} say different things; possible: one of the two")
    return [value for value in values if value] if values or none else None


def body(model: type[BaseModel], **fields: Any) -> Any:
    """A body of the API from what options say; None is what was not said. Raises UsageError for wrong values."""
    from fairpool.wire.reading import InvalidBody, read

    try:
        return read(model, {name: value for name, value in fields.items() if value is not None})
    except InvalidBody as error:
        told = [
            f"{problem.field}: {problem.message}" + (f" (possible: {problem.possible})" if problem.possible else "")
            for problem in error.problems
        ]
        raise click.UsageError("; ".join(told)) from None


def confirm(question: str, *, yes: bool) -> None:
    """Ask before something is deleted. Without a terminal and without --yes it is refused; declining is not success."""
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError(f"{question} There is no terminal to ask at: --yes says so.")
    if not click.confirm(question, err=True):
        click.echo("nothing was changed", err=True)
        raise click.exceptions.Exit(1)


def nearest(word: str, known: list[str]) -> str:
    """``: did you mean 'x'?``, or nothing."""
    found = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f": did you mean {found[0]!r}?" if found else ""


def note(text: str) -> None:
    """Tell a person something that is not data."""
    click.echo(text, err=True)

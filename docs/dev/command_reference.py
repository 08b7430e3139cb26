"""The commands of the command line as Markdown."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click

from fairpool.cli.main import cli
from fairpool.wire.problems import EXIT_CODES, Exit

MEANINGS = {
    Exit.DONE: "done",
    Exit.FAILED: "failed; `db check`, `doctor` and `policy test` found something wrong; a deletion was declined",
    Exit.USAGE: "wrong usage, or a value that is not possible",
    Exit.NOT_FOUND: "there is no such thing; `server status` found no server",
    Exit.NOT_ALLOWED: "not allowed, or the token is wrong",
    Exit.CONFLICT: "the state of things does not allow it",
    Exit.REJECTED: "the request was rejected: it can never run",
    Exit.TIMED_OUT: "it waited for too long",
    Exit.UNREACHABLE: "the server cannot be reached, or cannot serve this now",
    Exit.INTERRUPTED: "interrupted with Ctrl-C",
}


def commands() -> str:
    """Every command with its arguments and options, in the order of the help."""
    root = click.Context(cli, info_name="fairpool")
    told = ["## `fairpool`", "", "Options that come before the command:", "", *_options(cli, root)]
    for context, command in walk(cli, root):
        told += ["", *_command(context, command)]
    return "\n".join(told)


def walk(group: click.Group, context: click.Context) -> Iterator[tuple[click.Context, click.Command]]:
    """Every command below `group`, groups before what is in them."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None or command.hidden:
            continue
        inner = click.Context(command, info_name=name, parent=context)
        yield inner, command
        if isinstance(command, click.Group):
            yield from walk(command, inner)


def exit_codes() -> str:
    """Every exit code, with the problems of the server that lead to it."""
    told = ["| Code | Meaning | Problems of the server |", "|---|---|---|"]
    for code in Exit:
        slugs = ", ".join(f"`{slug}`" for slug, exit_code in EXIT_CODES.items() if exit_code is code)
        told.append(f"| {int(code)} | {MEANINGS[code]} | {slugs} |")
    return "\n".join(told)


def _command(context: click.Context, command: click.Command) -> list[str]:
    depth = "##" if context.parent is not None and context.parent.parent is None else "###"
    told = [f"{depth} `{context.command_path}`", "", *_help(command)]
    if isinstance(command, click.Group):
        return told
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    return [*told, "", "```", usage, "```", "", *_options(command, context)]


def _help(command: click.Command) -> list[str]:
    paragraphs = inspect.cleandoc(command.help or "").replace("\b\n", "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs).split("\n")


def _options(command: click.Command, context: click.Context) -> list[str]:
    rows = ["| Option | Meaning | Default |", "|---|---|---|"]
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            rows.append(f"| {_spelling(parameter, context)} | {_meaning(parameter)} | {_default(parameter)} |")
    return rows if len(rows) > 2 else ["It takes no options."]


def _spelling(option: click.Option, context: click.Context) -> str:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    if option.is_flag or option.count:
        return names
    value = option.make_metavar(context).strip("[]").replace("|", "\\|")
    return f"{names} {value}"


def _meaning(option: click.Option) -> str:
    several = " May be given several times." if option.multiple and "epeatable" not in (option.help or "") else ""
    return ((option.help or "") + several).replace("|", "\\|")


def _default(option: click.Option) -> str:
    if option.required:
        return "required"
    value = option.default
    if callable(value) or option.is_flag or not isinstance(value, str | int | float) or value == "":
        return ""
    return f"`{value}`"

"""Command groups that import a command only when it is called, so that ``fairpool --help`` answers at once."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Mapping
from typing import Any

import click


class LazyGroup(click.Group):
    """A group whose commands are named with a line of help, and imported from ``fairpool.cli.commands`` on use.

    lazy: name -> (module, attribute, one line of help).
    """

    def __init__(self, *args: Any, lazy: Mapping[str, tuple[str, str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order in which they were written down: the most used first."""
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command."""
        entry = self._lazy.get(cmd_name)
        if entry is None:
            return None
        command = getattr(importlib.import_module(f"fairpool.cli.commands.{entry[0]}"), entry[1])
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_line) for name, (_, _, help_line) in self._lazy.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click, with the nearest command for one that is not known."""
        return _resolve(super().resolve_command, self.list_commands(ctx), ctx, args)


class NounGroup(click.Group):
    """A noun with its verbs; suggests the nearest verb."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of definition."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click, with the nearest command for one that is not known."""
        return _resolve(super().resolve_command, self.list_commands(ctx), ctx, args)


_Resolved = tuple[str | None, click.Command | None, list[str]]


def _resolve(
    resolve: Callable[[click.Context, list[str]], _Resolved], known: list[str], ctx: click.Context, args: list[str]
) -> _Resolved:
    try:
        return resolve(ctx, args)
    except click.UsageError as error:
        if args and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], known, n=1, cutoff=0.5) or [
                name for name in known if name.startswith(args[0])
            ]
            if near:
                raise click.UsageError(f"no command {args[0]!r}: did you mean {near[0]!r}?", ctx) from None
            raise click.UsageError(f"no command {args[0]!r}; possible: {', '.join(known)}", ctx) from None
        raise error from None

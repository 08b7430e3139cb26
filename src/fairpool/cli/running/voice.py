"""What ``fairpool run`` says to a person, on standard error."""

from __future__ import annotations

import shutil
import sys

import click


class Voice:
    """Says lines; on a terminal, the line about waiting stays one line."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self.is_live = not quiet and sys.stderr.isatty()
        self._open = False

    def tell(self, text: str) -> None:
        """A line."""
        if not self._quiet:
            self.fail(text)

    def fail(self, text: str) -> None:
        """A line about what went wrong, however quiet it is to be."""
        self.clear()
        click.echo(f"fairpool: {text}", err=True)

    def live(self, text: str) -> None:
        """A line that the next one takes the place of. On a terminal only."""
        if self.is_live:
            columns = shutil.get_terminal_size().columns
            line = f"fairpool: {text}"
            shown = line if len(line) < columns else line[: columns - 2] + "…"
            click.echo(f"\r\033[K{shown}", err=True, nl=False)
            self._open = True

    def clear(self) -> None:
        """Take the live line away."""
        if self._open:
            click.echo("\r\033[K", err=True, nl=False)
            self._open = False

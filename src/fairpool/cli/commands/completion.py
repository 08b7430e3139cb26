"""``fairpool completion``."""

from __future__ import annotations

import click

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the completion script of a shell: eval "$(fairpool completion bash)"."""
    from click.shell_completion import get_completion_class

    from fairpool.cli.main import cli

    found = get_completion_class(shell)
    assert found is not None
    script = found(cli, {}, "fairpool", "_FAIRPOOL_COMPLETE")
    click.echo(script.source_template % script.source_vars())

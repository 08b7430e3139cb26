"""``fairpool db``."""

from __future__ import annotations

import click

from fairpool.cli.lazy import NounGroup


@click.group(cls=NounGroup)
def db() -> None:
    """The database of the local server."""


@db.command("migrate")
@click.pass_context
def migrate(ctx: click.Context) -> None:
    """Bring the database to this version's schema."""
    _do(ctx, "migrate")


@db.command("check")
@click.pass_context
def check(ctx: click.Context) -> None:
    """Look whether the database is sound. Exits 1 where it is not."""
    _do(ctx, "check")


@db.command("backup")
@click.argument("to", type=click.Path())
@click.pass_context
def backup(ctx: click.Context, to: str) -> None:
    """Copy the database, also while it is in use."""
    _do(ctx, "backup", to)


def _do(ctx: click.Context, what: str, *arguments: str) -> None:
    from fairpool.cli.serverside import load

    ctx.exit(int(load("fairpool.admin.database", f"run_{what}")(*arguments)))

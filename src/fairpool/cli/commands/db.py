"""``fairpool db``."""

from __future__ import annotations

import click

from fairpool.cli.lazy import NounGroup


@click.group(cls=NounGroup)
def db() -> None:
    """The server's database (FAIRPOOL_DATABASE_URL; the local server's SQLite file otherwise)."""


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


@db.command("accept")
@click.pass_context
def accept(ctx: click.Context) -> None:
    """Go on with what is there, where the database has lost what was acknowledged.

    A server refuses to start with such a database: nothing is repaired without anybody knowing. Says what is given up.
    """
    _do(ctx, "accept")


@db.command("backup")
@click.argument("to", type=click.Path())
@click.pass_context
def backup(ctx: click.Context, to: str) -> None:
    """Copy the database to one SQLite file, also while it is in use."""
    _do(ctx, "backup", to)


@db.command("restore")
@click.argument("file", type=click.Path())
@click.pass_context
def restore(ctx: click.Context, file: str) -> None:
    """Fill the empty database from a backup; also moves from SQLite to PostgreSQL and back.

    FILE is a backup, or the SQLite file of a server, which may be in use. All of it arrives, or nothing does.
    """
    _do(ctx, "restore", file)


def _do(ctx: click.Context, what: str, *arguments: str) -> None:
    from fairpool.cli.serverside import load

    ctx.exit(int(load("fairpool.admin.database", f"run_{what}")(*arguments)))

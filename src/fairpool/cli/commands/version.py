"""``fairpool version``."""

from __future__ import annotations

import click


@click.command("version")
@click.option("--server", is_flag=True, help="The server's too.")
@click.pass_context
def version(ctx: click.Context, *, server: bool) -> None:
    """Print the version of this program."""
    from importlib import metadata

    click.echo(f"fairpool {metadata.version('fairpool')}")
    if server:
        from fairpool.cli.options import client_of

        client = client_of(ctx)
        info = client.server()
        click.echo(f"server {info.version} at {client.url}, {info.database}, API {info.api}")

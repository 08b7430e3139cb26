"""``fairpool context``."""

from __future__ import annotations

import click

from fairpool.cli.lazy import NounGroup
from fairpool.cli.options import note


@click.group(cls=NounGroup)
def context() -> None:
    """Which server is used."""


@context.command("list")
def list_() -> None:
    """Show the settings, and where each comes from."""
    from fairpool.cli.render import print_table
    from fairpool.client import connecting
    from fairpool.client.settings import resolve

    settings = connecting.with_sign_in(resolve())
    rows = [[name, "…" if name == "token" else setting.value, setting.source] for name, setting in settings.items()]
    if "server" not in {row[0] for row in rows}:
        rows.append(["server", "the local one, started on demand", "default"])
    print_table(["SETTING", "VALUE", "FROM"], rows)


@context.command("use")
@click.argument("server")
def use(server: str) -> None:
    """Use a server from now on ('local' for the local one). Written to the user's configuration file."""
    from fairpool.client.settings import use_server

    if server != "local" and not server.startswith(("http://", "https://")):
        raise click.UsageError(f"{server!r} is no address; possible: http(s)://HOST:PORT, or local")
    use_server(server if server != "local" else None)
    note(f"using {server}" if server != "local" else "using the local server")

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
    from fairpool.client.settings import resolve

    rows = [[name, "…" if name == "token" else setting.value, setting.source] for name, setting in resolve().items()]
    if "server" not in {row[0] for row in rows}:
        rows.append(["server", "the local one, started on demand", "default"])
    print_table(["SETTING", "VALUE", "FROM"], rows)


@context.command("use")
@click.argument("server")
def use(server: str) -> None:
    """Use a server from now on ('local' for the local one). Written to the user's configuration file."""
    from fairpool.client.settings import user_file

    if server != "local" and not server.startswith(("http://", "https://")):
        raise click.UsageError(f"{server!r} is no address; possible: http(s)://HOST:PORT, or local")
    path = user_file()
    lines = path.read_text("utf-8").splitlines() if path.is_file() else []
    head = [line for line in lines if not line.strip().startswith("server =")]
    said = [f'server = "{server}"'] if server != "local" else []
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([*said, *head]) + "\n", "utf-8")
    note(f"using {server}" if server != "local" else "using the local server")

"""``fairpool server``."""

from __future__ import annotations

import sys

import click

from fairpool.cli.lazy import NounGroup
from fairpool.cli.options import note


@click.group(cls=NounGroup)
def server() -> None:
    """The local server. It starts by itself when it is needed, and stops when it is idle."""


@server.command("start")
@click.option("--foreground", is_flag=True, help="Stay here and log to the terminal, until Ctrl-C.")
@click.option("--host", help="The address to listen on (127.0.0.1).")
@click.option("--port", type=int, help="The port to listen on (any free one).")
@click.option("--advertise", metavar="URL", help="Where other servers of the database find it (where it listens).")
@click.option("--token-file", metavar="FILE", help="File of the installation's token (the data folder's).")
@click.option("--allow-remote", is_flag=True, help="Listen on other than loopback addresses too.")
@click.option("--idle", "idle_s", type=int, metavar="S", help="Stop after so long without work (1800; 0: never).")
@click.option("--log-format", type=click.Choice(("text", "json")), help="How it logs (text).")
@click.option("--bootstrap", is_flag=True, help="Make a first admin where there are no users yet, and show a token.")
def start(*, foreground: bool, allow_remote: bool, bootstrap: bool, **said: str | int | None) -> None:
    """Start the local server, or find the one that runs."""
    from fairpool.wire import local_server

    arguments = []
    for name, value in said.items():
        if value is not None:
            arguments += [f"--{name.replace('_', '-')}", str(value)]
    if allow_remote:
        arguments.append("--allow-remote")
    if bootstrap:
        arguments.append("--bootstrap")
    if foreground:
        import os

        note("starting; Ctrl-C stops it")
        module = ["-m", "fairpool.admin.serve"]
        os.execv(sys.executable, [sys.executable, *module, *arguments])  # noqa: S606 (it is the server from here on)
    directory = local_server.data_dir()
    found = local_server.find(directory)
    if found is None:
        from fairpool.client.errors import NoServer

        try:
            found = local_server.start(directory, *arguments, hear_token=_show)
        except local_server.NotStarted as error:
            raise NoServer(str(error)) from None
        note(f"started at {found.url} (process {found.pid}, data in {directory})")
    else:
        note(f"runs already at {found.url} (process {found.pid}, data in {directory})")


def _show(token: str) -> None:
    click.echo(token)
    note("this is the token of user 'admin', the first admin, for 7 days; it is not shown again")


@server.command("stop")
def stop() -> None:
    """Stop the local server. What waits or runs is kept; owners have a lease's time until it is back."""
    import os
    import signal
    import time

    from fairpool.wire import local_server

    directory = local_server.data_dir()
    found = local_server.find(directory)
    if found is None:
        note("no local server is running")
        return
    os.kill(found.pid, signal.SIGTERM)
    give_up_at = time.monotonic() + 30
    while local_server.is_alive(directory):
        if time.monotonic() > give_up_at:
            raise click.ClickException(f"server {found.pid} was asked to stop and still runs after 30 s")
        time.sleep(0.02)
    note(f"stopped (process {found.pid})")


@server.command("status")
def status() -> None:
    """Say whether a local server runs, and where. Exits 3 where none does."""
    from fairpool.wire import local_server

    directory = local_server.data_dir()
    found = local_server.find(directory)
    if found is None:
        note(f"no local server is running (its data would be in {directory})")
        raise click.exceptions.Exit(3)
    click.echo(f"{found.url}  process {found.pid}  version {found.version}  since {found.started_at}")

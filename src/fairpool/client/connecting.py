"""Finding the server, or starting a local one."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from fairpool.client import credentials
from fairpool.client.api import Client
from fairpool.client.errors import NoServer
from fairpool.client.settings import Setting, resolve, token_for
from fairpool.client.transport import Address, Transport
from fairpool.wire import local_server


def connect(flags: Mapping[str, str | None] | None = None, *, start: bool = True) -> Client:
    """A client of the configured server; without one, of this user's local server, started if need be.

    start: False to raise NoServer rather than start one. Raises NoServer, WrongSetting.
    """
    settings = resolve(flags)
    server = settings.get("server")
    if server is not None:
        token = token_of(settings, server)
        return Client(Transport(server.value, token, workspace=workspace_named(settings), say=_say))
    return local(local_server.data_dir(), settings.get("token"), workspace=workspace_named(settings), start=start)


def workspace_named(settings: Mapping[str, Setting]) -> str | None:
    """The workspace that somebody names; None where nobody does, and it is the token's."""
    said = settings["workspace"]
    return None if said.source == "default" else said.value


def token_of(settings: Mapping[str, Setting], server: Setting) -> str | None:
    """The token to show that server: what flag or environment say, that of the person who signed in there, or what
    their configuration file says. Raises WrongSetting."""
    with_that = with_sign_in({**settings, "server": server})
    said = with_that.get("token")
    if said is not None and said.source == str(credentials.file()):
        return said.value
    return token_for(server, said)


def with_sign_in(settings: Mapping[str, Setting]) -> dict[str, Setting]:
    """The settings with the token of whoever signed in at their server, where flag and environment name none."""
    server, said = settings.get("server"), settings.get("token")
    if server is None or (said is not None and said.source in ("flag", "environment")):
        return dict(settings)
    workspace = credentials.workspace_meant(server.value, settings["workspace"].value)
    kept = credentials.find(server.value, workspace)
    if kept is None:
        return dict(settings)
    return {**settings, "token": Setting(value=kept.token, source=str(credentials.file()))}


def local(directory: Path, token: Setting | None = None, *, workspace: str | None = None, start: bool = True) -> Client:
    """A client of the local server of that folder. It follows the server when that comes back on another port, and
    starts one again where the last one has gone (`start`), as whoever comes first does."""

    def find() -> Address | None:
        found = local_server.find(directory)
        if found is None and start:
            found = _start(directory)
        if found is None:
            return None
        return found.url, token.value if token is not None else local_server.read_token(directory)

    address = find()
    if address is None:
        raise NoServer("no local server is running", hint="fairpool server start starts one")
    return Client(Transport(*address, workspace=workspace, find_again=find, say=_say))


def _say(text: str) -> None:
    sys.stderr.write(f"fairpool: {text}\n")


def _start(directory: Path) -> local_server.ServerFile:
    try:
        found = local_server.start(directory)
    except local_server.NotStarted as error:
        raise NoServer(str(error), hint="FAIRPOOL_SERVER names a server that runs elsewhere") from None
    sys.stderr.write(f"fairpool: started a local server at {found.url} (data in {directory})\n")
    return found

"""What `fairpool doctor` finds out about the server's side of this machine."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fairpool.bootstrap.settings import Settings, WrongSetting, config_path, load
from fairpool.wire import local_server

_LITTLE_ROOM_BYTES = 200 * 2**20
"""Below this a busy day of history may fill the disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at. help: what to do where it is not `ok`."""

    name: str
    state: Literal["ok", "warning", "failed"]
    text: str
    help: str = ""


def examine() -> list[Finding]:
    """Look at settings, data folder, server and database. Changes nothing."""
    try:
        settings = load()
    except WrongSetting as error:
        return [Finding(name="settings", state="failed", text=str(error), help=f"mend {config_path(os.environ)}")]
    looks: tuple[Callable[[Settings], Iterator[Finding]], ...] = (
        _settings,
        _folder,
        _room,
        _server,
        _database,
        _sign_in,
    )
    return [finding for look in looks for finding in look(settings)]


def _settings(settings: Settings) -> Iterator[Finding]:
    for name, source in settings.sources:
        # A database URL may hold a password.
        value = None if name == "database_url" else getattr(settings, name, None)
        yield Finding(
            name=f"setting {name}", state="ok", text=f"from {source}" if value is None else f"{value} ({source})"
        )


def _folder(settings: Settings) -> Iterator[Finding]:
    directory = settings.data_dir
    if not directory.exists():
        yield Finding(name="data folder", state="ok", text=f"{directory} (made when the server first starts)")
        return
    if not os.access(directory, os.W_OK | os.X_OK):
        yield Finding(
            name="data folder",
            state="failed",
            text=f"{directory} cannot be written",
            help=f"chown it, or name another with {local_server.DIRECTORY_ENV}",
        )
        return
    yield Finding(name="data folder", state="ok", text=str(directory))
    for name in (local_server.TOKEN_FILE, local_server.SERVER_FILE):
        yield from _private(directory / name)


def _private(path: Path) -> Iterator[Finding]:
    if path.exists() and stat.S_IMODE(path.stat().st_mode) & 0o077:
        yield Finding(
            name=path.name,
            state="warning",
            text=f"others can read {path}",
            help=f"chmod 600 {path}; delete it for a new one",
        )


def _room(settings: Settings) -> Iterator[Finding]:
    existing = next(path for path in (settings.data_dir, *settings.data_dir.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    text = f"{free / 10**9:.1f} GB free"
    little = free < _LITTLE_ROOM_BYTES
    hint = "the server refuses writes when the disk is full, and goes on when there is room" if little else ""
    yield Finding(name="disk", state="warning" if little else "ok", text=text, help=hint)


def _server(settings: Settings) -> Iterator[Finding]:
    found = local_server.find(settings.data_dir)
    if found is not None:
        log = settings.data_dir / local_server.LOG_FILE
        text = (
            f"runs at {found.url} (process {found.pid}, version {found.version}, since {found.started_at}; log {log})"
        )
        yield Finding(name="local server", state="ok", text=text)
    elif local_server.is_alive(settings.data_dir):
        text = "holds the lock but takes no calls: it is starting, or stuck"
        yield Finding(name="local server", state="warning", text=text, help="fairpool server stop")
    else:
        yield Finding(name="local server", state="ok", text="does not run (it starts when it is needed)")


def _database(settings: Settings) -> Iterator[Finding]:
    from fairpool.admin import database

    try:
        text = database.check(settings)
    except database.DatabaseTrouble as error:
        yield Finding(name="database", state="failed", text=str(error), help=error.help)
    else:
        yield Finding(name="database", state="ok", text=text)


def _sign_in(settings: Settings) -> Iterator[Finding]:
    from fairpool.bootstrap import oidc_settings

    try:
        oidc = oidc_settings.load()
    except WrongSetting as error:
        yield Finding(name="sign-in", state="failed", text=str(error), help=f"mend {config_path(os.environ)}")
        return
    if oidc is None:
        return
    from fairpool.server.oidc.errors import SignInError
    from fairpool.server.oidc.provider import Provider

    try:
        known = asyncio.run(Provider(oidc).metadata())
    except SignInError as error:
        text = f"{oidc.issuer} cannot be used: {error.message}"
        yield Finding(name="sign-in", state="failed", text=text, help="docs/how-to/sign-in.md says what to look at")
        return
    ways = "browser and device" if known.device_endpoint else "browser only: it has no device flow"
    text = f"{oidc.issuer} answers ({ways}); it has to know {oidc.redirect_uri}"
    yield Finding(name="sign-in", state="ok", text=text)

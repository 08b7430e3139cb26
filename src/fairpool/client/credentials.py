"""Tokens of people who have signed in: one file in the user's configuration folder, per server and workspace.

Readable by its owner only; a file that others can read is refused, as is one that somebody else could have written.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from fairpool.client.errors import WrongSetting
from fairpool.client.settings import DEFAULTS, user_file
from fairpool.wire import local_server

FILE: Final = "credentials.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """What lets somebody in at one server, in one workspace. expires_at: ISO 8601, "" for never."""

    token: str
    token_name: str = ""
    subject: str = ""
    expires_at: str = ""

    def __repr__(self) -> str:
        return f"Credential(token_name={self.token_name!r}, subject={self.subject!r})"


def file(environment: Mapping[str, str] | None = None) -> Path:
    """Where they are kept, whether or not the file exists: beside the user's configuration file."""
    return user_file(environment).with_name(FILE)


def find(server: str, workspace: str, environment: Mapping[str, str] | None = None) -> Credential | None:
    """What was kept for that server and workspace. Raises WrongSetting for a file that cannot be trusted or read."""
    return _entries(file(environment)).get((_address(server), workspace))


def workspace_meant(server: str, workspace: str, environment: Mapping[str, str] | None = None) -> str:
    """The workspace whose credential counts: whoever names none (the default one) means the only one that they signed
    in to. Raises WrongSetting."""
    kept = [key[1] for key in _entries(file(environment)) if key[0] == _address(server)]
    return kept[0] if workspace == DEFAULTS["workspace"] and len(kept) == 1 else workspace


def keep(server: str, workspace: str, credential: Credential, environment: Mapping[str, str] | None = None) -> None:
    """Keep it in place of what was kept for that server and workspace before. Raises WrongSetting."""
    with _changing(file(environment)) as entries:
        entries[_address(server), workspace] = credential


def forget(server: str, workspace: str, environment: Mapping[str, str] | None = None) -> bool:
    """Forget what was kept for that server and workspace; whether there was anything. Raises WrongSetting."""
    path = file(environment)
    if not path.exists():
        return False
    with _changing(path) as entries:
        return entries.pop((_address(server), workspace), None) is not None


def _address(server: str) -> str:
    """One server has one entry, however its address was typed."""
    return server.rstrip("/")


Entries = dict[tuple[str, str], Credential]


@contextmanager
def _changing(path: Path) -> Iterator[Entries]:
    """The entries, written back at the end of the block. Two programs that do this do it one after the other."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        with os.fdopen(os.open(path.with_name(f".{path.name}.lock"), flags, 0o600)) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            entries = _entries(path)
            yield entries
            _write(path, entries)
    except OSError as error:
        raise WrongSetting(f"{path} cannot be written: {error.strerror or error}") from None


def _entries(path: Path) -> Entries:
    try:
        with path.open(encoding="utf-8") as opened:
            _check_private(path, os.fstat(opened.fileno()))
            said = json.load(opened)
        return {
            (server, workspace): Credential(**{key: str(value) for key, value in fields.items()})
            for server, workspaces in said["servers"].items()
            for workspace, fields in workspaces.items()
        }
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise WrongSetting(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise WrongSetting(f"{path} is not as fairpool login writes it", hint="remove it, and sign in again") from None


def _check_private(path: Path, found: os.stat_result) -> None:
    if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise WrongSetting(f"{path} holds tokens and is open to others", hint=f"chmod 600 {path}, if it is yours")


def _write(path: Path, entries: Entries) -> None:
    servers: dict[str, dict[str, Any]] = {}
    for (server, workspace), credential in sorted(entries.items(), key=lambda entry: entry[0]):
        servers.setdefault(server, {})[workspace] = asdict(credential)
    local_server.write_private(path, json.dumps({"servers": servers}, indent=1) + "\n")

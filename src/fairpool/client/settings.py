"""Where the client's settings come from: flag, then environment, then the project's file, then the user's."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fairpool.client.errors import WrongSetting

PROJECT_FILE: Final = Path(".fairpool") / "config.toml"
KEYS: Final = ("server", "token", "workspace", "output", "user", "team", "stack", "component")
"""What a configuration file may say at its top level, and ``FAIRPOOL_`` with the key in capitals in the environment."""

_NAMES_SERVER: Final = re.compile(r"""\s*["']?server["']?\s*=""")

DEFAULTS: Final = {"workspace": "default", "output": "table"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A value with where it came from: ``flag``, ``environment``, a file's path, or ``default``."""

    value: str
    source: str


def user_file(environment: Mapping[str, str] | None = None) -> Path:
    """The user's configuration file, whether or not it exists."""
    environment = os.environ if environment is None else environment
    chosen = environment.get("FAIRPOOL_CONFIG")
    if chosen:
        return Path(chosen).expanduser()
    from platformdirs import user_config_path

    return user_config_path("fairpool", appauthor=False) / "config.toml"


def project_file(start: Path | None = None) -> Path | None:
    """The nearest ``.fairpool/config.toml`` at or above `start` (the working directory), or None."""
    here = (start or Path.cwd()).absolute()
    for folder in (here, *here.parents):
        path = folder / PROJECT_FILE
        if path.is_file():
            return path
    return None


def resolve(
    flags: Mapping[str, str | None] | None = None, environment: Mapping[str, str] | None = None
) -> dict[str, Setting]:
    """All settings that have a value. Raises WrongSetting for a file that cannot be read."""
    environment = os.environ if environment is None else environment
    found = {key: Setting(value=value, source="default") for key, value in DEFAULTS.items()}
    project = project_file()
    for path in (user_file(environment), project):
        if path is not None:
            found |= {key: Setting(value=value, source=str(path)) for key, value in _from_file(path).items()}
    if project is not None and "token" in _from_file(project):
        raise WrongSetting(
            f"{project}: token: a project's file is shared, and a token is for one person",
            hint="take it out, revoke it if anybody else has seen the file, and use: fairpool login --token",
        )
    for key in KEYS:
        value = environment.get(f"FAIRPOOL_{key.upper()}")
        if value:
            found[key] = Setting(value=value, source="environment")
    for key, flag in (flags or {}).items():
        if flag:
            found[key] = Setting(value=flag, source="flag")
    return found


def use_server(server: str | None) -> None:
    """Write into the user's file which server is used from now on; None for the local one. Raises WrongSetting."""
    path, text = user_file(), file_naming(server)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def file_naming(server: str | None) -> str:
    """The user's file with that server in place of whichever it names; None for none.

    Raises WrongSetting where it cannot be read, and where it sets up a server of this person's own under the same key.
    """
    path = user_file()
    if server is not None and isinstance(_loaded(path).get("server"), dict):
        raise WrongSetting(
            f"{path} sets up a server of your own in its table [server], so it cannot name {server} as the one to use",
            hint=f"name it in the environment: FAIRPOOL_SERVER={server}",
        )
    lines = path.read_text("utf-8").splitlines() if path.is_file() else []
    tables = next((number for number, line in enumerate(lines) if line.lstrip().startswith("[")), len(lines))
    top = [line for line in lines[:tables] if not _NAMES_SERVER.match(line)]
    said = [f'server = "{server}"'] if server is not None else []
    return "\n".join([*said, *top, *lines[tables:]]) + "\n"


def token_for(server: Setting, token: Setting | None, environment: Mapping[str, str] | None = None) -> str | None:
    """The token to show that server, where there is one.

    Raises WrongSetting for a token of the user's own file and a server that only a project's file names: that file came
    with the project, from anybody, and must not be able to ask for the token.
    """
    own = user_file(environment)
    if token is None:
        return None
    named_by_user = server.source in ("flag", "environment", str(own)) or _from_file(own).get("server") == server.value
    if token.source == str(own) and not named_by_user:
        raise WrongSetting(
            f"the server {server.value} is named by {server.source}; the token in {own} is not shown to it",
            hint=f"if you trust that server: fairpool context use {server.value}, or set FAIRPOOL_TOKEN",
        )
    return token.value


def _loaded(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise WrongSetting(f"{path}: {error}", hint="mend or remove the file") from None


def _from_file(path: Path) -> dict[str, str]:
    values = {}
    for key, value in _loaded(path).items():
        if key == "server" and isinstance(value, dict):
            continue  # the settings of a server that this person runs, not the address of one
        if key in KEYS:
            if not isinstance(value, str):
                raise WrongSetting(f"{path}: {key} is {value!r}; possible: text")
            values[key] = value
        elif not isinstance(value, dict):  # tables belong to others
            raise WrongSetting(f"{path}: unknown setting {key!r}; possible: {', '.join(KEYS)}")
    return values

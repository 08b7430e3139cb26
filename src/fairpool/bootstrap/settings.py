"""The server's settings: read once, from flags, environment and the person's configuration file, in that order."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from fairpool.wire import local_server
from fairpool.wire.reading import nearest, shown

CONFIG_ENV: Final = "FAIRPOOL_CONFIG"
VAULT_KEY_ENV: Final = "FAIRPOOL_VAULT_KEY"
DEFAULT_IDLE_S: Final = 1800.0
DEFAULT_BODY_LIMIT_BYTES: Final = 16 * 2**20
"""Room for a full bulk of requests (10,000) with labels."""

DEFAULT_RATE_PER_S: Final = 100.0
"""Many times what a busy driver needs, and a small part of what a server answers in a second."""

DEFAULT_MAX_WAITS: Final = 1000
"""Steps of one driver that wait at a time, each with a call of its own."""

DEFAULT_MAX_QUEUED: Final = 20_000
"""Two full bulks: more than anybody watches over, and far from what a server can hold."""

LOG_LEVELS: Final = ("debug", "info", "warning", "error")

LOG_FORMATS: Final = ("text", "json")

KEYS: Final = (
    "database_url",
    "host",
    "port",
    "advertise",
    "token_file",
    "idle_s",
    "body_limit_mb",
    "log_level",
    "log_format",
    "hosts",
    "allow_remote",
    "rate_per_s",
    "max_waits",
    "max_queued",
    "webhook_allow_private",
)
"""What the ``[server]`` table of the configuration file may say; ``FAIRPOOL_`` and the key in capitals says it too."""


class WrongSetting(ValueError):
    """A setting that cannot be. Its message names the setting, where it was found and what is possible."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a server process goes by.

    database_url: ``sqlite:///…`` or ``postgresql://…``; the data folder's SQLite file where it is left out.
    port: 0 for any free one. hosts: names besides the loopback ones by which the server may be called.
    advertise: the URL at which the other servers of the same database find this one; "" for where it listens.
    token_file: the file of the installation's own token, which all servers of one database must share; the data
    folder's where it is left out.
    idle_s: stop after so long without work or calls; None for never.
    allow_remote: whether it may listen on other addresses than the loopback ones.
    rate_per_s, max_waits: calls a second, and waiting calls at a time, of one token; 0 for any number.
    vault_keys: what vaults' secrets are kept with, the newest first; only the environment can say them.
    max_queued: requests that one user or service may have waiting; 0 for any number.
    webhook_allow_private: whether webhooks may call what only this machine or its network can reach.
    sources: where each setting came from, for `fairpool doctor`.
    """

    data_dir: Path
    database_url: str
    host: str = "127.0.0.1"
    port: int = 0
    advertise: str = ""
    token_file: Path | None = None
    idle_s: float | None = None
    body_limit_bytes: int = DEFAULT_BODY_LIMIT_BYTES
    log_level: str = "info"
    log_format: str = "text"
    hosts: frozenset[str] = frozenset()
    allow_remote: bool = False
    rate_per_s: float = DEFAULT_RATE_PER_S
    max_waits: int = DEFAULT_MAX_WAITS
    max_queued: int = DEFAULT_MAX_QUEUED
    webhook_allow_private: bool = False
    vault_keys: tuple[str, ...] = field(default=(), repr=False)
    sources: tuple[tuple[str, str], ...] = ()

    @property
    def shares_database(self) -> bool:
        """Whether other servers may use the same database: one was named, not left to the data folder."""
        return "database_url" in dict(self.sources)


def config_path(environment: Mapping[str, str]) -> Path:
    """Where the person's configuration file is, whether or not it exists."""
    chosen = environment.get(CONFIG_ENV)
    if chosen:
        return Path(chosen).expanduser()
    from platformdirs import user_config_path

    return user_config_path("fairpool", appauthor=False) / "config.toml"


def load(flags: Mapping[str, object] | None = None, environment: Mapping[str, str] | None = None) -> Settings:
    """The settings of this process. Raises WrongSetting."""
    environment = os.environ if environment is None else environment
    layers: list[tuple[str, Mapping[str, object]]] = [
        ("flag", {key: value for key, value in (flags or {}).items() if value is not None}),
        ("environment", _from_environment(environment)),
    ]
    path = config_path(environment)
    layers.append((str(path), _from_file(path)))
    found: dict[str, object] = {}
    sources: dict[str, str] = {}
    for name, layer in layers:
        for key, value in layer.items():
            if key not in found:
                found[key], sources[key] = value, name
    keys = tuple(key.strip() for key in environment.get(VAULT_KEY_ENV, "").split(",") if key.strip())
    return replace(_settings(found, sources), vault_keys=keys)


def _settings(found: Mapping[str, object], sources: Mapping[str, str]) -> Settings:
    where = {key: f"{key} (from {name})" for key, name in sources.items()}
    data_dir = Path(str(found.get("data_dir") or local_server.data_dir())).expanduser().absolute()
    idle, token_file = found.get("idle_s"), found.get("token_file")
    settings = Settings(
        data_dir=data_dir,
        database_url=str(found.get("database_url") or f"sqlite:///{data_dir / local_server.DATABASE_FILE}"),
        host=str(found.get("host", "127.0.0.1")),
        port=int(_number(found, where, "port", 0, low=0, high=65_535)),
        advertise=_address(found, where),
        token_file=None if not token_file else Path(str(token_file)).expanduser().absolute(),
        idle_s=None if idle in (None, "", 0, "0") else _number(found, where, "idle_s", 0, low=0.1, high=1e9),
        body_limit_bytes=int(
            _number(found, where, "body_limit_mb", DEFAULT_BODY_LIMIT_BYTES / 2**20, low=0.001, high=1024) * 2**20
        ),
        log_level=_word(found, where, "log_level", "info", LOG_LEVELS),
        log_format=_word(found, where, "log_format", "text", LOG_FORMATS),
        hosts=_names(found.get("hosts", "")),
        allow_remote=_flag(found, where, "allow_remote"),
        rate_per_s=_number(found, where, "rate_per_s", DEFAULT_RATE_PER_S, low=0, high=1e6),
        max_queued=int(_number(found, where, "max_queued", DEFAULT_MAX_QUEUED, low=0, high=1e9)),
        webhook_allow_private=_flag(found, where, "webhook_allow_private"),
        max_waits=int(_number(found, where, "max_waits", DEFAULT_MAX_WAITS, low=0, high=1e6)),
        sources=tuple(sorted(sources.items())),
    )
    if settings.host not in ("127.0.0.1", "::1", "localhost") and not settings.allow_remote:
        raise WrongSetting(
            f"host {shown(settings.host)!r} is reachable from other machines, and this server speaks plain HTTP, "
            "which others on the way can read; say --allow-remote (FAIRPOOL_ALLOW_REMOTE=1) if that is meant"
        )
    return settings


def _from_environment(environment: Mapping[str, str]) -> dict[str, object]:
    names = {f"FAIRPOOL_{key.upper()}": key for key in (*KEYS, "data_dir")}
    return {key: environment[name] for name, key in names.items() if environment.get(name)}


def _from_file(path: Path) -> Mapping[str, object]:
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise WrongSetting(f"{path} cannot be read: {error}") from None
    try:
        table = tomllib.loads(text).get("server", {})
    except tomllib.TOMLDecodeError as error:
        raise WrongSetting(f"{path} is not TOML: {error}") from None
    # `server = "https://…"` is how a client names the server that it calls; that is not for this process.
    if not isinstance(table, dict):
        return {}
    for key in table:
        if key not in KEYS:
            meant = nearest(key, KEYS)
            hint = f": did you mean {meant!r}?" if meant else ""
            raise WrongSetting(f"{path}: unknown setting {shown(key)!r} in [server]{hint} Possible: {', '.join(KEYS)}")
    return table


def _address(found: Mapping[str, object], where: Mapping[str, str]) -> str:
    """Where others find this server, as ``http://HOST:PORT``."""
    value = str(found.get("advertise", ""))
    parts = urlsplit(value)
    if value and (parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/")):
        told = where.get("advertise", "advertise")
        raise WrongSetting(f"{told}: {shown(value)!r} is no address of a server; possible: http(s)://HOST:PORT")
    return value.rstrip("/")


def _number(
    found: Mapping[str, object], where: Mapping[str, str], key: str, default: float, *, low: float, high: float
) -> float:
    value = found.get(key, default)
    try:
        number = float(str(value))
    except ValueError:
        number = -1.0
    if not low <= number <= high:
        raise WrongSetting(f"{where.get(key, key)}: {shown(value)!r} is not possible; {low:g} to {high:g} is")
    return number


def _word(found: Mapping[str, object], where: Mapping[str, str], key: str, default: str, words: tuple[str, ...]) -> str:
    value = str(found.get(key, default)).lower()
    if value not in words:
        raise WrongSetting(f"{where.get(key, key)}: {shown(value)!r} is not one of {', '.join(words)}")
    return value


def _flag(found: Mapping[str, object], where: Mapping[str, str], key: str) -> bool:
    value = str(found.get(key, "false")).lower()
    if value not in ("true", "false", "1", "0", "yes", "no"):
        raise WrongSetting(f"{where.get(key, key)}: {shown(value)!r} is neither true nor false")
    return value in ("true", "1", "yes")


def _names(value: object) -> frozenset[str]:
    names = value if isinstance(value, list) else str(value).split(",")
    return frozenset(str(name).strip().lower() for name in names if str(name).strip())

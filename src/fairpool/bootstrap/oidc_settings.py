"""The settings of sign-in: ``FAIRPOOL_OIDC_…``, then the table ``[oidc]`` of the configuration file."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeVar

from fairpool.app.authz import Role
from fairpool.app.records import DEFAULT_WORKSPACE
from fairpool.app.signin import SignInRules
from fairpool.bootstrap.settings import WrongSetting, config_path
from fairpool.core.errors import InvalidName
from fairpool.core.ids import check_name
from fairpool.server.oidc.discovery import is_safe
from fairpool.server.oidc.settings import SCOPES, TOKEN_S, OidcSettings
from fairpool.wire.reading import nearest, shown

Value = TypeVar("Value")

TABLE: Final = "oidc"
PREFIX: Final = "FAIRPOOL_OIDC_"

KEYS: Final = (
    "issuer",
    "client_id",
    "client_secret",
    "client_secret_file",
    "public_url",
    "scopes",
    "username_claim",
    "groups_claim",
    "allowed_groups",
    "teams",
    "roles",
    "default_role",
    "workspace",
    "token_hours",
)
"""What ``[oidc]`` may say; ``FAIRPOOL_OIDC_`` and the key in capitals says it too."""

_MAX_TOKEN_HOURS: Final = 24 * 30


def load(environment: Mapping[str, str] | None = None) -> OidcSettings | None:
    """The settings of this process, or None where nothing is said of sign-in. Raises WrongSetting."""
    environment = os.environ if environment is None else environment
    path = config_path(environment)
    where = str(path)
    said = _said(environment, _table(path), where)
    if "issuer" not in said:
        if said:
            raise WrongSetting(f"{_source('issuer', where)}: missing; sign-in needs the address of the provider")
        return None
    found = _Found(said, where)
    return OidcSettings(
        issuer=found.address("issuer"),
        client_id=found.text("client_id"),
        client_secret=_secret(found),
        public_url=found.address("public_url").rstrip("/"),
        scopes=_scopes(found),
        rules=_rules(found),
        workspace=found.name("workspace", DEFAULT_WORKSPACE),
        token_s=round(found.number("token_hours", TOKEN_S / 3600, low=0.01, high=_MAX_TOKEN_HOURS) * 3600),
    )


def _table(path: Path) -> object:
    try:
        return tomllib.loads(path.read_text("utf-8")).get(TABLE, {})
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise WrongSetting(f"{path} cannot be read: {error}") from None


def _said(environment: Mapping[str, str], table: object, where: str) -> dict[str, object]:
    if not isinstance(table, Mapping):
        raise WrongSetting(f"{where}: {TABLE} is {shown(table)!r}; possible: a table, [{TABLE}]")
    for key in table:
        if key not in KEYS:
            meant = nearest(key, KEYS)
            hint = f": did you mean {meant!r}?" if meant else ""
            raise WrongSetting(
                f"{where}: unknown setting {shown(key)!r} in [{TABLE}]{hint} Possible: {', '.join(KEYS)}"
            )
    names = {key: f"{PREFIX}{key.upper()}" for key in KEYS}
    told = {key: environment[name] for key, name in names.items() if environment.get(name)}
    return {**table, **told}


def _source(key: str, where: str) -> str:
    return f"{key} ([{TABLE}] in {where}, or {PREFIX}{key.upper()})"


class _Found:
    """What was said, and refusals of it that name key and place."""

    def __init__(self, said: Mapping[str, object], where: str) -> None:
        self._said = said
        self._where = where

    def refuse(self, key: str, told: str) -> WrongSetting:
        """The refusal of a setting."""
        return WrongSetting(f"{_source(key, self._where)}: {told}")

    def has(self, key: str) -> bool:
        """Whether it was said."""
        return key in self._said

    def text(self, key: str, default: str | None = None) -> str:
        """A text that is not empty."""
        value = self._said.get(key, default)
        if value is None:
            raise self.refuse(key, "missing; sign-in needs it")
        if not isinstance(value, str) or not value.strip() or not value.isprintable():
            raise self.refuse(key, f"{shown(value)!r} is not possible; a text on one line is")
        return value.strip()

    def address(self, key: str) -> str:
        """An address that secrets may be sent to."""
        url = self.text(key)
        if not is_safe(url):
            raise self.refuse(key, f"{shown(url)!r} is not possible; https://… is, and http:// on this machine itself")
        return url

    def name(self, key: str, default: str) -> str:
        """A name."""
        try:
            return check_name(self.text(key, default), what=key)
        except InvalidName as error:
            raise self.refuse(key, f"{error.message} (possible: {error.possible})") from None

    def number(self, key: str, default: float, *, low: float, high: float) -> float:
        """A number within bounds."""
        try:
            number = float(str(self._said.get(key, default)))
        except ValueError:
            number = low - 1
        if not low <= number <= high:
            raise self.refuse(key, f"{shown(self._said[key])!r} is not possible; {low:g} to {high:g} is")
        return number

    def words(self, key: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        """A list, or words that are separated by commas."""
        value = self._said.get(key, default)
        parts = value.split(",") if isinstance(value, str) else value
        if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
            raise self.refuse(key, f"{shown(value)!r} is not possible; a list of texts is")
        return tuple(part.strip() for part in parts if part.strip())

    def mapping(self, key: str, read: Callable[[str], Value]) -> Mapping[str, Value]:
        """A table of texts, or ``group=value`` pairs that are separated by commas; the values as `read` reads them."""
        value = self._said.get(key, {})
        if isinstance(value, str):
            value = dict(_pair(part) for part in value.split(",") if part.strip())
        if not isinstance(value, Mapping) or not all(
            isinstance(part, str) and part and group for group, part in value.items()
        ):
            raise self.refuse(key, f"{shown(value)!r} is not possible; a table is, [{TABLE}.{key}], or GROUP=VALUE,…")
        try:
            return MappingProxyType({group: read(part) for group, part in value.items()})
        except (InvalidName, ValueError) as error:
            raise self.refuse(key, str(error)) from None


def _pair(text: str) -> tuple[str, str]:
    group, _, value = text.rpartition("=")
    return group.strip(), value.strip()


def _secret(found: _Found) -> str:
    if found.has("client_secret") and found.has("client_secret_file"):
        raise found.refuse("client_secret_file", "there is a client_secret already; one of them is enough")
    if not found.has("client_secret_file"):
        return found.text("client_secret") if found.has("client_secret") else ""
    path = Path(found.text("client_secret_file")).expanduser()
    try:
        secret = path.read_text("utf-8").strip()
    except (OSError, ValueError) as error:
        raise found.refuse("client_secret_file", f"{path} cannot be read: {error}") from None
    if not secret:
        raise found.refuse("client_secret_file", f"{path} is empty")
    return secret


def _scopes(found: _Found) -> tuple[str, ...]:
    scopes = tuple(word for part in found.words("scopes", SCOPES) for word in part.split())
    if "openid" not in scopes:
        raise found.refuse("scopes", f"{' '.join(scopes)!r} is not possible; 'openid' has to be one of them")
    return scopes


def _rules(found: _Found) -> SignInRules:
    default = SignInRules()
    try:
        default_role = Role(found.text("default_role", default.default_role.value))
    except ValueError:
        raise found.refuse("default_role", f"possible: {_ROLES}") from None
    return SignInRules(
        username_claim=found.text("username_claim", default.username_claim),
        groups_claim=found.text("groups_claim", default.groups_claim),
        allowed_groups=frozenset(found.words("allowed_groups")),
        teams=found.mapping("teams", lambda name: check_name(name, what="team name")),
        roles=found.mapping("roles", _role),
        default_role=default_role,
    )


_ROLES: Final = ", ".join(role.value for role in Role)


def _role(text: str) -> Role:
    try:
        return Role(text)
    except ValueError:
        raise ValueError(f"{shown(text)!r} is no role; possible: {_ROLES}") from None

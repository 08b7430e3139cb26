"""The page on settings has every setting and every variable that the code knows, and no others."""

import re

import pytest

from fairpool.admin import first_token
from fairpool.app.signin import SignInRules
from fairpool.bootstrap import oidc_settings as sign_in
from fairpool.bootstrap import settings as server
from fairpool.cli.running import environment
from fairpool.client import settings as client
from fairpool.sdk import console, granting
from fairpool.server.oidc.settings import SCOPES, TOKEN_S
from fairpool.wire import local_server
from tests.tidy import tree

PAGE = tree.text(tree.ROOT / "docs" / "reference" / "settings.md")


def rows(heading: str) -> dict[str, str]:
    """The rows of a section's table by their first cell."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return {match[1]: match[0] for match in re.finditer(r"^\| `([\w.]+)`.*$", section, re.MULTILINE)}


@pytest.mark.parametrize(("heading", "keys"), [("Client", client.KEYS), ("Server", server.KEYS)])
def test_each_key_of_a_file_is_on_the_page_with_its_variable(heading: str, keys: tuple[str, ...]) -> None:
    told = rows(heading)
    assert sorted(told) == sorted(keys)
    assert [key for key in keys if f"| `FAIRPOOL_{key.upper()}` |" not in told[key]] == []


def test_each_key_of_sign_in_is_on_the_page_with_its_variable() -> None:
    told = rows("Sign-in")
    assert sorted(told) == sorted(sign_in.KEYS)
    assert [key for key in sign_in.KEYS if f"| `{sign_in.PREFIX}{key.upper()}` |" not in told[key]] == []


def test_the_defaults_of_sign_in_are_those_of_the_code() -> None:
    told, rules = rows("Sign-in"), SignInRules()
    assert f"| `{' '.join(SCOPES)}` |" in told["scopes"]
    assert f"| {TOKEN_S // 3600} |" in told["token_hours"]
    assert f"| `{rules.username_claim}` |" in told["username_claim"]
    assert f"| `{rules.groups_claim}` |" in told["groups_claim"]
    assert f"| `{rules.default_role}` |" in told["default_role"]


def test_the_defaults_of_the_client_are_those_of_the_code() -> None:
    told = rows("Client")
    assert [key for key, value in client.DEFAULTS.items() if f"| `{value}` |" not in told[key]] == []


def test_the_defaults_of_the_server_are_those_of_the_code() -> None:
    told = rows("Server")
    found = server.load(environment={"FAIRPOOL_CONFIG": "/nowhere", "FAIRPOOL_DATA_DIR": "/nowhere"})
    assert f"| `{found.host}` |" in told["host"]
    assert f"| {found.port}: any free one |" in told["port"]
    assert f"| {found.body_limit_bytes // 2**20} |" in told["body_limit_mb"]
    assert f"| `{found.log_level}` |" in told["log_level"]
    assert found.idle_s is None
    assert f"| {server.DEFAULT_IDLE_S:g} for a server that runs in the background" in told["idle_s"]
    assert all(f"`{level}`" in told["log_level"] for level in server.LOG_LEVELS)


def test_each_variable_in_the_code_is_on_the_page_and_each_on_the_page_in_the_code() -> None:
    code = "\n".join(tree.text(path) for path in (tree.ROOT / "src").rglob("*.py"))
    derived = {f"FAIRPOOL_{key.upper()}" for key in (*client.KEYS, *server.KEYS)}
    derived |= {f"{sign_in.PREFIX}{key.upper()}" for key in sign_in.KEYS}
    known = set(re.findall(r"(?<!_)\bFAIRPOOL_[A-Z][A-Z_]*[A-Z]\b", code)) | derived
    assert {environment.PID, granting.LEASE_ENV, console.ECHO_ENV, local_server.DIRECTORY_ENV} <= known
    assert set(re.findall(r"FAIRPOOL_[A-Z_]*[A-Z]", PAGE)) == known


def test_each_file_of_the_data_folder_is_on_the_page() -> None:
    names = (
        local_server.LOCK_FILE,
        local_server.SERVER_FILE,
        local_server.TOKEN_FILE,
        local_server.LOG_FILE,
        local_server.DATABASE_FILE,
        first_token.FILE,
    )
    assert [name for name in names if f"| `{name}`" not in PAGE] == []

"""Tokens of people who signed in: kept for their owner's eyes, per server and workspace, and used where they belong."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from fairpool.client import connecting, credentials
from fairpool.client.credentials import Credential
from fairpool.client.errors import WrongSetting
from fairpool.client.settings import Setting, resolve

ONE = Credential(token="fp_one", token_name="laptop", subject="user:ada", expires_at="2030-01-01T00:00:00+00:00")
TWO = Credential(token="fp_two")


@pytest.fixture
def here(tmp_path: Path) -> dict[str, str]:
    """The environment of a person who has no files yet."""
    return {"FAIRPOOL_CONFIG": str(tmp_path / "config" / "config.toml")}


def test_each_server_and_workspace_has_its_own_and_only_the_owner_reads_them(here: dict[str, str]) -> None:
    credentials.keep("https://a", "default", ONE, here)
    credentials.keep("https://a/", "research", TWO, here)
    assert credentials.find("https://a", "default", here) == ONE
    assert credentials.find("https://a", "research", here) == TWO
    assert credentials.find("https://b", "default", here) is None
    path = credentials.file(here)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_what_is_forgotten_is_gone_and_forgetting_twice_does_no_harm(here: dict[str, str]) -> None:
    assert not credentials.forget("https://a", "default", here)
    credentials.keep("https://a", "default", ONE, here)
    assert credentials.forget("https://a", "default", here)
    assert not credentials.forget("https://a", "default", here)
    assert "fp_one" not in credentials.file(here).read_text()


def test_whoever_names_no_workspace_means_the_only_one(here: dict[str, str]) -> None:
    credentials.keep("https://a", "research", ONE, here)
    assert credentials.workspace_meant("https://a", "default", here) == "research"
    credentials.keep("https://a", "vision", TWO, here)
    assert credentials.workspace_meant("https://a", "default", here) == "default"
    assert credentials.workspace_meant("https://a", "vision", here) == "vision"


def test_a_file_that_others_can_read_is_refused_with_what_to_do(here: dict[str, str]) -> None:
    credentials.keep("https://a", "default", ONE, here)
    path = credentials.file(here)
    path.chmod(0o640)
    with pytest.raises(WrongSetting, match="open to others") as caught:
        credentials.find("https://a", "default", here)
    assert caught.value.hint == f"chmod 600 {path}, if it is yours"


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"servers": 7}', '{"servers": {"a": {"b": {"c": 1}}}}', "\x00", '{"servers": {"a": 1}}']
)
def test_a_file_that_says_something_else_is_refused_and_left_alone(here: dict[str, str], text: str) -> None:
    path = credentials.file(here)
    path.parent.mkdir()
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(WrongSetting, match="not as fairpool login writes it"):
        credentials.keep("https://a", "default", ONE, here)
    assert path.read_text() == text


def test_a_credential_shows_its_token_in_no_repr() -> None:
    assert "fp_one" not in repr(ONE)


def test_a_sign_in_goes_before_the_file_and_after_flag_and_environment(
    here: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in here.items():
        monkeypatch.setenv(name, value)
    credentials.keep("https://a", "default", ONE)
    Path(here["FAIRPOOL_CONFIG"]).write_text('server = "https://a"\ntoken = "from the file"\n')

    def shown(flags: dict[str, str | None] | None = None, server: str = "https://a") -> str | None:
        return connecting.token_of(resolve(flags), Setting(value=server, source="flag"))

    assert shown() == "fp_one"
    assert shown(server="https://b") == "from the file"
    assert shown({"token": "from the flag"}) == "from the flag"
    monkeypatch.setenv("FAIRPOOL_TOKEN", "from the environment")
    assert shown() == "from the environment"


def test_a_project_that_names_another_server_gets_no_token_of_a_sign_in(
    here: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAIRPOOL_CONFIG", here["FAIRPOOL_CONFIG"])
    credentials.keep("https://a", "default", ONE)
    project = tmp_path / ".fairpool" / "config.toml"
    project.parent.mkdir()
    project.write_text('server = "https://elsewhere"\n')
    settings = resolve()
    assert connecting.token_of(settings, settings["server"]) is None


def test_a_projects_file_may_name_no_token(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    project = tmp_path / ".fairpool" / "config.toml"
    project.parent.mkdir()
    project.write_text('token = "fp_shared"\n')
    with pytest.raises(WrongSetting, match="token is for one person") as caught:
        resolve(environment={})
    assert "fp_shared" not in f"{caught.value.message}{caught.value.hint}"

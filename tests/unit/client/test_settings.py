"""A setting comes from the flag, else the environment, else the project's file, else the user's; and says which."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from fairpool.client import settings
from fairpool.client.errors import WrongSetting
from fairpool.client.settings import Setting
from fairpool.wire.problems import Exit


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Where the files of a project and of a user would be; the working folder is deep inside the project."""
    work = tmp_path / "project" / "deep" / "er"
    work.mkdir(parents=True)
    monkeypatch.chdir(work)
    return {"project": tmp_path / "project" / settings.PROJECT_FILE, "user": tmp_path / "user.toml"}


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def resolved(
    files: dict[str, Path], flags: dict[str, str | None] | None = None, environment: Mapping[str, str] | None = None
) -> dict[str, Setting]:
    return settings.resolve(flags, {"FAIRPOOL_CONFIG": str(files["user"]), **(environment or {})})


def test_without_anything_there_are_defaults_and_no_server(files: dict[str, Path]) -> None:
    found = resolved(files)
    assert found == {name: Setting(value=value, source="default") for name, value in settings.DEFAULTS.items()}
    assert "server" not in found


def test_each_source_goes_before_the_next_and_is_named(files: dict[str, Path]) -> None:
    write(files["user"], 'server = "http://user"')
    assert resolved(files)["server"] == Setting(value="http://user", source=str(files["user"]))
    write(files["project"], 'server = "http://project"')
    assert resolved(files)["server"] == Setting(value="http://project", source=str(files["project"]))
    told = {"FAIRPOOL_SERVER": "http://environment"}
    assert resolved(files, None, told)["server"] == Setting(value="http://environment", source="environment")
    assert resolved(files, {"server": "http://flag"}, told)["server"] == Setting(value="http://flag", source="flag")


def test_sources_mix_setting_by_setting(files: dict[str, Path]) -> None:
    write(files["user"], 'server = "http://user"\noutput = "json"')
    found = resolved(files, {"token": "t", "server": None}, {"FAIRPOOL_OUTPUT": ""})
    assert {name: setting.value for name, setting in found.items()} == {
        "server": "http://user",
        "output": "json",
        "token": "t",
        "workspace": "default",
    }


def _shown(files: dict[str, Path], environment: Mapping[str, str] | None = None) -> str | None:
    told = {"FAIRPOOL_CONFIG": str(files["user"]), **(environment or {})}
    found = settings.resolve(None, told)
    return settings.token_for(found["server"], found.get("token"), told)


def test_a_users_token_is_not_shown_to_a_server_that_only_a_project_names(files: dict[str, Path]) -> None:
    write(files["user"], 'server = "http://own"\ntoken = "secret"')
    write(files["project"], 'server = "http://elsewhere"')
    with pytest.raises(WrongSetting, match="http://elsewhere") as caught:
        _shown(files)
    assert "secret" not in f"{caught.value.message}{caught.value.hint}"


def test_a_users_token_is_shown_to_the_servers_that_the_user_names(files: dict[str, Path]) -> None:
    write(files["user"], 'server = "http://own"\ntoken = "secret"')
    assert _shown(files) == "secret"
    assert _shown(files, {"FAIRPOOL_SERVER": "http://other"}) == "secret"
    write(files["project"], 'server = "http://own"')
    assert _shown(files) == "secret", "the project names the same one"
    write(files["project"], 'server = "http://elsewhere"')
    assert _shown(files, {"FAIRPOOL_TOKEN": "for this call"}) == "for this call"


def test_tables_of_others_are_left_to_them(files: dict[str, Path]) -> None:
    write(files["user"], "[server]\nport = 1\n")
    assert "server" not in resolved(files)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("server = ", "config.toml"),
        ("sever = 'x'", "unknown setting 'sever'"),
        ("server = 7", "server is 7; possible: text"),
        ("\x00", "config.toml"),
    ],
)
def test_a_wrong_file_is_named_with_what_is_wrong(files: dict[str, Path], text: str, told: str) -> None:
    write(files["project"], text)
    with pytest.raises(WrongSetting, match=told) as caught:
        resolved(files)
    assert str(files["project"]) in caught.value.message
    assert caught.value.exit_code == Exit.USAGE


def test_a_file_that_cannot_be_read_is_named(files: dict[str, Path]) -> None:
    files["user"].mkdir()
    with pytest.raises(WrongSetting, match=str(files["user"])):
        resolved(files)


# ---- which server to use ---------------------------------------------------------------------------------------------


@pytest.fixture
def own(files: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's file."""
    monkeypatch.setenv("FAIRPOOL_CONFIG", str(files["user"]))
    return files["user"]


@pytest.mark.parametrize("before", ['server = "http://a"', "server='http://a'", '"server" = "http://a"', ""])
def test_the_server_to_use_takes_the_place_of_the_one_before_and_the_rest_stays(own: Path, before: str) -> None:
    write(own, f'{before}\noutput = "json"\n[oidc]\nserver = "of theirs"\n')
    settings.use_server("http://b")
    assert settings.resolve()["server"].value == "http://b"
    settings.use_server(None)
    assert "server" not in settings.resolve()
    assert settings.resolve()["output"].value == "json"
    assert '[oidc]\nserver = "of theirs"\n' in own.read_text()


def test_a_file_that_sets_up_a_server_is_left_as_it_is(own: Path) -> None:
    write(own, "[server]\nport = 8470\n")
    with pytest.raises(WrongSetting, match=r"table \[server\]") as caught:
        settings.use_server("http://b")
    assert "FAIRPOOL_SERVER=http://b" in caught.value.hint
    assert own.read_text() == "[server]\nport = 8470\n"
    settings.use_server(None)
    assert "server" not in settings.resolve()

"""Settings come from flag, environment and file, in that order; what is wrong is named with where it stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairpool.bootstrap.settings import Settings, WrongSetting, load


def settings(folder: Path, *, text: str = "", environment: dict[str, str] | None = None, **flags: object) -> Settings:
    config = folder / "config.toml"
    config.write_text(text)
    return load(flags, {"FAIRPOOL_CONFIG": str(config), "FAIRPOOL_DATA_DIR": str(folder)} | (environment or {}))


def test_a_flag_beats_the_environment_and_that_beats_the_file(tmp_path: Path) -> None:
    text = "[server]\nport = 1\nidle_s = 1\nlog_level = 'debug'"
    found = settings(tmp_path, text=text, environment={"FAIRPOOL_PORT": "2", "FAIRPOOL_IDLE_S": "2"}, port="3")
    assert (found.port, found.idle_s, found.log_level) == (3, 2, "debug")
    assert dict(found.sources) == {
        "port": "flag",
        "idle_s": "environment",
        "data_dir": "environment",
        "log_level": str(tmp_path / "config.toml"),
    }


def test_without_any_the_database_is_a_file_in_the_data_folder_and_the_server_listens_on_loopback(
    tmp_path: Path,
) -> None:
    found = settings(tmp_path)
    assert found.database_url == f"sqlite:///{tmp_path}/fairpool.db"
    assert (found.host, found.port, found.idle_s) == ("127.0.0.1", 0, None)


@pytest.mark.parametrize(
    ("text", "environment", "told"),
    [
        ("[server]\nprot = 1", {}, "did you mean 'port'?"),
        ("[server", {}, "is not TOML"),
        ("", {"FAIRPOOL_PORT": "99999"}, "port (from environment): '99999' is not possible; 0 to 65535 is"),
        ("", {"FAIRPOOL_IDLE_S": "soon"}, "idle_s"),
        ("", {"FAIRPOOL_LOG_LEVEL": "loud"}, "debug, info, warning, error"),
        ("", {"FAIRPOOL_HOST": "0.0.0.0"}, "--allow-remote"),
        ("", {"FAIRPOOL_ALLOW_REMOTE": "maybe"}, "neither true nor false"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, environment: dict[str, str], told: str) -> None:
    with pytest.raises(WrongSetting) as caught:
        settings(tmp_path, text=text, environment=environment)
    assert told in str(caught.value)


def test_other_addresses_than_loopback_need_to_be_meant(tmp_path: Path) -> None:
    assert settings(tmp_path, host="0.0.0.0", allow_remote="true").host == "0.0.0.0"


def test_a_client_setting_of_the_same_name_is_none_of_the_servers_business(tmp_path: Path) -> None:
    assert settings(tmp_path, text="server = 'https://pool.example'").port == 0

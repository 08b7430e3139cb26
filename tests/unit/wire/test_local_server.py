"""Processes find the local server by its folder, and never take what a killed one left behind for a server."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from fairpool.wire import local_server
from fairpool.wire.local_server import LOCK_FILE, SERVER_FILE, ServerFile


def server_file(pid: int) -> ServerFile:
    return ServerFile(url="http://127.0.0.1:1", pid=pid, version="0", started_at="2026-01-01T00:00:00Z")


def test_a_server_that_holds_the_lock_is_found(tmp_path: Path) -> None:
    with local_server.exclusive(tmp_path / LOCK_FILE) as taken:
        local_server.write(tmp_path, server_file(os.getpid()))
        assert taken
        assert local_server.find(tmp_path) == server_file(os.getpid())


def test_a_file_left_behind_without_the_lock_is_no_server(tmp_path: Path) -> None:
    local_server.write(tmp_path, server_file(os.getpid()))
    (tmp_path / LOCK_FILE).touch()
    assert local_server.find(tmp_path) is None


def test_a_file_of_a_dead_process_is_no_server_though_a_new_one_holds_the_lock(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    local_server.write(tmp_path, server_file(child.pid))
    with local_server.exclusive(tmp_path / LOCK_FILE):
        assert local_server.find(tmp_path) is None


def test_an_empty_folder_has_no_server(tmp_path: Path) -> None:
    assert local_server.find(tmp_path) is None
    assert local_server.read_token(tmp_path) is None
    assert not local_server.is_alive(tmp_path / "missing")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"url": 1}', '{"url": "u", "pid": "x", "version": "", "started_at": ""}']
)
def test_a_broken_file_is_no_server(tmp_path: Path, text: str) -> None:
    (tmp_path / SERVER_FILE).write_text(text)
    assert local_server.read(tmp_path) is None


def test_only_one_holds_the_lock_and_a_look_does_not_take_it(tmp_path: Path) -> None:
    path = tmp_path / LOCK_FILE
    with local_server.exclusive(path) as first, local_server.exclusive(path) as second:
        assert (first, second) == (True, False)
        assert local_server.is_alive(tmp_path)
    assert not local_server.is_alive(tmp_path)


def test_what_is_written_is_for_its_owner_only_and_leaves_nothing_beside(tmp_path: Path) -> None:
    local_server.write(tmp_path, server_file(1))
    assert stat.S_IMODE((tmp_path / SERVER_FILE).stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [SERVER_FILE]


def test_the_environment_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(local_server.DIRECTORY_ENV, str(tmp_path))
    assert local_server.data_dir() == tmp_path
    monkeypatch.delenv(local_server.DIRECTORY_ENV)
    assert local_server.data_dir().name == "fairpool"

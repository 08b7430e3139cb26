"""The local server starts once, is found again, and ends when asked or idle; nothing it leaves behind misleads."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import urllib3

from fairpool.admin import processes
from fairpool.wire import local_server
from fairpool.wire.local_server import LOCK_FILE, LOG_FILE, SERVER_FILE, TOKEN_FILE, NotStarted
from tests.integration.serving import begin, end, serving
from tests.waiting import wait_until

STARTER = """
import sys
from pathlib import Path
from fairpool.wire import local_server
sys.stdin.readline()
found = local_server.start(Path(sys.argv[1]))
print(found.pid, found.url)
"""


@pytest.fixture(scope="module", autouse=True)
def forked_servers() -> None:
    """Not here: these are about the real start."""


def test_eight_processes_that_start_at_once_get_one_server(tmp_path: Path) -> None:
    command = [sys.executable, "-c", STARTER, str(tmp_path)]
    starters = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(8)]
    try:
        for starter in starters:
            assert starter.stdin is not None
            starter.stdin.write("go\n")
            starter.stdin.flush()
        found = {starter.communicate(timeout=90)[0].strip() for starter in starters}
        assert [starter.returncode for starter in starters] == [0] * 8
        assert len(found) == 1
        (server,) = found
        assert server.split()[0].isdigit()
    finally:
        end(tmp_path)


def test_what_lies_in_the_folder_is_for_its_owner_only_and_the_log_holds_no_token(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as call:
        call("GET", "/pools")
        call("GET", "/pools", headers={"Authorization": "Bearer guess-of-a-token"})
        for name in (SERVER_FILE, TOKEN_FILE, LOCK_FILE, LOG_FILE):
            assert stat.S_IMODE((tmp_path / "data" / name).stat().st_mode) == 0o600, name
        assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700
    log = (tmp_path / "data" / LOG_FILE).read_text()
    assert call.token not in log
    assert "guess-of-a-token" not in log


def test_the_next_process_finds_the_server_and_its_token_stays_the_same_over_restarts(tmp_path: Path) -> None:
    with serving(tmp_path) as first:
        assert processes.start(tmp_path).url == first.url
    with serving(tmp_path) as second:
        assert second.token == first.token


def test_after_sigkill_nothing_is_taken_for_a_server_and_a_new_one_starts(tmp_path: Path) -> None:
    begin(tmp_path)
    killed = local_server.read(tmp_path)
    end(tmp_path, signal.SIGKILL)
    assert local_server.read(tmp_path) == killed
    assert local_server.find(tmp_path) is None
    with serving(tmp_path) as call:
        found = local_server.find(tmp_path)
        assert found is not None and killed is not None
        assert found.pid != killed.pid
        assert call("GET", "/pools").status == 200


def test_stopping_removes_what_says_where_it_was_and_stopping_again_finds_none(tmp_path: Path) -> None:
    begin(tmp_path)
    assert processes.stop(tmp_path) is not None
    assert not (tmp_path / SERVER_FILE).exists()
    assert processes.stop(tmp_path) is None
    assert processes.status(tmp_path) is None


def test_it_stops_by_itself_when_nobody_needs_it(tmp_path: Path) -> None:
    begin(tmp_path, "--idle-s", "0.2")
    wait_until(lambda: not local_server.is_alive(tmp_path), what="the idle server to stop")
    assert "nothing to do" in (tmp_path / LOG_FILE).read_text()


def test_it_stays_while_something_is_queued_or_allocated(tmp_path: Path) -> None:
    call = begin(tmp_path, "--idle-s", "0.2")
    try:
        call.ok("POST", "/pools", {"name": "gpus", "capacity": {"gpu": 1}})
        call.ok("POST", "/policies", {"pool": "gpus", "subject": "team:red"})
        made = call.ok("POST", "/requests", {"demand": {"gpu": 1}, "subjects": ["team:red"], "lease_s": 3600})
        with pytest.raises(AssertionError, match="in vain"):
            wait_until(lambda: not local_server.is_alive(tmp_path), what="it to stop", timeout_s=1)
        call.ok("POST", f"/requests/{made['id']}/release")
        wait_until(lambda: not local_server.is_alive(tmp_path), what="the server to stop after the release")
    finally:
        end(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--host", "0.0.0.0"], "--allow-remote"),
        (["--port", "70000"], "0 to 65535"),
        (["--database-url", "oracle://nowhere"], "sqlite:////absolute/path"),
    ],
)
def test_a_server_that_cannot_start_says_why(tmp_path: Path, arguments: list[str], told: str) -> None:
    with pytest.raises(NotStarted) as caught:
        local_server.start(tmp_path, *arguments)
    assert told in str(caught.value)
    assert "Traceback" not in str(caught.value)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotStarted, match="data folder cannot be used"):
        local_server.start(tmp_path / "file" / "below")


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with serving(tmp_path / "one") as call:
        port = str(urllib3.util.parse_url(call.url).port)
        with pytest.raises(NotStarted, match=f"cannot listen on 127.0.0.1:{port}"):
            local_server.start(tmp_path / "two", "--port", port)


def test_a_corrupt_database_is_said_and_not_overwritten(tmp_path: Path) -> None:
    database = tmp_path / local_server.DATABASE_FILE
    database.write_bytes(b"this is no database" * 1000)
    with pytest.raises(NotStarted) as caught:
        local_server.start(tmp_path)
    assert str(database) in str(caught.value)
    assert database.read_bytes() == b"this is no database" * 1000


def test_sigterm_lets_waiting_calls_answer(tmp_path: Path) -> None:
    call = begin(tmp_path)
    try:
        call.ok("POST", "/pools", {"name": "gpus", "capacity": {"gpu": 1}})
        call.ok("POST", "/policies", {"pool": "gpus", "subject": "team:red"})
        body = {"demand": {"gpu": 1}, "subjects": ["team:red"]}
        _, made = (call.ok("POST", "/requests", body) for _ in range(2))
        asks = f"""
import sys, urllib3
answer = urllib3.request("GET", "{call.url}/api/v1/requests/{made["id"]}?wait_s=60",
    headers={{"Authorization": "Bearer {call.token}"}}, timeout=90)
print(answer.status, answer.json()["status"])
"""
        waiting = subprocess.Popen([sys.executable, "-c", asks], stdout=subprocess.PIPE, text=True)

        def polls() -> bool:
            metrics = call("GET", "//metrics").body.decode()
            return "fairpool_http_requests_under_way 2" in metrics  # the poll, and the call that asks this

        wait_until(polls, what="the long poll to be under way")
        found = local_server.find(tmp_path)
        assert found is not None
        os.kill(found.pid, signal.SIGTERM)
        assert waiting.communicate(timeout=90)[0].split() == ["200", "queued"]
    finally:
        end(tmp_path)

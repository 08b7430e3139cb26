"""The connection breaks after the server has done what it was asked, before it has said so: nothing is done twice."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.servers.installation import Installation, Server
from tests.e2e.servers.test_running_work import PROGRAM
from tests.integration.proxy import Proxy
from tests.integration.serving import Caller


class Losing(Proxy):
    """Passes connections on, and loses the first answer to a call."""

    def __init__(self, server: Server, call: str) -> None:
        self.call = call.encode()
        self.lost = 0
        super().__init__(server.url)

    def line(self) -> LosingLine:
        return LosingLine(self)


class LosingLine:
    """One connection: once the call went through it, the answer goes nowhere."""

    def __init__(self, proxy: Losing) -> None:
        self._proxy = proxy
        self._losing = threading.Event()

    def asked(self, data: bytes) -> None:
        if data.startswith(self._proxy.call) and not self._proxy.lost:
            self._losing.set()

    def answered(self, data: bytes) -> tuple[bytes, bool]:
        if not self._losing.is_set():
            return data, True
        self._proxy.lost += 1  # it is done, and nobody hears of it
        return b"", False


@pytest.fixture
def server(installation: Installation) -> Server:
    """One server, and somebody to make tokens for."""
    one = installation.start("one")
    one.call.ok("POST", "/users", {"name": "alice", "role": "member"})
    return one


@pytest.fixture
def losing(server: Server, request: pytest.FixtureRequest) -> Iterator[Losing]:
    """Between the command and the server."""
    made = Losing(server, request.param)
    yield made
    made.close()


def fairpool(losing: Losing, token: str, folder: Path, *words: str) -> str:
    """What a command prints that calls through it."""
    settings = {"FAIRPOOL_SERVER": losing.url, "FAIRPOOL_TOKEN": token, "FAIRPOOL_CONFIG": str(folder / "none")}
    cleared = {name: value for name, value in os.environ.items() if not name.startswith("FAIRPOOL_")}
    done = subprocess.run(
        [PROGRAM, *words], env={**cleared, **settings}, cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("losing", ["POST /api/v1/tokens"], indirect=True)
def test_a_token_is_made_once_and_told(server: Server, losing: Losing, tmp_path: Path) -> None:
    words = ("token", "create", "laptop", "--for", "user:alice")
    told = fairpool(losing, server.call.token, tmp_path, *words).strip()
    assert losing.lost == 1
    assert Caller(server.url, told).ok("GET", "/whoami")["subject"] == "user:alice"
    assert [one["name"] for one in server.call.ok("GET", "/tokens?owner=user:alice")["items"]] == ["laptop"]


@pytest.mark.parametrize("losing", ["POST /api/v1/apply"], indirect=True)
def test_documents_are_applied_once_and_the_command_says_so(server: Server, losing: Losing, tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("kind: pool\nname: gpus\ncapacity: {gpu: 4}\n", "utf-8")
    fairpool(losing, server.call.token, tmp_path, "apply", "-f", str(rules), "--yes")
    assert losing.lost == 1
    assert server.call.ok("GET", "/pools/gpus")["version"] == 1
    rules.write_text("kind: pool\nname: gpus\n", "utf-8")
    losing.lost = 0
    fairpool(losing, server.call.token, tmp_path, "delete", "-f", str(rules), "--yes")
    assert losing.lost == 1
    assert server.call.ok("GET", "/pools")["items"] == []


def test_an_apply_that_is_repeated_after_others_changed_something_changes_nothing_more(server: Server) -> None:
    body, key = {"documents": [{"kind": "pool", "name": "gpus", "capacity": {"gpu": 4}}]}, {"Idempotency-Key": "k"}
    assert server.call.ok("POST", "/apply", body, headers=key)["applied"] is True
    server.call.ok("PATCH", "/pools/gpus", {"capacity": {"gpu": 5}})
    assert server.call.ok("POST", "/apply", body, headers=key)["applied"] is True
    assert server.call.ok("GET", "/pools/gpus")["capacity"] == {"gpu": 5}
    reused = server.call("POST", "/apply", {"documents": []}, headers=key)
    assert (reused.status, reused.json["type"]) == (409, "idempotency-key-reused")
    server.call.ok("POST", "/users", {"name": "root", "role": "admin"})
    root = Caller(server.url, server.call.ok("POST", "/tokens", {"name": "t", "owner": "user:root"})["token"])
    others = root.ok("POST", "/apply", {"documents": [{"kind": "pool", "name": "other"}]}, headers=key)
    assert [change["name"] for change in others["changes"]] == ["other"], "a key is one caller's"


def test_a_token_is_made_again_by_the_same_caller_alone_and_with_the_same_words(server: Server) -> None:
    body, key = {"name": "laptop", "owner": "user:alice"}, {"Idempotency-Key": "k"}
    first = server.call.ok("POST", "/tokens", body, headers=key)
    assert server.call.ok("POST", "/tokens", body, headers=key) == first
    reused = server.call("POST", "/tokens", {**body, "name": "other"}, headers=key)
    assert (reused.status, reused.json["type"]) == (409, "idempotency-key-reused")
    alice = Caller(server.url, first["token"])
    mine = alice.ok("POST", "/tokens", {"name": "mine"}, headers=key)
    assert mine["id"] != first["id"], "a key is one caller's"
    server.call.ok("DELETE", f"/tokens/{mine['id']}")
    assert alice("POST", "/tokens", {"name": "mine"}, headers=key).json["status"] == "revoked"

"""The database goes away for a minute: callers are told to come back, clients do, what runs goes on, all recovers."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.servers.installation import ASK, Installation, Server, add_pool, installed
from tests.e2e.servers.load import hold_against, load
from tests.e2e.servers.test_running_work import PROGRAM
from tests.postgres import Cluster, running
from tests.waiting import wait_until

AWAY_S = 60.0
REFUSED_WITHIN_S = 10.0
LEASE_S = 15
"""Of what runs meanwhile: it lapses several times over, were it not for the servers being away too (S35)."""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A PostgreSQL that this test may stop."""
    with running() as made:
        yield made


@pytest.mark.timeout(400)
def test_a_minute_without_the_database_fails_no_client_and_disturbs_nothing_that_runs(
    cluster: Cluster, tmp_path: Path
) -> None:
    with installed(tmp_path, cluster.new_database()) as installation:
        leader = installation.start("one")
        add_pool(leader, gpus=6)
        installation.start("two")
        held = leader.call.ok("POST", "/requests", {**ASK, "preemptible": False, "lease_s": LEASE_S})
        with _command(installation, tmp_path) as command:
            with load(installation) as ledger:
                wait_until(ledger.has_got_to(20), what="clients to get on")
                cluster.control("stop")
                stopped_at = time.monotonic()
                while time.monotonic() - stopped_at < AWAY_S:
                    for server in installation.servers.values():
                        _is_told_to_come_back(server)
                assert command.poll() is None, "it runs on"
                before = ledger.answers
                cluster.control("start")
                wait_until(ledger.has_got_to(before + 20), what="clients to get on", timeout_s=60)
            assert ledger.failures == []
            now = installation.leader()
            assert now.call.ok("GET", f"/requests/{held['id']}")["status"] == "allocated", "nobody's lease has lapsed"
            (tmp_path / "go").touch()
            _, said = command.communicate(timeout=60)
            assert command.returncode == 7, said
        assert len((tmp_path / "began").read_text().split()) == 1, "it was started once"
        hold_against(now, ledger)
        mine = now.call.ok("GET", "/requests?view=all&label=of=command")["items"]
        assert [request["status"] for request in mine] == ["released"]


def _is_told_to_come_back(server: Server) -> None:
    """Whoever asks is refused, soon, in a way that says to ask again."""
    began = time.monotonic()
    answer = server.call("POST", "/requests", ASK)
    assert time.monotonic() - began < REFUSED_WITHIN_S
    assert (answer.status, answer.json["type"] in ("unavailable", "not-leading")) == (503, True), answer.json
    assert int(answer.headers["retry-after"]) >= 1


@contextmanager
def _command(installation: Installation, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """``fairpool run`` of a command that waits for the file ``go``, once it runs."""
    began = folder / "began"
    script = f"echo $$ >> {began}; until [ -e {folder / 'go'} ]; do sleep 0.05; done; exit 7"
    cleared = {name: value for name, value in os.environ.items() if not name.startswith("FAIRPOOL_")}
    settings = {
        "FAIRPOOL_SERVER": ",".join(server.url for server in installation.servers.values()),
        "FAIRPOOL_TOKEN": installation.token,
        "FAIRPOOL_CONFIG": str(folder / "none"),
        "FAIRPOOL_SUBJECTS": "team:red",
        "FAIRPOOL_LEASE_S": str(LEASE_S),
    }
    words = [
        "run",
        "--gpus",
        "1",
        "--pool",
        "p",
        "--non-preemptible",
        "--label",
        "of=command",
        "--",
        "sh",
        "-c",
        script,
    ]
    command = subprocess.Popen(
        [PROGRAM, *words], env={**cleared, **settings}, cwd=folder, stderr=subprocess.PIPE, text=True
    )
    try:
        wait_until(began.exists, what="the command to run")
        yield command
    finally:
        command.kill()
        command.communicate()

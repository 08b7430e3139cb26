"""Work that runs notices nothing of the death of the server that decided about it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.e2e.servers.installation import Installation, Server
from tests.waiting import wait_until

PROGRAM = str(Path(sys.executable).with_name("fairpool"))


def test_a_command_goes_on_while_another_server_takes_over(
    installation: Installation, leader: Server, follower: Server, pool: None, tmp_path: Path
) -> None:
    began, go = tmp_path / "began", tmp_path / "go"
    script = f"echo $$ >> {began}; until [ -e {go} ]; do sleep 0.05; done; exit 7"
    cleared = {name: value for name, value in os.environ.items() if not name.startswith("FAIRPOOL_")}
    settings = {
        "FAIRPOOL_SERVER": f"{leader.url},{follower.url}",
        "FAIRPOOL_TOKEN": installation.token,
        "FAIRPOOL_CONFIG": str(tmp_path / "none"),
        "FAIRPOOL_SUBJECTS": "team:red",
        "FAIRPOOL_LEASE_S": "4",
    }
    command = [PROGRAM, "run", "--gpus", "1", "--pool", "p", "--", "sh", "-c", script]
    running = subprocess.Popen(command, env={**cleared, **settings}, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        wait_until(began.exists, what="the command to run")
        leader.kill()
        wait_until(lambda: follower.leads, what="the other to lead")
        go.touch()
        _, said = running.communicate(timeout=90)
    finally:
        running.kill()
    assert running.returncode == 7, said
    assert len(began.read_text().split()) == 1, "it was started once"
    ended = follower.call.ok("GET", "/requests?view=all")["items"]
    assert [request["status"] for request in ended] == ["released"]

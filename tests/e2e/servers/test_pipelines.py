"""A pipeline notices nothing of the death of the server that decides, whatever its steps are doing at that moment."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.e2e.servers.installation import Installation, Server
from tests.waiting import wait_until

PROGRAM = """
    from fairpool import pipeline, step
    from pathlib import Path
    import os, threading

    GPU = {"resources": {"gpu_count": 1, "preemptible": False}}

    def note(what):
        with open("began", "a") as file:
            file.write(what + "\\n")

    @step(settings=GPU)
    def prepare():
        note("prepare")
        return 20

    @step(settings=GPU)
    def train(data, name):
        note(f"train {name}")
        while not Path("go").exists():
            threading.Event().wait(0.05)
        return data + 1

    @step(settings=GPU)
    def compare(first, second):
        note("compare")
        return first + second

    @pipeline
    def whole():
        data = prepare()
        return compare(train.submit(data, "a"), train.submit(data, "b"))

    if __name__ == "__main__":
        print(whole())
"""


@pytest.fixture
def database_url(new_postgres_url: str) -> str:
    return new_postgres_url


@pytest.fixture
def one_gpu(leader: Server) -> None:
    """One GPU: of two steps that could run, one waits."""
    leader.call.ok("POST", "/pools", {"name": "p", "capacity": {"gpu": 1}})
    leader.call.ok("POST", "/policies", {"pool": "p", "subject": "component:local", "reserved": {"gpu": 1}})


@pytest.mark.timeout(200)
def test_a_pipeline_goes_on_while_another_server_takes_over(
    installation: Installation, leader: Server, follower: Server, one_gpu: None, tmp_path: Path
) -> None:
    program, began = tmp_path / "program.py", tmp_path / "began"
    program.write_text(textwrap.dedent(PROGRAM), "utf-8")
    cleared = {name: value for name, value in os.environ.items() if not name.startswith(("FAIRPOOL_", "XDG_"))}
    settings = {
        "FAIRPOOL_SERVER": f"{leader.url},{follower.url}",
        "FAIRPOOL_TOKEN": installation.token,
        "FAIRPOOL_DATA_DIR": str(tmp_path / "data"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "FAIRPOOL_LEASE_S": "4",
    }
    running = subprocess.Popen(
        [sys.executable, str(program)],
        env={**cleared, **settings},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until(lambda: began.exists() and "train" in began.read_text(), what="a training to run", timeout_s=60)
        wait_until(lambda: _statuses(follower) == ["allocated", "queued"], what="the other to wait")
        leader.kill()
        wait_until(lambda: follower.leads, what="the other to lead")
        (tmp_path / "go").touch()
        out, err = running.communicate(timeout=120)
    finally:
        running.kill()
        running.communicate()
    assert (running.returncode, out.strip()) == (0, "42"), err
    assert sorted(began.read_text().splitlines()) == ["compare", "prepare", "train a", "train b"], "each ran once"
    (run,) = follower.call.ok("GET", "/runs")["items"]
    steps = follower.call.ok("GET", f"/runs/{run['id']}")["steps"]
    assert run["status"] == "completed"
    assert [(step["status"], step["attempt"], len(step["requests"])) for step in steps] == [("completed", 1, 1)] * 4
    assert {request["status"] for step in steps for request in step["requests"]} == {"released"}


def _statuses(server: Server) -> list[str]:
    return sorted(request["status"] for request in server.call.ok("GET", "/requests")["items"])

"""Workspaces on the command line, with the real program and a real server."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from tests.e2e.cli.conftest import Machine
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("served")

NOT_FOUND, NOT_ALLOWED, CONFLICT, USAGE = 3, 4, 5, 2


def test_a_workspace_begins_with_its_first_admin_and_ends_with_everything(machine: Machine) -> None:
    made = machine("workspace", "create", "research", "--admin", "alice", "--description", "the lab")
    assert made.code == 0 and "admin of research" in made.err and "not shown again" in made.err
    alice = made.out.strip()
    told = machine.ok("whoami", FAIRPOOL_TOKEN=alice)
    assert "user:alice" in told and "role admin" in told and "workspace research" in told
    machine.ok("pool", "create", "gpus", "--capacity", "gpu=2", FAIRPOOL_TOKEN=alice)
    machine.ok("policy", "attach", "gpus", "user:alice", "--reserved", "gpu=1", FAIRPOOL_TOKEN=alice)
    assert "gpus" not in machine.ok("pool", "list")
    for said in ({}, {"FAIRPOOL_WORKSPACE": "research"}):
        assert "gpus" in machine.ok(*([] if said else ["--workspace", "research"]), "pool", "list", **said)
    assert machine.ok("run", "--gpus", "1", "--pool", "gpus", "--", "echo", "hello", FAIRPOOL_TOKEN=alice) == "hello\n"
    names = [one["name"] for one in json.loads(machine.ok("workspace", "list", "-o", "json"))]
    assert names == ["default", "research"]
    assert "the lab" in machine.ok("workspace", "describe", "research")
    asked = machine("workspace", "delete", "research")
    assert asked.code == USAGE and "1 user, 1 pool, 1 policy" in asked.err and "for good" in asked.err
    done = machine("workspace", "delete", "research", "--yes")
    assert done.code == 0 and "workspace research deleted" in done.err
    refused = machine("whoami", FAIRPOOL_TOKEN=alice)
    assert refused.code == NOT_ALLOWED
    gone = machine("--workspace", "research", "pool", "list")
    assert gone.code == NOT_FOUND and "fairpool workspace create" in gone.err


def test_who_is_not_the_installation_s_owner_is_told_where_the_token_is(machine: Machine) -> None:
    alice = machine.ok("workspace", "create", "research", "--admin", "alice").strip()
    refused = machine("workspace", "create", "mine", FAIRPOOL_TOKEN=alice)
    assert refused.code == NOT_ALLOWED and "data folder" in refused.err
    other = machine("--workspace", "default", "pool", "list", FAIRPOOL_TOKEN=alice)
    assert other.code == NOT_ALLOWED and "of the workspace 'research'" in other.err and "--workspace" in other.err


def test_a_first_admin_that_cannot_be_is_made_later(machine: Machine) -> None:
    refused = machine("workspace", "create", "research", "--admin", "no/name")
    assert refused.code == USAGE
    assert "fairpool --workspace research user create no/name --role admin" in refused.err
    machine.ok("--workspace", "research", "user", "create", "alice", "--role", "admin")
    token = machine.ok("--workspace", "research", "token", "create", "laptop", "--for", "user:alice").strip()
    assert "workspace research" in machine.ok("whoami", FAIRPOOL_TOKEN=token)
    again = machine("workspace", "create", "research", "--admin", "alice")
    assert again.code == CONFLICT
    assert "go on with fairpool --workspace research user create alice --role admin" in again.err


def test_a_workspace_at_work_is_not_deleted(machine: Machine) -> None:
    machine.ok("workspace", "create", "research")
    machine.start("--workspace", "research", "run", "--gpus", "1", "--", "sleep", "60")
    wait_until(lambda: list(machine.client.within("research").requests(view="active")), what="the run to hold a GPU")
    refused = machine("workspace", "delete", "research", "--yes")
    assert refused.code == CONFLICT and "1 holding something" in refused.err


def test_the_doctor_names_a_workspace_that_cannot_be_opened(machine: Machine) -> None:
    for name in ("research", "sound"):
        machine.ok("workspace", "create", name)
        machine.ok("--workspace", name, "pool", "create", "gpus", "--capacity", "gpu=2")
    well = machine("doctor")
    assert well.code == 0 and "research" not in well.out, well.out
    machine.ok("server", "stop")
    with closing(sqlite3.connect(machine.data / "fairpool.db")) as database, database:
        database.execute("PRAGMA ignore_check_constraints = ON")
        assert database.execute("UPDATE pools SET ordering = 'odd' WHERE workspace = 'research'").rowcount == 1
    (machine.data / "fairpool.db-witness").unlink()  # it would have the whole file refused
    wait_until(lambda: states(machine)["research"] == "unavailable", what="the server to have tried to open it")
    assert states(machine) == {"default": "open", "research": "unavailable", "sound": "open"}
    looked = machine("doctor")
    assert looked.code == 1
    assert "failed   workspace: research cannot be opened" in looked.out and "fairpool db check" in looked.out
    assert "workspace: sound" not in looked.out


def states(machine: Machine) -> dict[str, str]:
    return {one["name"]: one["state"] for one in machine.json("workspace", "list")}

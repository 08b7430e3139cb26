"""`fairpool history` and `--at`, as somebody types them."""

from __future__ import annotations

import json
import signal

import pytest

from tests.e2e.cli.conftest import Machine
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("served")


def test_who_changed_what_and_how_it_was_before(machine: Machine) -> None:
    machine.ok("pool", "create", "gpus", "--capacity", "gpu=8")
    then = machine.json("history", "--object", "pool/gpus")[0]["at"]
    machine.ok("pool", "update", "gpus", "--capacity", "gpu=4")
    told = machine.ok("history", "--object", "pool/gpus", "--since", "1h", "-o", "csv", "--columns", "what,changes")
    assert told == "WHAT,CHANGES\ncapacity changed,capacity gpu 8 → gpu 4\ncreated,\n"
    assert machine.ok("pool", "list", "-o", "csv", "--columns", "used", "--at", then) == "USED\ngpu 0/8\n"
    assert "gpu 0/8" in machine.ok("pool", "describe", "gpus", "--at", then)
    assert machine.ok("policy", "list", "--at", then, "-o", "name") == ""
    assert machine.ok("request", "list", "--at", then, "-o", "name") == ""
    assert machine.ok("pool", "list", "-o", "name", "--at", "2001-01-01") == ""
    wrong = machine("history", "--since", "noon")
    assert (wrong.code, "'noon' is no time; possible: 2h" in wrong.err) == (2, True)
    mistyped = machine("history", "--object", "pool/gpux")
    assert (mistyped.code, mistyped.out) == (0, "")
    assert "nothing was found of pool/gpux" in mistyped.err
    wrong = machine("history", "--object", "gpus")
    assert (wrong.code, "possible: KIND/NAME" in wrong.err) == (2, True)


def test_profiles_and_who_was_in_which_team_are_as_they_were_then(machine: Machine) -> None:
    machine.ok("user", "create", "alice", "--role", "member")
    machine.ok("team", "create", "red", "--member", "alice")
    machine.ok("service-account", "create", "ci", "--team", "red")
    machine.ok("pool", "create", "gpus", "--capacity", "gpu=8")
    machine.ok("profile", "create", "half", "--demand", "gpu=0.5", "--pool", "gpus")
    then = machine.json("history", "--object", "profile/half")[0]["at"]
    machine.ok("profile", "update", "half", "--demand", "gpu=2")
    machine.ok("user", "update", "alice", "--role", "operator")
    machine.ok("service-account", "update", "ci", "--no-teams")
    machine.ok("team", "remove", "red", "alice")
    machine.ok("profile", "delete", "half", "--yes")
    was = {
        ("profile", "half", "demand"): "gpu 0.5",
        ("user", "alice", "role"): "member",
        ("user", "alice", "teams"): "red",
        ("team", "red", "members"): "alice",
        ("service-account", "ci", "teams"): "red",
    }
    for (kind, name, column), value in was.items():
        listed = machine.ok(kind, "list", "--at", then, "-o", "csv", "--columns", column, "--no-headers")
        assert listed == f"{value}\n", kind
        described = machine.ok(kind, "describe", name, "--at", then)
        assert any(line.split()[1:] == value.split() for line in described.splitlines()), kind
    assert machine("profile", "describe", "half").code == 3
    assert machine("team", "describe", "red", "--at", "2001-01-01").code == 3


def test_following_goes_on_from_the_past_with_what_is_asked_for_and_nothing_else(machine: Machine) -> None:
    machine.ok("pool", "create", "gpus", "--capacity", "gpu=8")
    machine.ok("pool", "create", "other", "--capacity", "gpu=8")
    following = machine.start("history", "--follow", "--object", "pool/gpus", "-o", "json")
    rules = machine.start("history", "--follow", "--limit", "1", "-o", "csv", "--columns", "kind,name,what")
    assert following.stdout is not None
    assert rules.stdout is not None
    assert json.loads(following.stdout.readline())["what"] == "created"
    assert [rules.stdout.readline() for _ in range(2)] == ["KIND,NAME,WHAT\n", "pool,other,created\n"]
    machine.ok("pool", "update", "other", "--capacity", "gpu=4")
    machine.ok("run", "--gpus", "1", "--", "true")
    machine.ok("pool", "update", "gpus", "--name", "cards")
    machine.ok("server", "stop")
    machine.ok("pool", "update", "cards", "--capacity", "gpu=2")
    assert [json.loads(following.stdout.readline())["what"] for _ in range(2)] == ["name changed", "capacity changed"]
    told = [rules.stdout.readline() for _ in range(3)]
    assert told == ["pool,other,capacity changed\n", "pool,cards,name changed\n", "pool,cards,capacity changed\n"]
    following.send_signal(signal.SIGINT)
    assert wait_until(following.poll, what="it to end") == 130
    refused = machine("history", "--follow", "--until", "1h")
    assert (refused.code, "--follow and --until" in refused.err) == (2, True)

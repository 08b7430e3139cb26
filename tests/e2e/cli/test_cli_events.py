"""``fairpool events``: what has happened, and what happens, in every format."""

from __future__ import annotations

import json
import signal

import pytest

from tests.e2e.cli.conftest import Machine
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("served")


def test_the_past_is_listed_with_the_newest_last_and_can_be_gone_on_from(machine: Machine) -> None:
    machine.ok("pool", "create", "one", "--capacity", "gpu=1")
    machine.ok("pool", "create", "two", "--capacity", "gpu=1")
    found = machine.json("events", "--kind", "pool")
    assert [(entry["name"], entry["what"]) for entry in found] == [("one", "created"), ("two", "created")]
    assert machine.ok("events", "--after", str(found[0]["id"]), "--kind", "pool", "-o", "name") == f"{found[1]['id']}\n"
    assert machine.ok("events", "--limit", "1", "-o", "name") == f"{found[1]['id']}\n"
    heading, first, _second = machine.ok("events", "--kind", "pool").splitlines()
    assert heading.split() == ["ID", "AT", "KIND", "OBJECT", "NAME", "WHAT", "CAUSE"]
    assert "one" in first
    done = machine("events", "--kind", "pol")
    assert done.code == 2
    assert "unknown kind" in done.err


def test_following_tells_each_event_as_a_line_as_it_happens_and_survives_a_restart(machine: Machine) -> None:
    machine.ok("pool", "create", "one", "--capacity", "gpu=1")
    following = machine.start("events", "--follow", "--after", "0", "--kind", "pool", "-o", "json")
    assert following.stdout is not None
    assert json.loads(following.stdout.readline())["name"] == "one"
    machine.ok("server", "stop")
    machine.ok("pool", "create", "two", "--capacity", "gpu=1")
    assert json.loads(following.stdout.readline())["name"] == "two"
    following.send_signal(signal.SIGINT)
    assert wait_until(following.poll, what="it to end") == 130


def test_following_prints_rows_under_one_heading(machine: Machine) -> None:
    machine.ok("pool", "create", "one", "--capacity", "gpu=1")
    following = machine.start("events", "--follow", "--after", "0", "--kind", "pool")
    assert following.stdout is not None
    assert following.stdout.readline().split() == ["ID", "AT", "KIND", "OBJECT", "NAME", "WHAT", "CAUSE"]
    assert " one " in following.stdout.readline()
    following.terminate()

"""`fairpool history` and `--at`, as somebody types them."""

from __future__ import annotations

from tests.e2e.cli.conftest import Machine


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
    wrong = machine("history", "--object", "gpus")
    assert (wrong.code, "possible: KIND/NAME" in wrong.err) == (2, True)

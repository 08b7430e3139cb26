"""What people type and read around their work: names for ids, what changed, whether a hold is safe."""

from __future__ import annotations

from datetime import timedelta

from fairpool.cli import render
from fairpool.wire.requests import RequestCreate, RequestView
from tests.e2e.cli.conftest import Machine

FAILED, USAGE, NOT_FOUND = 1, 2, 3


def ask(machine: Machine, name: str, gpus: int = 1) -> RequestView:
    return machine.client.submit(
        RequestCreate(demand={"gpu": gpus}, subjects=["research"], name=name, lease_s=600), wait_s=5
    )


def test_a_live_request_answers_to_its_name_where_only_one_has_it(pooled: Machine) -> None:
    first, second = ask(pooled, "nightly", gpus=2), ask(pooled, "nightly")
    waiting = ask(pooled, "sweep")
    assert waiting.id in pooled.ok("request", "explain", "sweep")
    assert waiting.id in pooled.ok("request", "describe", "sweep")
    assert [found["id"] for found in pooled.json("request", "list", "--name", "sweep")] == [waiting.id]
    done = pooled("request", "cancel", "nightly")
    assert done.code == USAGE and first.id in done.err and second.id in done.err
    pooled.ok("request", "cancel", second.id)
    pooled.ok("request", "cancel", "nightly")
    done = pooled("request", "cancel", "nightly")
    assert done.code == NOT_FOUND and "nightly" in done.err


def test_an_explanation_says_whether_what_is_held_can_be_taken_away(pooled: Machine) -> None:
    """S20, S27."""
    ask(pooled, "guest")
    assert "borrowed: it may be asked to let go" in pooled.ok("request", "explain", "guest")
    owner = RequestCreate(demand={"gpu": 1}, subjects=["prod"], name="owner", lease_s=600)
    pooled.client.submit(owner, wait_s=5)
    assert "inside the reservation: no other policy may take it" in pooled.ok("request", "explain", "owner")


def test_an_explanation_says_until_when_what_is_borrowed_is_spared(pooled: Machine) -> None:
    """S30."""
    pooled.ok("policy", "update", "gpus", "research", "--min-runtime", "600")
    guest = ask(pooled, "guest")
    assert guest.allocation is not None
    until = render.moment(guest.allocation.granted_at + timedelta(seconds=600))
    told = pooled.ok("request", "explain", "guest")
    assert f"borrowed: spared until {until} (min runtime), from then on it may be asked to let go" in told


def test_a_policy_is_named_as_it_was_attached_and_its_change_is_told(pooled: Machine) -> None:
    told = pooled.ok("policy", "update", "gpus", "prod", "--dedicated", "--reserved", "gpu=1")
    assert told == "policy gpus/component:prod changed: reserved gpu 2 → gpu 1, dedicated no → yes\n"
    again = pooled.ok("policy", "update", "gpus/prod", "--dedicated")
    assert again == "policy gpus/component:prod is so already: nothing to change\n"
    assert "component:prod" in pooled.ok("policy", "describe", "gpus", "prod")
    pooled.ok("policy", "detach", "gpus", "prod", "--yes")
    assert pooled("policy", "describe", "gpus", "prod").code == NOT_FOUND


def test_a_team_that_was_mistyped_hears_that_nothing_is_counted(machine: Machine) -> None:
    """S15."""
    none = machine("run", "--gpus", "1", "--", "true")
    assert none.code == 0 and "fairpool policy attach POOL SUBJECT" in none.err
    machine.ok("pool", "create", "gpus", "--capacity", "gpu=1")
    machine.ok("policy", "attach", "gpus", "team:research")
    slip = machine("run", "--gpus", "1", "--team", "reserch", "--", "true")
    assert slip.code == 0 and "did you mean --team research?" in slip.err


def test_a_frame_of_top_that_goes_into_a_file_is_not_cut(pooled: Machine) -> None:
    long = "-".join(["a-name-of-many-words"] * 9)
    ask(pooled, long, gpus=2)
    ask(pooled, "waits")
    told = pooled.ok("top", "--once")
    assert long in told and "…" not in told
    assert "1st in line for pool gpus: pool gpus has 0 gpu free of 2, 1 asked for" in told


def test_a_backup_does_not_take_the_place_of_another_file(pooled: Machine) -> None:
    there = pooled.file("backup.db")
    there.write_text("mine")
    done = pooled("db", "backup", str(there))
    assert done.code == FAILED and "exists: name another file, or remove this one" in done.err
    assert there.read_text() == "mine"

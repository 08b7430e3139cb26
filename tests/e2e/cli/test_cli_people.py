"""People, teams, service accounts and tokens on the command line, with the real program and a real server."""

from __future__ import annotations

import json

import pytest

from tests.e2e.cli.conftest import Done, Machine

pytestmark = pytest.mark.usefixtures("served")

NOT_FOUND, NOT_ALLOWED, CONFLICT, USAGE = 3, 4, 5, 2


@pytest.fixture
def team(machine: Machine) -> Machine:
    """An admin, Alice in team vision, which has two GPUs, and Bob in no team."""
    machine.ok("user", "create", "root", "--role", "admin")
    machine.ok("user", "create", "alice")
    machine.ok("user", "create", "bob")
    machine.ok("team", "create", "vision", "--member", "alice")
    machine.ok("pool", "create", "gpus", "--capacity", "gpu=2")
    machine.ok("policy", "attach", "gpus", "team:vision", "--reserved", "gpu=2")
    return machine


def token(machine: Machine, whose: str, name: str = "laptop") -> str:
    return machine.ok("token", "create", name, "--for", whose).strip()


def as_(machine: Machine, text: str, *words: str, **environment: str) -> Done:
    return machine(*words, FAIRPOOL_TOKEN=text, **environment)


def test_membership_is_the_whole_onboarding(team: Machine) -> None:
    bob = token(team, "user:bob")
    asked = ("run", "--gpus", "1", "--pool", "gpus", "--", "true")
    refused = as_(team, bob, *asked)
    assert refused.code == 6, refused.err
    team.ok("team", "add", "vision", "bob")
    assert as_(team, bob, *asked).code == 0
    assert as_(team, bob, *asked, FAIRPOOL_TEAM="vision").code == 0
    told = as_(team, bob, *asked, FAIRPOOL_TEAM="nlp")
    assert told.code == NOT_ALLOWED and "you are not in team 'nlp'" in told.err and "team vision" in told.err
    team.ok("team", "remove", "vision", "bob")
    assert as_(team, bob, *asked).code == 6


def test_a_run_is_whose_the_token_is_whatever_the_machine_calls_them(team: Machine) -> None:
    alice = token(team, "user:alice")
    assert as_(team, alice, "run", "--gpus", "1", "--", "true").code == 0
    [run] = json.loads(as_(team, alice, "runs", "list", "-o", "json").out)
    assert run["user"] == "alice"
    [request] = json.loads(as_(team, alice, "request", "list", "--view", "all", "-o", "json").out)
    assert request["subjects"] == ["component:local", "team:vision", "user:alice"]
    bob = token(team, "user:bob")
    assert json.loads(as_(team, bob, "runs", "list", "-o", "json").out) == []


def test_a_token_is_shown_once_and_revoked_by_name(team: Machine) -> None:
    made = team("token", "create", "laptop", "--for", "user:alice", "--expires", "12h")
    text = made.out.strip()
    assert text.startswith("fp_") and "not shown again" in made.err
    listed = team.ok("token", "list", "-o", "wide")
    assert "laptop" in listed and text not in listed
    assert as_(team, text, "team", "list").out.count("vision") == 1
    assert team("token", "revoke", "laptop").code == USAGE, "there is no terminal to ask at"
    team.ok("token", "revoke", "laptop", "--yes")
    refused = as_(team, text, "team", "list")
    assert refused.code == NOT_ALLOWED and "was revoked" in refused.err
    assert "laptop" not in team.ok("token", "list")
    assert "revoked" in team.ok("token", "list", "--all")


def test_only_a_service_account_s_token_lasts_for_ever(team: Machine) -> None:
    team.ok("service-account", "create", "ci", "--team", "vision")
    team.ok("token", "create", "deploy", "--for", "service-account:ci", "--expires", "never")
    refused = team("token", "create", "laptop", "--for", "user:alice", "--expires", "never")
    assert refused.code == USAGE and "at most 366 days" in refused.err
    assert "never" in team.ok("token", "list", "--for", "service-account:ci")


def test_deleting_names_what_goes_along(team: Machine) -> None:
    token(team, "user:alice")
    asking = team.terminal("user", "delete", "alice")
    asking.expect("Delete user alice\\? Leaves team vision. Token is revoked: laptop.")
    asking.sendline("y")
    asking.expect("user alice deleted")
    asked = team("team", "delete", "vision")
    assert asked.code == USAGE and "Policy goes along: gpus/team:vision." in asked.err
    team.ok("team", "delete", "vision", "--yes")
    assert "team:vision" not in team.ok("policy", "list")


def test_a_team_s_new_name_is_followed(team: Machine) -> None:
    team.ok("team", "update", "vision", "--name", "sight")
    assert "team:sight" in team.ok("policy", "list")
    alice = token(team, "user:alice")
    assert as_(team, alice, "run", "--gpus", "1", "--team", "sight", "--", "true").code == 0


def test_the_last_admin_stays(team: Machine) -> None:
    for words in (("user", "delete", "root", "--yes"), ("user", "update", "root", "--role", "viewer")):
        refused = team(*words)
        assert refused.code == CONFLICT and "last admin" in refused.err


def test_what_a_role_does_not_cover_is_refused_with_the_role_that_does(team: Machine) -> None:
    alice = token(team, "user:alice")
    refused = as_(team, alice, "pool", "create", "mine", "--capacity", "gpu=1")
    assert refused.code == NOT_ALLOWED
    assert "role member" in refused.err and "admin or operator" in refused.err

"""Vaults at the real program: secrets reach the step, and nobody and nothing else."""

from __future__ import annotations

import subprocess
import textwrap
from pathlib import Path

import pytest

from fairpool.wire.policies import PolicyCreate
from fairpool.wire.pools import PoolCreate
from tests.e2e.cli.conftest import PROGRAM, Machine

SECRET = "correct-horse-battery"
CONFLICT, USAGE, NOT_FOUND = 5, 2, 3
SHOW = 'echo "$TOKEN|$REGION|$HOME_OF_MODELS|$FAIRPOOL_IMAGE" > seen'


@pytest.fixture
def vaulted(machine: Machine) -> Machine:
    """A machine whose server has a key, with one pool that team vision may use."""
    machine.environment["FAIRPOOL_VAULT_KEY"] = machine.ok("vault", "key").strip()
    machine.ok("pool", "list")  # starts the server, with this environment
    machine.client.create_pool(PoolCreate(name="gpus", capacity={"gpu": 2}))
    machine.client.attach_policy(PolicyCreate(pool="gpus", subject="team:vision"))
    return machine


def fill(machine: Machine) -> None:
    done = machine(
        "vault", "set", "vision", "--secret", "TOKEN", "--env", "HOME_OF_MODELS=/models", stdin=SECRET + "\n"
    )
    assert done.code == 0, done.err
    assert "vault vision: HOME_OF_MODELS, TOKEN set" in done.err
    machine.ok("vault", "set", "vision", "--env", "REGION=eu", "--image", "train:1", "--locked")


def everything_written(folder: Path) -> bytes:
    """All that the server and its callers have left in files."""
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != "seen")


def test_a_command_gets_defaults_and_locks_and_nothing_keeps_the_secret(vaulted: Machine) -> None:
    fill(vaulted)
    done = vaulted("run", "--team", "vision", "--gpus", "1", "--", "sh", "-c", SHOW)
    assert done.code == 0, done.err
    assert vaulted.file("seen").read_text() == f"{SECRET}|eu|/models|train:1\n"
    shown = vaulted.ok("vault", "describe", "vision")
    assert "TOKEN" in shown and "read" in shown and "REGION (locked)" in shown
    told = [
        vaulted.ok("vault", "describe", "vision", "-o", "yaml"),
        vaulted.ok("vault", "list", "-o", "json"),
        vaulted.ok("request", "list", "-o", "json"),
        shown,
        done.err,
    ]
    assert all(SECRET not in text for text in told)
    vaulted.end_server()
    assert SECRET.encode() not in everything_written(vaulted.folder)


def test_what_a_step_sets_itself_wins_over_defaults_and_loses_to_locks(vaulted: Machine) -> None:
    fill(vaulted)
    done = vaulted.start(
        "run", "--team", "vision", "--", "sh", "-c", SHOW, environment={"REGION": "us", "HOME_OF_MODELS": "/mine"}
    )
    _, told = done.communicate(timeout=90)
    assert vaulted.file("seen").read_text() == f"{SECRET}|eu|/mine|train:1\n"
    assert "REGION is locked by the vault of team vision: what was set here is not used" in told


def test_other_teams_get_nothing_of_it(vaulted: Machine) -> None:
    fill(vaulted)
    vaulted.client.attach_policy(PolicyCreate(pool="gpus", subject="team:speech"))
    vaulted.ok("run", "--team", "speech", "--", "sh", "-c", SHOW)
    assert vaulted.file("seen").read_text() == "|||\n"


def test_steps_and_holds_of_a_program_get_it(vaulted: Machine) -> None:
    fill(vaulted)
    vaulted.file("program.py").write_text(
        textwrap.dedent(
            """
            import os
            from fairpool import ResourceSettings, hold, pipeline, step

            @step(settings={"resources": ResourceSettings(gpu_count=1)})
            def train():
                return os.environ["TOKEN"] == "correct-horse-battery", os.environ["REGION"]

            @pipeline
            def run():
                return train()

            print(run())
            with hold(gpu_count=1) as held:
                print(held.environment["TOKEN"] == "correct-horse-battery", held.environment["REGION"])
            """
        )
    )
    done = subprocess.run(
        [str(Path(PROGRAM).with_name("python")), "program.py"],
        cwd=vaulted.folder,
        env={**vaulted.environment, "FAIRPOOL_SUBJECTS": "team:vision"},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.stdout.splitlines() == ["(True, 'eu')", "True eu"], done.stderr


def test_without_a_key_the_server_says_what_to_do(machine: Machine) -> None:
    machine.ok("team", "create", "vision")
    done = machine("vault", "set", "vision", "--secret", "TOKEN", stdin=SECRET + "\n")
    assert done.code == CONFLICT
    assert "FAIRPOOL_VAULT_KEY" in done.err and "fairpool vault key" in done.err and SECRET not in done.err
    assert machine("vault", "describe", "vision").code == NOT_FOUND


def test_a_server_that_lost_its_key_fails_the_step_and_says_why(vaulted: Machine) -> None:
    fill(vaulted)
    vaulted.end_server()
    del vaulted.environment["FAIRPOOL_VAULT_KEY"]
    done = vaulted("run", "--team", "vision", "--", "sh", "-c", SHOW)
    assert done.code == CONFLICT
    assert "sealed with a key that this server does not have" in done.err
    assert not vaulted.file("seen").exists()
    assert [request.status.is_final for request in vaulted.requests()] == [True]


def test_names_are_taken_out_and_a_vault_is_deleted_by_who_says_yes(vaulted: Machine) -> None:
    fill(vaulted)
    assert vaulted("vault", "unset", "vision", "TOKN").code == USAGE
    vaulted.ok("vault", "unset", "vision", "TOKEN", "--image")
    found = vaulted.json("vault", "describe", "vision")
    assert (found["secrets"], found.get("image")) == ({}, None)
    assert vaulted("vault", "delete", "vision").code == USAGE
    vaulted.ok("vault", "delete", "vision", "--yes")
    assert vaulted.ok("vault", "list", "--no-headers") == ""
    assert vaulted("vault", "set", "vision").code == USAGE
    assert vaulted("vault", "set", "vision", "--secret", "TOKEN").code == USAGE


def test_secrets_are_sealed_anew_with_a_new_key(vaulted: Machine) -> None:
    fill(vaulted)
    vaulted.end_server()
    new = vaulted.ok("vault", "key").strip()
    vaulted.environment["FAIRPOOL_VAULT_KEY"] = f"{new},{vaulted.environment['FAIRPOOL_VAULT_KEY']}"
    assert "secrets 1, of vaults 1" in vaulted("vault", "rotate").err
    vaulted.end_server()
    vaulted.environment["FAIRPOOL_VAULT_KEY"] = new
    vaulted.ok("run", "--team", "vision", "--", "sh", "-c", SHOW)
    assert vaulted.file("seen").read_text().startswith(SECRET)

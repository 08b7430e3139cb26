"""Whoever follows these pages from the first line to the last sees what they show: every session is typed for real."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path

import pytest

from fairpool.client.signing_in import machine_name
from fairpool.wire.requests import RequestCreate
from tests.e2e.cli.conftest import PROGRAM, Machine
from tests.e2e.docs.reader import Reader, is_what_was_told, steps
from tests.e2e.docs.test_pages import ROOT, blocks
from tests.integration.serving import begin
from tests.oidc.installation import comes_back_to, free_port
from tests.oidc.processes import CLIENT_SECRET, obedient_provider
from tests.postgres import Cluster

VAULT_KEY = "AGu870W9ySmlrABraYHAPpYtYQ410uEem9DQKW6PyV0="
HOW_TO = ROOT / "docs" / "how-to"
SOMEBODY_OF_RESEARCH = (
    "unset FAIRPOOL_TOKEN",
    "fairpool user create ada",
    "fairpool team create research --member ada",
    "export FAIRPOOL_TOKEN=$(fairpool token create laptop --for user:ada 2> /dev/null)",
)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """Where the page is followed."""
    machine = Machine(tmp_path)
    machine.environment["PATH"] = f"{Path(PROGRAM).parent}:{machine.environment['PATH']}"
    yield machine
    machine.end_server()
    machine.close()


def follow(
    machine: Machine,
    page: Path,
    *,
    replaced: Mapping[str, str] | None = None,
    before: Mapping[str, Sequence[str]] | None = None,
    until: str = "",
) -> list[str]:
    """Type the sessions of a page; the commands that showed something else than it says, with what they showed.

    before: what is to be typed before the session that begins with this line, since it is somebody else's. until: the
    line at which to stop.
    """
    reader = Reader(machine.folder, machine.environment, replaced or {})
    wrong: list[str] = []
    try:
        for block in blocks("console"):
            session = steps(block.text) if block.page == page else []
            for line in (before or {}).get(session[0][0], ()) if session else ():
                reader.type(line)
            for line, told in session:
                if until and line.startswith(until):
                    return wrong
                shown = reader.type(line)
                if not is_what_was_told([reader.here(said) for said in told], shown):
                    wrong.append("\n".join((f"{block}: $ {line}", *shown)))
        assert not until, f"{page.name} has no line {until!r}"
    finally:
        reader.close()
    return wrong


def test_the_tutorial_up_to_where_it_takes_two_terminals(machine: Machine) -> None:
    tutorial = ROOT / "docs" / "tutorials" / "first-pool.md"
    assert follow(machine, tutorial, until="fairpool run --gpus 3") == []


@pytest.mark.timeout(300)
def test_production_is_protected_as_the_page_says(machine: Machine) -> None:
    for script in ("nightly.sh", "serve.sh"):
        machine.file(script).write_text("#!/bin/sh\n")
        machine.file(script).chmod(0o700)
    before = {
        "fairpool run --profile serve -- true": SOMEBODY_OF_RESEARCH,
        "fairpool policy update gpus/team:research --grace 10 --min-runtime 300": ["unset FAIRPOOL_TOKEN"],
    }
    assert follow(machine, HOW_TO / "protect-production.md", before=before) == []


@pytest.mark.timeout(300)
def test_profiles_are_offered_as_queues_as_the_page_says(machine: Machine) -> None:
    assert follow(machine, HOW_TO / "queues.md") == []


@pytest.mark.timeout(300)
def test_a_vault_is_filled_and_used_as_the_page_says(machine: Machine) -> None:
    machine.environment |= {"FAIRPOOL_VAULT_KEY": VAULT_KEY, "KEY": "s3cret"}
    assert follow(machine, HOW_TO / "vaults.md") == []


@pytest.mark.timeout(300)
def test_a_server_is_run_for_a_team_as_the_page_says(machine: Machine) -> None:
    machine.file("train.py").touch()
    port = str(free_port())
    replaced = {"10.0.0.5": "127.0.0.1", "8080": port}
    # Alice has kept what was shown when her token was made.
    again = ("fairpool token revoke laptop --yes", "fairpool token create laptop --for user:alice")
    before = {"export FAIRPOOL_SERVER=http://10.0.0.5:8080 FAIRPOOL_TOKEN=fp_…": again}
    page = HOW_TO / "run-for-a-team.md"
    assert follow(machine, page, replaced=replaced, before=before, until="createuser") == []


@pytest.mark.timeout(300)
def test_rules_are_kept_in_files_as_the_page_says(machine: Machine) -> None:
    machine.environment["NO_COLOR"] = "1"
    page = HOW_TO / "rules-as-files.md"
    look, again, changed, mistyped, tokens = (steps(block.text) for block in blocks("console") if block.page == page)
    (rules,) = (block.text for block in blocks("yaml") if block.page == page and "kind: pool" in block.text)
    file = machine.file("rules/gpus.yaml")
    file.parent.mkdir()
    file.write_text(rules)
    assert typed_at_a_terminal(machine, *look[0]) == []
    reader = Reader(machine.folder, machine.environment, {"examples/": f"{ROOT}/examples/", "2026-11-21": "1h"})

    def followed(session: list[tuple[str, list[str]]]) -> list[str]:
        return [line for line, told in session if not is_what_was_told(told, reader.type(line))]

    try:
        assert followed(again) == []
        for name, subject in (("sweep", "team:blue"), ("train", "team:red")):
            machine.client.submit(RequestCreate(subjects=[subject], name=name, demand={"gpu": Decimal(6)}))
        file.write_text(rules.replace("{gpu: 4}", "{gpu: 6}"))
        assert followed(changed) == []
        file.write_text(rules.replace("reserved: {gpu: 4}", "reservd: {gpu: 4}"))
        assert followed(mistyped) == []
        file.write_text(rules)
        assert followed(tokens) == []
        lines = [line for block in blocks("sh") if block.page == page for line in block.text.splitlines()]
        assert "fairpool apply -f rules --prune --dry-run" in lines
        ending = [line for line in lines if "--follow" not in line]
        assert [line for line in ending if reader.type(f"{line} > shown 2>&1; echo $?") != ["0"]] == []
    finally:
        reader.close()


def typed_at_a_terminal(machine: Machine, line: str, told: list[str]) -> list[str]:
    """What a command that asks showed instead of what the page says, where that is something else; answered with y."""
    asked = machine.terminal(*line.split()[1:])
    asked.expect_exact("[y/N]: ")
    shown = [*asked.before.splitlines()]
    asked.sendline("y")
    asked.expect_exact(told[-1])
    asked.wait()
    assert asked.exitstatus == 0
    shown[-1] += "[y/N]: y"
    return [] if is_what_was_told(told[:-1], [each for each in shown if each]) else shown


@pytest.mark.timeout(300)
def test_back_up_restore_and_move_to_postgresql(machine: Machine, postgres_cluster: Cluster) -> None:
    for name in ("backups", "aside"):
        machine.file(name).mkdir()
    machine.ok("pool", "create", "gpus", "--capacity", "gpu=4")
    url = postgres_cluster.new_database()
    replaced = {
        " /tmp/": f" {machine.file('aside')}/",
        "/backups/": f"{machine.file('backups')}/",
        "~/.local/share/fairpool": str(machine.data),
        "/home/ada/.local/share/fairpool": str(machine.data),
        "postgresql://fairpool@db.example/fairpool": url,
        "'fairpool' at db.example": f"'{url.rpartition('/')[2]}' at 127.0.0.1:{postgres_cluster.port}",
    }
    try:
        assert follow(machine, HOW_TO / "back-up.md", replaced=replaced) == []
    finally:
        postgres_cluster.drop_database(url)


@pytest.mark.timeout(300)
def test_people_sign_in_as_the_page_says(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    page, port, secret = HOW_TO / "sign-in.md", free_port(), machine.file("oidc-secret")
    with obedient_provider() as provider:
        provider.client(comes_back_to(port))
        provider.user("ada", groups=["ml-vision"])
        provider.wrong(entered_by=["ada", True])
        here = {
            "https://id.example.org/realms/company": provider.url,
            "https://id.example.org": provider.url,
            "https://gpus.example.org": f"http://127.0.0.1:{port}",
            "/etc/fairpool/oidc-secret": str(secret),
            "token laptop": f"token {machine_name()}",
            "token login-3": f"token {machine_name()}-2",
        }
        secret.write_text(CLIENT_SECRET + "\n")
        configuration = machine.file("config") / "fairpool" / "config.toml"
        configuration.parent.mkdir(parents=True)
        (told,) = (block.text for block in blocks("toml") if block.page == page)
        configuration.write_text(functools.reduce(lambda text, said: text.replace(*said), here.items(), told))
        monkeypatch.setenv("FAIRPOOL_CONFIG", str(configuration))
        begin(machine.data, "--port", str(port))
        browser = f"{sys.executable} -m tests.oidc.robot ada yes %s"
        machine.environment |= {"BROWSER": browser, "PYTHONPATH": str(ROOT)}
        assert follow(machine, page, replaced=here, until="fairpool login --token") == []


def test_what_is_shown_otherwise_is_noticed(machine: Machine) -> None:
    assert is_what_was_told(["pool gpus created: gpu 4", "in … ID"], ["pool gpus created:  gpu 4", "in a 0 ID"])
    assert not is_what_was_told(["pool gpus created: gpu 4"], ["pool gpus created: gpu 5"])
    assert not is_what_was_told(["a"], ["a", "b"])
    assert steps("$ a\nb\n$ c\n") == [("a", ["b"]), ("c", [])]
    reader = Reader(machine.folder, machine.environment, {"hello": "bye"})
    assert reader.type("echo hello") == ["bye"]
    reader.close()

"""`fairpool simulate` and `apply --replay`, as somebody types them."""

from __future__ import annotations

import json
import shutil
import signal
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.e2e.cli.conftest import Machine

EXAMPLE = Path(__file__).parents[3] / "examples" / "simulation"
DAY = str(EXAMPLE / "philly-2017-10-03.csv")
NOW, PROPOSED = str(EXAMPLE / "now"), str(EXAMPLE / "proposed")

RULES = """
kind: pool
name: gpus
capacity: {gpu: 2}
---
kind: policy
pool: gpus
subject: team:red
reserved: {gpu: 2}
"""


def test_two_rules_are_compared_on_a_day_of_real_demand_and_written_in_every_form(machine: Machine) -> None:
    done = machine(
        "simulate", DAY, "--rules", NOW, "--against", PROPOSED, "--json", "a.json", "--csv", "a.csv", "--html", "a.html"
    )
    assert done.code == 0, done.err
    assert "Waits by team" in done.out
    assert "Who lose most" in done.out
    assert "policy of 6c71a0 on gpus: reserved 8 gpu instead of 32 gpu" in done.out
    assert "in line for pool gpus: " in " ".join(done.out.split()), "why they waited is told under each"
    assert done.err.splitlines() == ["wrote a.json", "wrote a.csv", "wrote a-figures.csv", "wrote a.html"]
    assert json.loads((machine.folder / "a.json").read_text())["schema_version"] == 1
    assert len((machine.folder / "a.csv").read_text().splitlines()) == 1 + 2 * 339
    page = (machine.folder / "a.html").read_text()
    HTMLParser().feed(page)
    assert "<svg" in page
    assert not (machine.data / "fairpool.db").exists(), "no server is needed"


def test_who_stops_reading_what_is_printed_has_the_files_all_the_same(machine: Machine) -> None:
    simulating = machine.start("simulate", DAY, "--rules", NOW, "--html", "a.html")
    assert simulating.stdout is not None
    simulating.stdout.close()
    simulating.wait(timeout=60)
    assert "<svg" in (machine.folder / "a.html").read_text()


def test_the_same_simulation_twice_prints_the_same(machine: Machine) -> None:
    words = ("simulate", DAY, "--rules", NOW, "--scale-demand", "4/3", "--seed", "7", "--progress", "lost")
    assert machine.ok(*words) == machine.ok(*words)


def test_a_scenario_file_gives_rules_too(machine: Machine) -> None:
    (machine.folder / "story.yaml").write_text(
        "scenario: s\npools: {p: {capacity: {gpu: 1}}}\npolicies: [{pool: p, subject: team:red}]\nsteps: []\n"
    )
    (machine.folder / "jobs.csv").write_text("submitted_at,run_s,subject,gpu\n0,60,team:red,1\n0,60,team:red,1\n")
    printed = machine.ok("simulate", "jobs.csv", "--rules", "story.yaml")
    assert "30s" in printed, "one of two jobs of a minute waits for the other"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "name a TRACE, or --history"),
        (("jobs.csv",), "--rules is missing"),
        (("jobs.csv", "--rules", "rules", "--cut"), "--cut needs --until"),
        (("jobs.csv", "--rules", "none"), "none"),
        (("bad.csv", "--rules", "rules"), "bad.csv:2: run_s: 'soon' is no number of seconds"),
        (("jobs.csv", "--rules", "rules", "--scale-demand", "0"), "--scale-demand 0"),
        (("jobs.csv", "--rules", "rules", "--against", "rules"), "there is nothing to compare"),
        (("jobs.csv", "--rules", "rules", "--since", "2030-01-01"), "none of 1 jobs was asked for in that time"),
        (("profile.csv", "--rules", "rules"), "job 1 cannot be asked for under these rules: no profile 'half'"),
        (("jobs.csv", "--rules", "wrong.yaml"), "wrong.yaml:3: "),
    ],
)
def test_what_cannot_be_simulated_is_refused_with_its_reason(
    machine: Machine, words: tuple[str, ...], told: str
) -> None:
    (machine.folder / "rules").mkdir()
    (machine.folder / "rules" / "all.yaml").write_text(RULES)
    (machine.folder / "wrong.yaml").write_text("kind: pool\nname: gpus\ncapacity: {gpu: -1}\n")
    (machine.folder / "jobs.csv").write_text("submitted_at,run_s,subject,gpu\n0,60,team:red,1\n")
    (machine.folder / "bad.csv").write_text("submitted_at,run_s,subject,gpu\n0,soon,team:red,1\n")
    (machine.folder / "profile.csv").write_text("submitted_at,run_s,subject,profile\n0,60,team:red,half\n")
    done = machine("simulate", *words)
    assert (done.code, done.out) == (2, "")
    assert told in done.err
    assert "Traceback" not in done.err


def test_a_change_is_replayed_on_what_was_recorded_before_it_applies(machine: Machine) -> None:
    folder = machine.folder / "rules"
    folder.mkdir()
    (folder / "all.yaml").write_text(RULES)
    machine.ok("apply", "-f", "rules", "--yes")
    machine.ok("run", "--gpus", "1", "--team", "red", "--", "true")
    machine.ok("run", "--gpus", "2", "--team", "red", "--", "true")
    printed = machine.ok("simulate", "--history", "--since", "1h")
    assert "(all)" in printed
    (folder / "all.yaml").write_text(RULES.replace("gpu: 2", "gpu: 1"))
    plan = machine("apply", "-f", "rules", "--replay", "1d", "--dry-run", "--replay-html", "change.html")
    assert plan.code == 0, plan.err
    assert "capacity.gpu: 2 -> 1" in plan.out.replace("→", "->")
    assert "rules now" in plan.out
    assert "rules then" in plan.out
    assert (machine.folder / "change.html").read_text().lower().startswith("<!doctype html>")
    assert machine.ok("pool", "list", "--columns", "used", "--no-headers").strip() == "gpu 0/2"


def test_ctrl_c_keeps_what_was_reached(machine: Machine) -> None:
    shutil.copytree(NOW, machine.folder / "rules")
    lines = ["submitted_at,run_s,subject,gpu"]
    lines += [f"{at},3600,team:{('11cb48', '2869ce')[at % 2]},1" for at in range(60_000)]
    (machine.folder / "jobs.csv").write_text("\n".join(lines))
    terminal = machine.terminal("simulate", "jobs.csv", "--rules", "rules")
    terminal.expect("Ctrl-C keeps what was reached", timeout=60)
    terminal.kill(signal.SIGINT)
    terminal.expect("Waits by team", timeout=60)
    terminal.expect("stopped before the end", timeout=60)
    terminal.wait()
    assert terminal.exitstatus == 130

"""Whole programs against a real server that the first of them starts, in a private data folder."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from tests.e2e.sdk.conftest import Installation
from tests.tidy.tree import ROOT
from tests.waiting import wait_until

STACKS = """
    from fairpool import *
    from pathlib import Path
    import threading
    def on(component):
        return Stack(orchestrator=LocalOrchestrator(component))
    GPU = {"resources": {"gpu_count": 1}}
"""
RESEARCH = (
    STACKS
    + """
    @step(settings={"resources": {"gpu_count": 2}}, retry=StepRetryConfig(max_retries=RETRIES))
    def train(epochs):
        context = get_step_context()
        done = context.load_checkpoint([])
        while len(done) < epochs:
            if context.attempt == 1 and len(done) == 2:
                Path("at-two").touch()
                while not context.aborting:
                    threading.Event().wait(0.01)
            context.raise_if_aborting()
            done.append((context.attempt, len(done)))
            context.save_checkpoint(done)
        return done

    @pipeline(stack=on("research"))
    def research():
        return train(4)

    print(research())
"""
)
PRODUCTION = (
    STACKS
    + """
    @step(settings={"resources": {"gpu_count": 2, "preemptible": False}})
    def serve():
        return get_step_context().devices

    @pipeline(stack=on("prod"))
    def production():
        return serve()

    print(production())
"""
)
HOLDER = (
    STACKS
    + """
    with hold(gpu_count=2, component="research") as held:
        Path("holds").write_text(held.request)
        threading.Event().wait()
"""
)


def two_teams(machine: Installation) -> None:
    machine.pool("gpus", gpu=2)
    machine.component("research")
    machine.component("prod")
    machine.policy("gpus", "component:research")
    machine.policy("gpus", "component:prod", gpu=2)


def one_policy(machine: Installation, component: str = "local") -> None:
    machine.pool("gpus", gpu=2)
    if component != "local":
        machine.component(component)
    machine.policy("gpus", f"component:{component}")


def outcome(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=90)
    return process.returncode, out, err


@pytest.mark.parametrize(
    ("example", "says"),
    [
        ("first_pipeline", "best slope: 3.0"),
        ("hold_any_program", "5 rounds, and given back"),
        ("preemptible_training", "weight: 0.999"),
        ("custom_orchestrator", "the step ran with niceness"),
    ],
)
def test_an_example_runs_where_nothing_was_configured(machine, example, says):
    assert says in machine.run((ROOT / "examples" / f"{example}.py").read_text(encoding="utf-8"), example)


def test_production_gets_its_reservation_back_and_research_resumes_from_its_checkpoint(machine):
    """S24, S31, S32: research borrows, saves, lets go, queues again and goes on where it was."""
    two_teams(machine)
    research = machine.start(RESEARCH.replace("RETRIES", "3"), "research")
    wait_until((machine.folder / "at-two").exists, what="research has done two epochs")
    assert machine.run(PRODUCTION, "production") == "('0', '1')\n"
    code, out, err = outcome(research)
    assert code == 0, err
    assert out == "[(1, 0), (1, 1), (2, 2), (2, 3)]\n"
    assert machine.statuses() == ["preempted", "released", "released"]


def test_without_retries_research_fails_with_the_reason(machine):
    """S32."""
    two_teams(machine)
    research = machine.start(RESEARCH.replace("RETRIES", "0"), "research")
    wait_until((machine.folder / "at-two").exists, what="research has done two epochs")
    machine.run(PRODUCTION, "production")
    code, _, err = outcome(research)
    assert code == 1 and "StepPreempted: step train was preempted in pool 'gpus'" in err


def test_what_a_killed_program_held_is_granted_to_the_next(machine):
    """S35: the lease lapses."""
    one_policy(machine, "research")
    holder = machine.start(HOLDER, "holder")
    wait_until((machine.folder / "holds").exists, what="it holds both GPUs")
    holder.kill()
    machine.run(STACKS + '    hold(gpu_count=2, component="research").acquire().release()\n', "next")
    first = (machine.folder / "holds").read_text()
    assert machine.client.request(first).status == "expired"


def test_an_interrupted_run_releases_everything_and_is_cancelled(machine):
    one_policy(machine)
    process = machine.start(
        STACKS
        + """
    @step(settings=GPU)
    def forever(mark):
        Path(mark).touch()
        while True:
            threading.Event().wait(0.01)

    @pipeline
    def many():
        forever.map([f"mark-{index}" for index in range(4)])

    many()
"""
    )
    marks = [machine.folder / f"mark-{index}" for index in range(4)]
    wait_until(lambda: sum(mark.exists() for mark in marks) == 2, what="two run and two wait")
    process.send_signal(signal.SIGINT)
    assert outcome(process)[0] == -signal.SIGINT
    assert machine.statuses() == ["cancelled", "cancelled", "released", "released"]
    assert [run.status.value for run in machine.client.runs()] == ["cancelled"]


def test_a_run_goes_on_when_the_server_is_killed_and_started_again(machine):
    """S34: the step does not notice, and its release finds the request where it was."""
    one_policy(machine)
    process = machine.start(
        STACKS
        + """
    @step(settings=GPU)
    def waits():
        Path("runs").touch()
        while not Path("go").exists():
            threading.Event().wait(0.01)
        return "done"

    @pipeline
    def one():
        return waits.submit().result(), waits()

    print(one())
"""
    )
    wait_until((machine.folder / "runs").exists, what="the step runs")
    machine.kill_server()
    (machine.folder / "go").touch()
    code, out, err = outcome(process)
    assert (code, out) == (0, "('done', 'done')\n"), err
    assert machine.statuses() == ["released", "released"]


@pytest.mark.slow
def test_a_driver_waits_on_a_thousand_steps_without_a_thread_each(machine):
    one_policy(machine)
    with_a_thousand = (
        STACKS
        + """
    @step(settings={"resources": {"gpu_count": 2}})
    def never(number):
        raise AssertionError("it must not run")

    @pipeline
    def many():
        futures = never.map(range(1000))
        while not Path("go").exists():
            threading.Event().wait(0.05)
        print(threading.active_count())
        for future in futures:
            future.cancel()

    with hold(gpu_count=2, component="local"):
        many()
"""
    )
    process = machine.start(with_a_thousand)
    waiting = lambda: len(list(machine.client.requests(view="queued")))  # noqa: E731
    wait_until(lambda: waiting() == 1000, what="a thousand wait", timeout_s=60)
    (machine.folder / "go").touch()
    code, out, err = outcome(process)
    assert code == 0, err
    assert int(out) <= 1 + 4  # the main thread, and those of the driver
    assert machine.statuses() == ["cancelled"] * 1000 + ["released"]


def test_runs_and_their_logs_are_shown(machine):
    machine.run((ROOT / "examples" / "first_pipeline.py").read_text(encoding="utf-8"), "first_pipeline")
    [listed] = machine.client.runs()
    run = machine.client.run(listed.id)
    assert (run.name, run.status, run.counts) == ("sweep", "completed", {"completed": 4})
    assert sorted(step.name for step in run.steps) == ["load", "train", "train", "train"]
    assert {step.requests[0].status.value for step in run.steps} == {"released"}
    assert any("rate 0.1: slope" in Path(step.log).read_text() for step in run.steps)


def test_a_request_that_can_never_be_granted_fails_the_step_with_reasons(machine):
    one_policy(machine)
    process = machine.start(
        STACKS
        + """
    @step(settings={"resources": {"gpu_count": 3}})
    def large():
        pass

    large()
"""
    )
    code, _, err = outcome(process)
    assert code == 1 and "StepRejected: step large can never run" in err and "2" in err


def test_logs_and_results_lie_in_the_data_folder(machine):
    machine.run(STACKS + "    @step\n    def one():\n        return 1\n    one()\n")
    assert list(Path(machine.data, "artifacts").glob("*/one-0/output"))
    assert list(Path(machine.data, "runs").glob("*/one-0.1.log"))

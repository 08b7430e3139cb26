"""Whole programs as people write them: scripts whose steps, classes and errors live in ``__main__``."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.tidy.tree import ROOT
from tests.waiting import wait_until

RUNNER = Path(__file__).parent / "programs" / "with_a_server_in_memory.py"
Start = Callable[[str], "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Write a program to a file of its own and start it."""
    started = []

    def write_and_start(text: str) -> subprocess.Popen[str]:
        program = tmp_path / "program.py"
        program.write_text(textwrap.dedent(text))
        environment = {**os.environ, "FAIRPOOL_DATA_DIR": str(tmp_path / "data"), "PYTHONPATH": str(ROOT)}
        process = subprocess.Popen(
            [sys.executable, str(RUNNER), str(program)],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield write_and_start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def output_of(process: subprocess.Popen[str]) -> str:
    """What the program wrote, once it has ended well."""
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return out


SLEEPER = """
    import os, subprocess, sys, time
    from pathlib import Path
    from fairpool import get_step_context, pipeline, step

    @step(settings={"resources": {"gpu_count": 1}})
    def sleeper():
        context = get_step_context()
        context.on_abort(lambda: Path("aborted").write_text(context.abort_reason))
        helper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        Path("beside").write_text(f"{os.getpid()} {helper.pid}")
        Path("beside").rename("pids")
        while True:
            time.sleep(0.01)

    @pipeline
    def forever():
        sleeper()

    try:
        forever()
    finally:
        print(sorted(view.status.value for view in server.requests.values()))
        print([run["status"].value for run in server.runs.values()])
"""


def pids_of_step(folder: Path) -> list[int]:
    """The ids of the step's process and of the one that it started, once both are there."""
    wait_until((folder / "pids").exists, what="the step runs")
    return [int(word) for word in (folder / "pids").read_text().split()]


def wait_until_gone(pids: list[int]) -> None:
    """Zombies do not count: whoever adopted them collects them when it likes."""

    def none_left() -> bool:
        return not any(psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie" for pid in pids)

    wait_until(none_left, what="all processes of the step have ended")


def test_classes_and_errors_of_a_script_are_the_same_ones_after_the_round_trip(start):
    process = start(
        """
        from dataclasses import dataclass
        from fairpool import pipeline, step

        class Trouble(Exception):
            pass

        @dataclass
        class State:
            epoch: int

        @step
        def advance(state):
            assert isinstance(state, State)
            return State(state.epoch + 1)

        @step
        def trouble():
            raise Trouble("here")

        @pipeline
        def both():
            result = advance(advance.submit(State(1)))
            try:
                trouble()
            except Trouble as error:
                return isinstance(result, State), result.epoch, str(error)

        print(both())
        """
    )
    assert output_of(process) == "(True, 3, 'here')\n"


def test_modules_beside_a_script_are_found_by_its_steps(start, tmp_path):
    (tmp_path / "helpers_of_mine.py").write_text("def double(x):\n    return 2 * x\n")
    process = start(
        """
        from fairpool import step
        from helpers_of_mine import double

        doubled = step(double)

        @step
        def four():
            return double(2)

        print(doubled(4), four())
        """
    )
    assert output_of(process) == "8 4\n"


def test_steps_submitted_outside_a_pipeline_are_waited_for_at_the_end(start, tmp_path):
    process = start(
        """
        from pathlib import Path
        from fairpool import step

        @step
        def writes():
            Path("written").touch()

        writes.submit()
        """
    )
    output_of(process)
    assert (tmp_path / "written").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_interrupting_a_run_ends_its_steps_gracefully_and_releases_everything(start, tmp_path, number):
    process = start(SLEEPER)
    pids = pids_of_step(tmp_path)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert out.splitlines() == ["['released']", "['cancelled']"], err
    assert "interrupted" in (tmp_path / "aborted").read_text()
    assert process.returncode == (-signal.SIGINT if number == signal.SIGINT else 128 + number)
    wait_until_gone(pids)


def test_a_second_interrupt_kills_what_does_not_end(start, tmp_path):
    process = start(SLEEPER.replace("while True", "while context.aborting in (True, False)"))
    pids = pids_of_step(tmp_path)
    process.send_signal(signal.SIGINT)
    wait_until((tmp_path / "aborted").exists, what="the step is told to end")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert out.splitlines() == ["['released']", "['cancelled']"], err
    wait_until_gone(pids)


def test_a_driver_that_is_killed_takes_its_steps_with_it_gracefully(start, tmp_path):
    process = start(SLEEPER)
    pids = pids_of_step(tmp_path)
    process.kill()
    process.wait()
    wait_until_gone(pids)
    assert (tmp_path / "aborted").exists()


def test_a_step_that_is_killed_leaves_none_of_its_helpers(start, tmp_path):
    process = start(SLEEPER)
    pids = pids_of_step(tmp_path)
    os.kill(pids[0], signal.SIGKILL)
    out, err = process.communicate(timeout=60)
    assert "StepFailed: step sleeper was killed by SIGKILL" in err
    assert out.splitlines() == ["['released']", "['failed']"]
    wait_until_gone(pids)


def test_a_helper_that_a_step_forks_can_be_ended_without_ending_the_step(start):
    process = start(
        """
        import multiprocessing, time
        from fairpool import step

        @step
        def with_helper():
            helper = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,))
            helper.start()
            helper.terminate()
            helper.join()
            return helper.exitcode

        print(with_helper())
        """
    )
    assert output_of(process) == "-15\n"


def test_sigterm_to_a_step_from_outside_runs_its_callbacks(start, tmp_path):
    process = start(SLEEPER)
    pids = pids_of_step(tmp_path)
    os.kill(pids[0], signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert "SIGTERM" in (tmp_path / "aborted").read_text()
    assert "StepFailed: step sleeper ended: the process was told to end" in err


@pytest.mark.parametrize(
    ("example", "says"),
    [
        ("first_pipeline", "best slope: 3.0"),
        ("hold_any_program", "5 rounds, and given back"),
        ("preemptible_training", "weight: 0.999"),
        ("custom_orchestrator", "the step ran with niceness"),
    ],
)
def test_an_example_does_what_it_shows(start, example, says):
    process = start((ROOT / "examples" / f"{example}.py").read_text(encoding="utf-8"))
    assert says in output_of(process)

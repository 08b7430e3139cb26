"""Running scenario files: what `fairpool policy test FILE…` and the tests of the core stand on.

The stable part is `run_files(paths) -> Outcome`: print `outcome.lines()` and leave with `outcome.exit_status`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fairpool.sim.scenario_file import ALONE, Surroundings, read_file, read_text
from fairpool.sim.scenario_given import RulesFault
from fairpool.sim.scenario_reading import ScenarioFileError
from fairpool.sim.scenario_report import Failure, differences, explanation
from fairpool.sim.scenario_run import Broken, Run
from fairpool.sim.scenario_values import Scenario, Step

__all__ = [
    "Failure",
    "Outcome",
    "Scenario",
    "ScenarioFileError",
    "assert_holds",
    "read_file",
    "read_text",
    "run_files",
    "run_scenario",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of some files.

    passed: titles of the scenarios that hold. failures: at least one for each that does not.
    faults: what is wrong with the files themselves, each naming file, line and key.
    """

    passed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()
    faults: tuple[ScenarioFileError, ...] = ()

    @property
    def exit_status(self) -> int:
        """0 all hold, 1 an expectation fails, 2 a file is wrong."""
        if self.faults:
            return 2
        return 1 if self.failures else 0

    def lines(self) -> tuple[str, ...]:
        """The report: every fault, every failure with its explanation, and the count."""
        told = [f"WRONG {fault}" for fault in self.faults]
        for failure in self.failures:
            told.extend(failure.lines())
        count = len(self.passed) + len(self.failed)
        files = len({fault.file for fault in self.faults})
        wrong = f"; {files} {'file is' if files == 1 else 'files are'} wrong" if files else ""
        told.append(
            f"{count} scenario{'' if count == 1 else 's'}: {len(self.passed)} hold, {len(self.failed)} fail{wrong}"
        )
        return tuple(told)


def run_files(paths: Iterable[str | Path], surroundings: Surroundings = ALONE) -> Outcome:
    """Run every scenario of the files. Raises nothing about their content: it is all in the outcome."""
    passed: list[str] = []
    failed: list[str] = []
    failures: list[Failure] = []
    faults: list[ScenarioFileError] = []
    for path in paths:
        try:
            scenarios = read_file(Path(path), surroundings)
        except (ScenarioFileError, RulesFault) as fault:
            faults.extend(fault.faults if isinstance(fault, RulesFault) else [fault])
            continue
        for scenario in scenarios:
            try:
                found = run_scenario(scenario)
            except ScenarioFileError as fault:
                faults.append(fault)
                continue
            (failed if found else passed).append(scenario.title)
            failures.extend(found)
    return Outcome(passed=tuple(passed), failed=tuple(failed), failures=tuple(failures), faults=tuple(faults))


def run_scenario(scenario: Scenario) -> tuple[Failure, ...]:
    """Run one scenario: () when all of it holds. It stops at the first step in which something fails.

    Raises ScenarioFileError for a step that contradicts the rules that are in force by then.
    """
    run = Run(scenario)
    if not scenario.checks_something:
        return (_failure(run, None, Broken("a scenario expects something", "it has no 'expect'")),)
    step: Step | None = None
    try:
        run.set_up()
        for step in scenario.steps:
            run.play(step)
            found = _look(run, step)
            if found:
                return found
        step = None
        run.finish()
    except Broken as broken:
        return (_failure(run, step, broken),)
    return ()


def _look(run: Run, step: Step) -> tuple[Failure, ...]:
    return tuple(
        Failure(
            scenario=run.scenario.title,
            file=run.scenario.file,
            line=expectation.line,
            step=step.number,
            at_s=run.now / 1_000_000,
            what=difference.what,
            expected=difference.expected,
            found=difference.found,
            explanation=explanation(run, difference.request),
        )
        for expectation in step.expectations
        for difference in differences(run, expectation)
    )


def _failure(run: Run, step: Step | None, broken: Broken) -> Failure:
    return Failure(
        scenario=run.scenario.title,
        file=run.scenario.file,
        line=step.line if step is not None else run.scenario.line,
        step=step.number if step is not None else 0,
        at_s=run.now / 1_000_000,
        what="",
        expected=broken.expected,
        found=broken.found,
        explanation=explanation(run, broken.request),
    )


def assert_holds(text: str) -> None:
    """For tests: the scenarios written in `text` hold. Raises AssertionError with the whole report otherwise."""
    found = [failure for scenario in read_text(text) for failure in run_scenario(scenario)]
    if found:
        raise AssertionError("\n".join(line for failure in found for line in failure.lines()))

"""Runs and steps, as their drivers report them."""

from __future__ import annotations

import pytest

from fairpool.app.records import RunRecord, RunStatus, StepRecord
from fairpool.app.use_cases import runs
from fairpool.app.use_cases.runs import NewRun, NewStep, StepChange
from tests.unit.app.office import Office, opened


@pytest.fixture
def office() -> Office:
    return opened()


def _run(office: Office) -> RunRecord:
    made: RunRecord = office.do(runs.create_run, NewRun(name="sweep"))
    return made


def test_a_run_that_is_reported_again_because_the_answer_was_lost_is_reported_once(office: Office) -> None:
    run = _run(office)
    first = office.do(runs.update_run, run.id, status=RunStatus.RUNNING, error="slow")
    batches = len(office.store.batches)
    assert office.do(runs.update_run, run.id, status=RunStatus.RUNNING, error="slow") == first
    assert first.version == 2
    assert len(office.store.batches) == batches
    assert office.history(run.id) == ["pending", "running"]


def test_a_step_that_is_reported_again_because_the_answer_was_lost_is_reported_once(office: Office) -> None:
    step: StepRecord = office.do(runs.create_step, _run(office).id, NewStep(name="train"))
    change = StepChange(status=RunStatus.RUNNING, attempt=1, request="r-1", log="file:///log")
    first = office.do(runs.update_step, step.id, change)
    assert office.do(runs.update_step, step.id, change) == first
    assert first.version == 2
    assert office.do(runs.update_step, step.id, StepChange(attempt=2)).version == 3
    assert office.history(step.id) == ["pending", "running"]

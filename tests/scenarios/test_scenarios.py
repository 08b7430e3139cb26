"""Every scenario is a test case of its own: those beside this file, and the shared cases where they are at hand."""

from pathlib import Path

import pytest

from fairpool.sim.scenarios import Scenario, read_file, run_scenario

HERE = Path(__file__).parent
SHARED = HERE.parents[2] / "shared" / "cases"


def _stories(folder: Path) -> list[object]:
    return [
        pytest.param(scenario, id=f"{path.stem}: {scenario.title}")
        for path in sorted(folder.glob("*.yaml"))
        for scenario in read_file(path)
    ]


@pytest.mark.parametrize("scenario", _stories(HERE))
def test_the_story_goes_as_it_is_told(scenario: Scenario) -> None:
    _assert_holds(scenario)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared cases are not beside this checkout")
@pytest.mark.parametrize("scenario", _stories(SHARED))
def test_the_shared_case_holds(scenario: Scenario) -> None:
    _assert_holds(scenario)


def test_there_are_enough_stories_and_no_two_have_one_title() -> None:
    titles = [scenario.title for path in sorted(HERE.glob("*.yaml")) for scenario in read_file(path)]
    assert len(titles) >= 60
    assert len(set(titles)) == len(titles)


def _assert_holds(scenario: Scenario) -> None:
    failures = run_scenario(scenario)
    assert not failures, "\n".join(line for failure in failures for line in failure.lines())

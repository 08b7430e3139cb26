"""Whatever list can be said on the command line can be emptied there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.cli.conftest import Machine


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """An installation in which every list holds something."""
    made = Machine(tmp_path_factory.mktemp("full"))
    made.ok("pool", "create", "a", "--capacity", "gpu=4", "--component", "local")
    made.ok("pool", "create", "b", "--capacity", "gpu=4")
    made.ok("profile", "create", "half", "--demand", "gpu=0.5", "--pool", "a", "--label", "tier=small")
    made.ok("team", "create", "red")
    made.ok("service-account", "create", "ci", "--team", "red")
    window = "[{start: 0 20 * * *, duration_s: 60, priority: 5}]"
    rights = ("--reserved", "gpu=1", "--limit", "gpu=2", "--also", "b", "--profile", "half", "--schedule", window)
    made.ok("policy", "attach", "a", "team:red", *rights)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("noun", "name", "options", "field", "emptied"),
    [
        ("policy", "a/team:red", "--no-also", "also", []),
        ("policy", "a/team:red", "--also=", "also", []),
        ("policy", "a/team:red", "--no-profiles", "profiles", []),
        ("policy", "a/team:red", "--all-profiles", "profiles", None),
        ("policy", "a/team:red", "--schedule=[]", "schedule", []),
        ("policy", "a/team:red", "--reserved={}", "reserved", {}),
        ("policy", "a/team:red", "--limit={}", "limit", {}),
        ("pool", "a", "--no-components", "components", []),
        ("profile", "half", "--no-labels", "defaults", {"labels": {}}),
        ("service-account", "ci", "--no-teams", "teams", []),
    ],
)
def test_a_list_is_emptied(full: Machine, noun: str, name: str, options: str, field: str, emptied: object) -> None:
    full.ok(noun, "update", name, options)
    found = full.json(noun, "describe", name)
    assert found.get(field, None if emptied is None else emptied) == emptied
    if noun == "policy" and field == "also":
        full.ok("policy", "update", name, "--also", "b")


def test_to_fill_and_to_empty_at_once_is_refused(full: Machine) -> None:
    for words in (
        ("policy", "update", "a/team:red", "--also", "b", "--no-also"),
        ("policy", "update", "a/team:red", "--profile", "half", "--no-profiles"),
        ("policy", "update", "a/team:red", "--profile", "half", "--all-profiles"),
        ("policy", "update", "a/team:red", "--no-profiles", "--all-profiles"),
        ("pool", "update", "a", "--component", "local", "--no-components"),
        ("profile", "update", "half", "--label", "a=b", "--no-labels"),
        ("service-account", "update", "ci", "--team", "red", "--no-teams"),
    ):
        done = full(*words)
        assert (done.code, "possible: one of the two" in done.err) == (2, True), (words, done)

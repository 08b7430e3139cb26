"""Whom jobs count for, and what they ask for."""

from dataclasses import replace

import pytest

from fairpool.app.ports import Stored
from fairpool.app.records import Declared, Document, Kind
from fairpool.core.amounts import vector
from fairpool.core.ids import ProfileId
from fairpool.core.policies import Profile, Subject
from fairpool.sim.reports.parties import Parties, measured_key, unit_of
from fairpool.sim.rulebook import rulebook
from tests.unit.sim.reports.worlds import a_policy, a_pool, at, job, outcome, rules


def with_team(stored: Stored, name: str, *members: str) -> Stored:
    spec: Document = {"members": list(members)}
    team: Declared[Document] = Declared(
        kind=Kind.TEAM, id=f"team-{name}", name=name, spec=spec, created_at=at(0), updated_at=at(0)
    )
    return replace(stored, declared=(*stored.declared, team))


@pytest.mark.parametrize(
    ("subjects", "team"),
    [
        (("team:v",), "v"),
        (("user:alice",), "w"),
        (("user:bob",), "user:bob"),
        (("component:local", "team:v"), "v"),
        (("team:unknown", "team:v"), "v"),
        (("team:unknown",), "unknown"),
        (("component:local",), "component:local"),
        ((), ""),
    ],
)
def test_a_job_counts_for_the_first_of_its_teams_that_a_policy_speaks_of(subjects: tuple[str, ...], team: str) -> None:
    parties = Parties(with_team(rules(4, v=1, w=1), "w", "alice"))
    assert parties.of(job("j", "v", 0, 1, subjects=tuple(map(Subject.parse, subjects)))) == team


def test_a_job_that_names_a_profile_asks_for_what_that_says() -> None:
    profile = Profile(id=ProfileId("half"), name="half", demand=vector({"gpu": 0.5}), pools=("p",))
    stored = rulebook([a_pool(4)], [a_policy("v", 1)], [profile])
    found = outcome(stored, job("a", "v", 0, 10, demand=None, profile="half"), job("b", "v", 0, 10, gpus=2))
    assert Parties(stored).amounts(found.ledger, "gpu") == [500, 2000]


def test_a_report_is_about_gpus_where_there_are_any() -> None:
    other = replace(a_pool(4, "cpus"), capacity=vector({"mcpu": 4000}))
    assert measured_key(rulebook([a_pool(4), other])) == "gpu"
    assert measured_key(rulebook([other])) == "mcpu"
    assert measured_key(rulebook([])) == ""
    assert (unit_of("gpu"), unit_of("mcpu")) == ("GPU", "mcpu")

"""Membership is the whole onboarding, and leaving is the whole offboarding: what waits follows, what runs goes on."""

from __future__ import annotations

import pytest

from fairpool.app.authz import Role
from fairpool.app.records import Kind, RequestRecord
from fairpool.app.use_cases import requests, service_accounts, teams, users
from fairpool.app.use_cases.service_accounts import AccountChange
from fairpool.app.use_cases.teams import TeamChange
from fairpool.core.policies import Subject
from tests.unit.app.office import Office, ask, opened, same_as_stored

LOCAL = Subject.parse("component:local")
RED, BLUE, GREEN = (Subject.parse(f"team:{name}") for name in ("red", "blue", "green"))


@pytest.fixture
def office() -> Office:
    """Teams red and blue share a pool of 8; Alice is in both, Bob in red; the service account ci is in blue."""
    office = opened()
    for name in ("alice", "bob"):
        office.do(users.create, name, role=Role.MEMBER)
    office.do(teams.create, "red", members=["alice", "bob"])
    office.do(teams.create, "blue", members=["alice"])
    office.do(service_accounts.create, "ci", teams=["blue"])
    return office


def submit(office: Office, who: str, *subjects: Subject, gpus: int = 4) -> RequestRecord:
    asked = ask("team:red", gpus, subjects=(LOCAL, *subjects))
    return office.do(requests.submit, asked, actor=who)


def ended(office: Office, request: RequestRecord) -> tuple[str, list[str]]:
    found = office.get(request.id)
    return found.status.value, [reason.code.value for reason in found.state.reasons]


def test_who_leaves_a_team_loses_what_waits_through_it_alone(office: Office) -> None:
    running = submit(office, "user:alice", RED, gpus=8)
    alone, both = submit(office, "user:alice", RED), submit(office, "user:alice", RED, BLUE)
    others = submit(office, "user:bob", RED)
    office.do(teams.update, "red", TeamChange(remove=("alice",)))
    assert ended(office, alone) == ("cancelled", ["POLICY_OF_OTHERS"])
    assert office.get(both.id).request.subjects == (LOCAL, BLUE)
    assert [office.status(one.id) for one in (running, both, others)] == ["allocated", "queued", "queued"]
    assert office.get(running.id).request.subjects == (LOCAL, RED), "what runs goes on as it was made"
    assert same_as_stored(office)


def test_who_loses_a_team_is_not_set_free(office: Office) -> None:
    """A request that no policy speaks of any more does not start as ungoverned."""
    submit(office, "user:alice", RED, gpus=8)
    waiting = submit(office, "user:alice", RED)
    office.do(teams.update, "red", TeamChange(members=("bob",)))
    assert office.status(waiting.id) == "cancelled"


def test_a_team_that_goes_takes_its_policies_and_what_waits_through_it_alone(office: Office) -> None:
    running = submit(office, "user:bob", RED, gpus=8)
    alone, both = submit(office, "user:bob", RED), submit(office, "user:alice", RED, BLUE)
    through = office.do(requests.submit, ask("team:red", 4), actor="local")
    trial = office.do(teams.delete, "red", dry_run=True)
    done = office.do(teams.delete, "red")
    assert trial == done
    assert (done.policies, done.queued, done.active) == (("p/team:red",), (alone.id, through.id), (running.id,))
    assert [office.status(one.id) for one in (running, alone, through, both)] == [
        "allocated",
        "cancelled",
        "cancelled",
        "queued",
    ]
    assert [policy.name for policy in office.memory.all(Kind.POLICY)] == ["p/team:blue"]
    assert same_as_stored(office)


def test_a_service_account_leaves_a_team_that_goes(office: Office) -> None:
    done = office.do(teams.delete, "blue")
    assert done.service_accounts == ("ci",)
    assert office.memory.document(Kind.SERVICE_ACCOUNT, "ci").spec["teams"] == []


def test_policies_services_and_requests_follow_a_team_s_new_name(office: Office) -> None:
    running, waiting = submit(office, "user:alice", BLUE, gpus=8), submit(office, "user:alice", BLUE, RED)
    place = office.get(waiting.id).request.queued_at
    office.do(teams.update, "blue", TeamChange(name="green"))
    assert {policy.name for policy in office.memory.all(Kind.POLICY)} == {"p/team:red", "p/team:green"}
    assert office.get(running.id).request.subjects == (LOCAL, GREEN)
    assert office.get(waiting.id).request.subjects == (LOCAL, GREEN, RED)
    assert office.get(waiting.id).request.queued_at == place
    assert [office.status(one.id) for one in (running, waiting)] == ["allocated", "queued"]
    assert office.memory.document(Kind.SERVICE_ACCOUNT, "ci").spec["teams"] == ["green"]
    assert same_as_stored(office)
    after = office.restarted()
    assert after.get(waiting.id).request.subjects == (LOCAL, GREEN, RED)


def test_what_a_renamed_team_holds_counts_as_before(office: Office) -> None:
    submit(office, "user:alice", BLUE, gpus=2)
    office.do(teams.update, "blue", TeamChange(name="green"))
    policy = office.memory.policy(next(each.id for each in office.memory.all(Kind.POLICY) if "green" in each.name))
    assert dict(office.memory.world.books[policy.spec.pool].policies[policy.spec.id].used_now)["gpu"] == 2000


def test_a_service_account_that_leaves_a_team_loses_what_waits_through_it(office: Office) -> None:
    submit(office, "user:bob", RED, gpus=8)
    waiting = submit(office, "service-account:ci", BLUE)
    office.do(service_accounts.update, "ci", AccountChange(teams=()))
    assert office.status(waiting.id) == "cancelled"

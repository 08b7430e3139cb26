"""Profiles: what requests that name them get, and which policies can offer them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from fairpool.app.leases import OVERTIME_S
from fairpool.app.records import Declared
from fairpool.app.use_cases import policies, profiles, requests
from fairpool.app.use_cases.profiles import Defaults, ProfileChange
from fairpool.core.amounts import vector
from fairpool.core.errors import InvalidRules
from fairpool.core.ids import SECOND, ProfileId
from fairpool.core.policies import Profile
from fairpool.core.requests import Status
from tests.unit.app.office import START, Office, ask, opened, policy


@pytest.fixture
def office() -> Office:
    return opened()


def create(
    office: Office, name: str = "big", demand: Mapping[str, object] | None = None, **named: Any
) -> Declared[Profile]:
    pools = tuple(named.pop("pools", ("p",)))
    profile = Profile(id=ProfileId(""), name=name, demand=vector(demand or {"gpu": 4}), pools=pools)
    return office.do(profiles.create, profile, **named)


# ---- defaults --------------------------------------------------------------------------------------------------------


def test_a_request_gets_the_defaults_where_it_says_nothing_itself(office: Office) -> None:
    create(office, defaults=Defaults(preemptible=False, max_runtime_s=60, labels={"tier": "gold", "owner": "none"}))
    made = office.submit(demand=None, profile="big", labels={"owner": "ada"})
    assert not made.request.preemptible
    assert made.request.max_runtime_s == 60
    assert made.submission.labels == {"tier": "gold", "owner": "ada"}


def test_what_a_request_says_itself_wins_over_the_defaults(office: Office) -> None:
    create(office, defaults=Defaults(preemptible=False, max_runtime_s=60))
    made = office.submit(demand=None, profile="big", preemptible=True, max_runtime_s=7)
    assert made.request.preemptible
    assert made.request.max_runtime_s == 7


def test_without_a_default_a_request_is_preemptible(office: Office) -> None:
    """S4."""
    create(office)
    assert office.submit(demand=None, profile="big").request.preemptible
    assert office.submit().request.preemptible


def test_changed_defaults_count_for_later_requests_only(office: Office) -> None:
    create(office, defaults=Defaults(max_runtime_s=60))
    first = office.submit(demand=None, profile="big")
    office.do(profiles.update, "big", ProfileChange(defaults=Defaults(max_runtime_s=90)))
    assert office.get(first.id).request.max_runtime_s == 60
    assert office.submit(demand=None, profile="big").request.max_runtime_s == 90
    assert "defaults changed" in office.history()


def test_defaults_survive_a_restart(office: Office) -> None:
    create(office, defaults=Defaults(max_runtime_s=60, labels={"a": "b"}), description="for training")
    after = office.restarted().memory.profile("big")
    assert profiles.defaults_in(after.note) == Defaults(max_runtime_s=60, labels={"a": "b"})
    assert after.note["description"] == "for training"


def test_a_check_judges_with_the_defaults(office: Office) -> None:
    """A firm request for more than the reservation can never run, whoever said that it is firm."""
    create(office, defaults=Defaults(preemptible=False))
    found = office.ask(
        lambda memory, now: requests.check(memory, office.store.reader, now, ask(demand=None, profile="big"))
    )
    assert found.explanation.status is Status.REJECTED


def test_several_parts_of_a_profile_are_asked_for_together(office: Office) -> None:
    """S3."""
    create(office, demand={"gpu": 2})
    made = office.submit(demand=None, profile="big", node_count=3)
    assert made.request.demand.total == vector({"gpu": 6, "step_run": 1})
    assert len(made.request.demand.parts) == 3


def test_run_time_counts_only_time_allocated(office: Office) -> None:
    """A request that waited for an hour has all of its run time left when it starts."""
    create(office, demand={"gpu": 8}, defaults=Defaults(max_runtime_s=60))
    first = office.submit(gpus=8, lease_s=86_400)
    second = office.submit(demand=None, profile="big", lease_s=86_400)
    office.pass_time(3600)
    assert office.status(second.id) == "queued"
    office.do(requests.release, first.id)
    office.pass_time(60 + OVERTIME_S - 1)
    assert office.status(second.id) == "allocated"
    office.pass_time(2)
    ended = office.get(second.id)
    assert ended.status is Status.EXPIRED
    assert ended.state.grant is not None
    assert ended.state.grant.granted_at == START + 3600 * SECOND


# ---- what policies can offer -----------------------------------------------------------------------------------------


def test_a_policy_cannot_name_a_profile_that_is_above_its_limit(office: Office) -> None:
    create(office, demand={"gpu": 4})
    with pytest.raises(InvalidRules, match="profile 'big' asks for 4 of 'gpu', and the limit of team:green is 2") as at:
        office.policy("team:green", limit=vector({"gpu": 2}), profiles=("big",))
    assert (at.value.field, at.value.value) == ("profiles", "big")


def test_a_limit_cannot_fall_below_a_profile_that_the_policy_names(office: Office) -> None:
    create(office, demand={"gpu": 4})
    made = office.policy("team:green", limit=vector({"gpu": 4}), profiles=("big",))
    with pytest.raises(InvalidRules, match="the limit of team:green is 3"):
        office.do(policies.update, made.id, policies.PolicyChange(limit=vector({"gpu": 3})))
    assert office.memory.policy(made.id).spec.limit == vector({"gpu": 4})


def test_a_profile_cannot_grow_above_the_limit_of_a_policy_that_names_it(office: Office) -> None:
    create(office, demand={"gpu": 4})
    office.policy("team:green", limit=vector({"gpu": 4}), profiles=("big",))
    with pytest.raises(
        InvalidRules, match="policy p/team:green offers profile 'big', and its limit of 'gpu' is 4"
    ) as at:
        office.do(profiles.update, "big", ProfileChange(demand=vector({"gpu": 5})))
    assert at.value.field == "demand.gpu"


def test_a_policy_that_offers_all_profiles_does_not_offer_one_above_its_limit(office: Office) -> None:
    office.policy("team:green", limit=vector({"gpu": 2}))
    create(office, demand={"gpu": 4})
    made = office.submit("team:green", demand=None, profile="big")
    assert made.status is Status.REJECTED
    assert [reason.code.value for reason in made.state.reasons] == ["EXCEEDS_POLICY_LIMIT"]


def test_pools_of_a_profile_are_tried_in_its_order(office: Office) -> None:
    """S13: on-premises first, cloud only when it is full."""
    office.pool("cloud")
    office.do(policies.attach, "cloud", policy("team:red", priority=50))
    create(office, demand={"gpu": 8}, pools=("p", "cloud"))
    grants = [office.submit(demand=None, profile="big").state.grant for _ in range(2)]
    assert [grant.pool_name if grant else "" for grant in grants] == ["p", "cloud"]

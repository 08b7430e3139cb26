"""Policies over several pools, and what follows when things get other names, go, or are given to others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from fairpool.app.authz import EVERYTHING
from fairpool.app.errors import Exists
from fairpool.app.records import Declared
from fairpool.app.schedules import Window
from fairpool.app.use_cases import policies, pools, profiles, queues
from fairpool.app.use_cases.policies import PolicyChange
from fairpool.app.use_cases.pools import PoolChange
from fairpool.app.use_cases.profiles import ProfileChange
from fairpool.core.amounts import vector
from fairpool.core.errors import InvalidRules
from fairpool.core.ids import ProfileId
from fairpool.core.policies import Policy, Profile, Subject
from tests.unit.app.office import Office, opened, policy, same_as_stored, submitting
from tests.unit.app.office import ask as asking

LONG = 86_400


@pytest.fixture
def office() -> Office:
    """Pools p and cloud of 8 GPUs each; teams red and blue on p, of which each has 2 reserved; a profile over both."""
    made = opened()
    made.pool("cloud")
    create(made, "pair", {"gpu": 2}, "p", "cloud")
    return made


def create(office: Office, name: str, demand: Mapping[str, object], *pools: str) -> Declared[Profile]:
    profile = Profile(id=ProfileId(""), name=name, demand=vector(demand), pools=pools)
    return office.do(profiles.create, profile)


def attach(office: Office, subject: str, amounts: Mapping[str, object], *pools: str, **named: Any) -> Declared[Policy]:
    first, *also = pools
    return office.do(policies.attach, first, policy(subject, amounts, **named), also=also)


def ask(office: Office, subject: str = "team:red", **named: Any) -> str:
    return office.submit(subject, demand=None, lease_s=LONG, **{"profile": "pair", **named}).id


def of(office: Office, subject: str) -> Declared[Policy]:
    return next(one for one in office.memory.policies_of(office.memory.pool("p").spec.id) if subject in one.name)


def reasons(office: Office, request: str) -> list[str]:
    return [reason.code.value for reason in office.get(request).state.reasons]


# ---- several pools ---------------------------------------------------------------------------------------------------


def test_a_policy_over_two_pools_counts_over_both_together(office: Office) -> None:
    attach(office, "team:dev", {"gpu": 4}, "p", "cloud", limit=vector({"gpu": 10}))
    held = [ask(office, "team:dev") for _ in range(6)]
    assert [office.status(request) for request in held] == ["allocated"] * 5 + ["queued"]
    grants = [office.get(request).state.grant for request in held[:5]]
    assert [grant.pool_name if grant else "" for grant in grants] == ["p"] * 4 + ["cloud"]
    assert same_as_stored(office)
    after = office.restarted()
    assert after.memory.policy("p/team:dev").spec.pools == office.memory.policy("p/team:dev").spec.pools


def test_the_scenario_of_two_ranked_teams_on_two_pools(office: Office) -> None:
    """Dev ranked over research, both reserved 8 and limit 16 over both pools; each submits four jobs of four."""
    for red_or_blue in ("red", "blue"):
        office.do(policies.detach, of(office, red_or_blue).id)
    create(office, "four", {"gpu": 4}, "p", "cloud")
    attach(office, "team:dev", {"gpu": 8}, "p", "cloud", limit=vector({"gpu": 16}), priority=10)
    attach(office, "team:research", {"gpu": 8}, "p", "cloud", limit=vector({"gpu": 16}), priority=1)
    jobs = [asking(f"team:{team}", demand=None, profile="four") for _ in range(4) for team in ("research", "dev")]
    made = [future.result() for future in office.round(*submitting(*jobs))]
    where = {
        team: sorted(
            office.get(one.id).state.grant.pool_name if office.status(one.id) == "allocated" else "waits"  # type: ignore[union-attr]
            for one in made
            if one.request.subjects == (Subject.parse(f"team:{team}"),)
        )
        for team in ("dev", "research")
    }
    assert where == {"dev": ["p", "p", "waits", "waits"], "research": ["cloud", "cloud", "waits", "waits"]}


def test_a_pool_that_goes_is_taken_off_the_policies_that_span_it(office: Office) -> None:
    both = attach(office, "team:dev", {"gpu": 2}, "p", "cloud")
    waiting = [ask(office, "team:dev") for _ in range(9)]
    assert office.status(waiting[-1]) == "queued"
    office.do(pools.delete, "p", on_work="let-go")
    assert office.memory.policy(both.id).name == "cloud/team:dev"
    assert [office.memory.pool_name(pool) for pool in office.memory.policy(both.id).spec.pools] == ["cloud"]
    assert [office.status(request) for request in waiting].count("queued") == 1  # what ran in the pool runs on
    assert same_as_stored(office)
    assert office.restarted().memory.policy(both.id).spec.also == ()


def test_a_pool_cannot_go_where_a_policy_over_several_has_reserved_more_than_the_rest(office: Office) -> None:
    attach(office, "team:dev", {"gpu": 10}, "p", "cloud")
    with pytest.raises(InvalidRules, match="10"):
        office.do(pools.delete, "cloud")
    assert office.memory.pool("cloud").spec.name == "cloud"


def test_a_policy_can_get_and_lose_further_pools(office: Office) -> None:
    made = attach(office, "team:dev", {"gpu": 2}, "p")
    office.do(policies.update, made.id, PolicyChange(also=("cloud",)))
    assert [office.memory.pool_name(pool) for pool in office.memory.policy(made.id).spec.pools] == ["p", "cloud"]
    with pytest.raises(Exists, match="cloud/team:dev"):
        attach(office, "team:dev", {}, "cloud")
    office.do(policies.update, made.id, PolicyChange(also=()))
    attach(office, "team:dev", {}, "cloud")
    with pytest.raises(Exists, match="cloud/team:dev"):
        office.do(policies.update, made.id, PolicyChange(also=("cloud",)))


# ---- other names -----------------------------------------------------------------------------------------------------


def test_a_profile_s_new_name_is_followed_by_policies_and_by_requests_in_their_places(office: Office) -> None:
    office.do(policies.update, of(office, "red").id, PolicyChange(profiles=("pair",)))
    office.submit("team:blue", 8, lease_s=LONG, preemptible=True)
    first, second, other = (
        ask(office, gpus=8),
        ask(office, preemptible=True),
        office.submit("team:blue", 8, lease_s=LONG),
    )
    before = [office.get(request).status for request in (first, second, other.id)]
    office.do(profiles.update, "pair", ProfileChange(name="duo"))
    assert [office.get(request).status for request in (first, second, other.id)] == before
    assert [office.get(request).request.profile for request in (first, second, other.id)] == ["duo", "duo", ""]
    assert of(office, "red").spec.profiles == ("duo",)
    assert same_as_stored(office)
    counts = office.restarted().memory.queues.of(Subject.parse("team:red"), "duo")
    assert counts.pending + counts.running == 2
    assert office.memory.queues.of(Subject.parse("team:red"), "pair").pending == 0
    with pytest.raises(Exists):
        create(office, "duo", {"gpu": 1}, "p")


def test_a_pool_s_new_name_is_followed_by_profiles_policies_and_by_requests_in_their_places(office: Office) -> None:
    office.submit("team:blue", 8, lease_s=LONG, preemptible=True)
    named = office.submit("team:red", 4, pool="p", lease_s=LONG)
    by_profile = ask(office)
    waits_or_runs = office.status(by_profile)
    assert office.status(named.id) == "queued"
    office.do(pools.update, "p", PoolChange(name="metal"))
    assert office.get(named.id).request.pool == "metal"
    assert office.memory.profile("pair").spec.pools == ("metal", "cloud")
    assert [one.name for one in office.memory.policies_of(office.memory.pool("metal").spec.id)] == [
        "metal/team:blue",
        "metal/team:red",
    ]
    assert (office.status(named.id), office.status(by_profile)) == ("queued", waits_or_runs)
    assert same_as_stored(office)


# ---- rights that are lost --------------------------------------------------------------------------------------------


def full(office: Office) -> None:
    """Nothing is free, and nothing can be evicted."""
    for pool in ("p", "cloud"):
        office.do(policies.attach, pool, policy("team:full", {"gpu": 4}))
        office.submit("team:full", 4, pool=pool, lease_s=LONG, preemptible=False)


def test_who_waits_through_a_dropped_profile_is_cancelled_with_the_reason_and_others_wait_on(office: Office) -> None:
    office.submit("team:blue", 8, lease_s=LONG)
    asked, plain = ask(office), office.submit("team:blue", 8, lease_s=LONG)
    create(office, "big", {"gpu": 8}, "p")
    waiting = ask(office, profile="big")
    before = office.status(asked)
    office.do(profiles.delete, "big")
    assert (office.status(waiting), reasons(office, waiting)) == ("cancelled", ["PROFILE_GONE"])
    assert office.status(plain.id) == "queued"
    assert office.status(asked) == before


def test_who_waits_through_a_detached_policy_is_cancelled_and_what_runs_goes_on(office: Office) -> None:
    running = office.submit("team:red", 2, lease_s=LONG)
    office.submit("team:blue", 6, lease_s=LONG)
    waiting, other = office.submit("team:red", 8, lease_s=LONG), office.submit("team:blue", 8, lease_s=LONG)
    office.do(policies.detach, of(office, "red").id)
    assert (office.status(waiting.id), reasons(office, waiting.id)) == ("cancelled", ["POLICY_GONE"])
    assert (office.status(running.id), office.status(other.id)) == ("allocated", "queued")


def test_a_policy_given_to_another_team_takes_the_right_of_those_who_wait_and_gives_it(office: Office) -> None:
    running = office.submit("team:red", 2, lease_s=LONG)
    office.submit("team:blue", 6, lease_s=LONG)
    waiting = office.submit("team:red", 8, lease_s=LONG)
    office.do(policies.update, of(office, "red").id, PolicyChange(subject=Subject.parse("team:green")))
    assert (office.status(waiting.id), reasons(office, waiting.id)) == ("cancelled", ["POLICY_OF_OTHERS"])
    assert office.status(running.id) == "allocated"
    assert office.submit("team:green", 8, lease_s=LONG).status.value == "queued"
    with pytest.raises(Exists, match="p/team:blue"):
        office.do(policies.update, of(office, "green").id, PolicyChange(subject=Subject.parse("team:blue")))


def test_who_has_another_way_waits_on(office: Office) -> None:
    """Two policies of one team on different pools both apply: one that goes leaves the other."""
    office.do(policies.attach, "cloud", policy("team:red"))
    full(office)
    create(office, "all", {"gpu": 8}, "p", "cloud")
    waiting = ask(office, profile="all")
    assert office.status(waiting) == "queued"
    office.do(policies.detach, of(office, "red").id)
    assert office.status(waiting) == "queued"
    assert [place.pool for place in _queue(office, "red", "all").places] == ["cloud"]


def _queue(office: Office, owner: str, profile: str) -> queues.Queue:
    return office.ask(lambda memory, now: queues.find(memory, EVERYTHING, owner, profile))


def test_a_profile_that_a_policy_offers_no_more_takes_the_right(office: Office) -> None:
    full(office)
    create(office, "all", {"gpu": 8}, "p")
    create(office, "none", {"gpu": 1}, "p")
    waiting = ask(office, profile="all")
    office.do(policies.update, of(office, "red").id, PolicyChange(profiles=("none",)))
    assert (office.status(waiting), reasons(office, waiting)) == ("cancelled", ["PROFILE_WITHDRAWN"])


def test_an_open_window_stays_in_force_when_a_profile_is_renamed(office: Office) -> None:
    always = Window(start="0 * * * *", duration_s=7200, reserved=vector({"gpu": 4}))
    made = office.do(policies.attach, "cloud", policy("team:red", profiles=("pair",)), schedule=(always,))
    office.do(profiles.update, "pair", ProfileChange(name="duo"))
    assert dict(office.memory.world.policies[made.spec.id].reserved) == {"gpu": 4000}
    assert office.submit("team:red", demand=None, profile="duo").request.profile == "duo"

"""What there is now, as numbers: who waits where and for how long, whatever the order in which they are served."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from fairpool.app import gauges as all_gauges
from fairpool.app import queries
from fairpool.app.gauges import PolicyGauge, QueueGauge, gauges
from fairpool.app.use_cases import policies, pools, profiles, requests
from fairpool.core import amounts
from fairpool.core.errors import InvalidRules
from fairpool.core.ids import ProfileId
from fairpool.core.policies import Profile
from tests.unit.app.office import Office, opened, policy


def queues(office: Office) -> dict[tuple[str, str, str], tuple[int, int]]:
    found: tuple[QueueGauge, ...] = office.ask(gauges).queues
    return {(queue.pool, queue.policy, queue.profile): (queue.depth, round(queue.oldest_wait_s)) for queue in found}


def full() -> Office:
    office = opened()
    office.submit("team:red", 8, preemptible=True)
    office.submit("team:blue", 8)
    return office


def test_a_queue_says_how_many_wait_and_since_when_the_first_of_them_does() -> None:
    office = full()
    office.pass_time(10)
    office.submit("team:blue", 8)
    office.pass_time(5)
    assert queues(office) == {("p", "team:blue", ""): (2, 15)}


def test_the_oldest_is_the_one_queued_first_even_where_another_is_served_before_it() -> None:
    office = full()
    office.pass_time(10)
    urgent = office.submit("team:blue", 8, priority=5)
    office.pass_time(5)
    assert queues(office) == {("p", "team:blue", ""): (2, 15)}
    office.do(requests.cancel, urgent.id)
    assert queues(office) == {("p", "team:blue", ""): (1, 15)}


def test_requests_of_several_profiles_are_told_apart_where_the_decision_sees_no_difference() -> None:
    office = full()
    for name in ("one", "two"):
        office.do(
            profiles.create, Profile(id=ProfileId(""), name=name, demand=amounts.vector({"gpu": 8}), pools=("p",))
        )
    for profile in ("one", "two", "two"):
        office.submit("team:blue", 8, profile=profile, demand=None)
        office.pass_time(1)
    assert queues(office) == {
        ("p", "team:blue", ""): (1, 3),
        ("p", "team:blue", "one"): (1, 3),
        ("p", "team:blue", "two"): (2, 2),
    }


def test_one_for_whom_room_is_being_made_still_waits() -> None:
    office = opened()
    office.submit("team:red", 8)
    office.submit("team:blue", 2)
    assert office.ask(gauges).queued == 1
    office.pass_time(3)
    assert queues(office) == {("p", "team:blue", ""): (1, 3)}


def test_a_request_with_several_ways_to_start_waits_in_each_queue_and_counts_once_in_all() -> None:
    office = opened()
    office.pool("q")
    office.policy("team:red", pool="q")
    for _ in range(3):
        office.submit("team:red", 8)
    assert queues(office) == {("p", "team:red", ""): (1, 0), ("q", "team:red", ""): (1, 0)}
    assert office.ask(gauges).queued == 1


def test_what_is_reserved_over_several_pools_counts_once_under_its_policy_and_in_no_pool() -> None:
    """Pools can be added up: no reservation is in two of them, and none of them promises more than it has."""
    office = opened()
    office.pool("q", {"gpu": 4})
    office.do(policies.attach, "p", policy("team:wide", {"gpu": 6}), also=["q"])
    found = office.ask(gauges)
    assert {pool.name: pool.reserved["gpu"] for pool in found.pools} == {"p": 4000, "q": 0}
    wide = [each for each in found.policies if each.subject == "team:wide"]
    assert [(each.pool, each.reserved["gpu"]) for each in wide] == [("p,q", 6000)]
    office.submit("team:wide", 3)
    office.submit("team:wide", 3)
    office.submit("team:wide", 3, pool="q")
    found = office.ask(gauges)
    assert {pool.name: (pool.used["gpu"], pool.borrowed["gpu"]) for pool in found.pools} == {
        "p": (6000, 0),
        "q": (3000, 3000),
    }
    (wide_one,) = (each for each in found.policies if each.subject == "team:wide")
    assert (wide_one.used["gpu"], wide_one.borrowed["gpu"]) == (9000, 3000), "over both pools, once"
    described = {each.declared.name: each.reserved for each in office.ask(queries.pool_statuses)}
    assert described == {"p": {"gpu": 4000}, "q": {"gpu": 0}}


def test_reservations_of_pools_and_spans_together_never_exceed_what_there_is() -> None:
    office = opened()
    office.pool("q", {"gpu": 4})
    wide = policy("team:wide", {"gpu": 9})
    with pytest.raises(InvalidRules, match=r"pools 'p', 'q' together add up to 13 .* their capacity is 12"):
        office.do(policies.attach, "p", wide, also=["q"])
    office.do(policies.attach, "p", replace(wide, reserved=amounts.vector({"gpu": 8})), also=["q"])
    with pytest.raises(InvalidRules, match="add up to 13"):
        office.policy("team:more", {"gpu": 1}, pool="q")
    with pytest.raises(InvalidRules, match="add up to 12"):
        office.do(pools.update, "q", pools.PoolChange(capacity=amounts.vector({"gpu": 3})))


def test_part_by_part_the_same_is_told_as_at_once_and_nothing_of_a_pool_that_has_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(all_gauges, "POLICIES_AT_ONCE", 2)
    office = full()
    office.pool("q")
    for team in ("red", "blue", "green", "grey", "pink"):
        office.policy(f"team:{team}", pool="q")
    for _ in range(3):
        office.submit("team:red", 8)
    there = office.ask(all_gauges.parts)
    found = [office.ask(partial(all_gauges.part_of, part=part)) for part in there]
    whole = office.ask(gauges)
    assert len(there) > 3
    assert [(pool.name, pool.free) for each in found for pool in each.pools] == [
        (pool.name, pool.free) for pool in whole.pools
    ]
    assert {policy for each in found for policy in map(_named, each.policies)} == set(map(_named, whole.policies))
    assert sum(queue.depth for each in found for queue in each.queues) == sum(queue.depth for queue in whole.queues)
    office.do(pools.delete, "q", on_work="let-go")
    left = [office.ask(partial(all_gauges.part_of, part=part)) for part in there if part.pool == there[-1].pool]
    assert left
    assert all((each.pools, each.policies, each.queues) == ((), (), ()) for each in left)


def _named(policy: PolicyGauge) -> tuple[str, str]:
    return policy.pool, policy.subject

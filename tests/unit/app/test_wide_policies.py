"""Policies over several pools: attached, changed, shown, and what becomes of them when a pool goes or is renamed."""

from __future__ import annotations

import pytest

from fairpool.app import queries
from fairpool.app.errors import Exists, NotFound
from fairpool.app.gauges import gauges
from fairpool.app.records import Declared
from fairpool.app.sentences import names_of, reason
from fairpool.app.use_cases import policies, pools, requests, stacks
from fairpool.app.use_cases.policies import PolicyChange
from fairpool.core.amounts import vector
from fairpool.core.errors import InvalidRules
from fairpool.core.explain import explain
from fairpool.core.policies import Policy
from tests.unit.app.office import Office, policy, same_as_stored


@pytest.fixture
def office() -> Office:
    """Two pools of 8 GPUs."""
    made = Office()
    made.do(stacks.ensure_defaults)
    made.pool("a")
    made.pool("b")
    return made


@pytest.fixture
def wide(office: Office) -> Declared[Policy]:
    return office.do(policies.attach, "a", policy("team:red", {"gpu": 8}, limit=vector({"gpu": 12})), also=["b"])


def where(office: Office, request: str) -> str:
    held = office.get(request).state.grant
    return held.pool_name if held is not None else ""


def test_each_pool_is_named_once_is_there_and_has_no_policy_of_the_subject(office: Office) -> None:
    with pytest.raises(InvalidRules, match="pool 'a' is named twice"):
        office.do(policies.attach, "a", policy("team:red"), also=["b", "a"])
    with pytest.raises(NotFound):
        office.do(policies.attach, "a", policy("team:red"), also=["c"])
    office.do(policies.attach, "b", policy("team:red"))
    with pytest.raises(Exists, match="b/team:red"):
        office.do(policies.attach, "a", policy("team:red"), also=["b"])


def test_what_is_used_counts_over_all_pools_and_each_pool_says_what_is_used_there(
    office: Office, wide: Declared[Policy]
) -> None:
    held = [office.submit("team:red", 6).id, office.submit("team:red", 4).id]
    assert [where(office, each) for each in held] == ["a", "b"]
    status = office.ask(lambda memory, now: queries.policy_status(memory, now, wide.id))
    assert (dict(status.used)["gpu"], dict(status.borrowed)["gpu"]) == (10_000, 4_000)
    there = office.ask(queries.pool_statuses)
    assert [(pool.used["gpu"], pool.borrowed["gpu"], pool.reserved["gpu"]) for pool in there] == [
        (6_000, 0, 0),
        (4_000, 4_000, 0),
    ]
    (gauge,) = office.ask(gauges).policies
    assert (gauge.pool, gauge.used["gpu"], gauge.borrowed["gpu"]) == ("a,b", 10_000, 4_000)


def test_why_it_waits_names_all_pools_whose_limit_it_is(office: Office, wide: Declared[Policy]) -> None:
    held = [office.submit("team:red", 6).id, office.submit("team:red", 6).id]
    waits = office.submit("team:red", 2).id
    told = office.ask(lambda memory, now: explain(memory.world, waits, now))
    names = office.ask(lambda memory, now: names_of(memory))
    assert {reason(fact, names) for fact in told.reasons} == {
        "team:red uses 12 of its limit of 12 gpu on pools a and b together, 2 more asked for"
    }
    assert {holder.request for view in told.candidates for holder in view.holders} == set(held)


def test_its_further_pools_can_change_and_the_work_of_those_that_stay_goes_on_through_it(
    office: Office, wide: Declared[Policy]
) -> None:
    held = office.submit("team:red", 6).id
    office.pool("c")
    office.do(policies.update, wide.id, PolicyChange(also=("c",)))
    status = office.ask(lambda memory, now: queries.policy_status(memory, now, wide.id))
    assert dict(status.used) == {"gpu": 6_000, "step_run": 1_000}
    assert where(office, office.submit("team:red", 4).id) == "c"
    assert office.status(held) == "allocated"
    assert same_as_stored(office)


@pytest.mark.parametrize("gone", ["a", "b"])
def test_a_pool_that_goes_is_taken_out_of_it(office: Office, gone: str) -> None:
    made = office.do(policies.attach, "a", policy("team:red", {"gpu": 8}), also=["b"])
    office.do(policies.attach, gone, policy("team:blue"))
    held = [office.submit("team:red", 8).id, office.submit("team:red", 8).id]
    office.do(pools.delete, gone, on_work="let-go")
    (left,) = {"a", "b"} - {gone}
    assert office.memory.policy(made.id).name == f"{left}/team:red"
    assert [office.status(each) for each in held] == ["allocated", "allocated"]
    assert same_as_stored(office)
    assert office.restarted().memory.policy(made.id).spec.also == ()


def test_a_pool_that_drains_is_taken_out_of_it_when_its_last_work_ends(office: Office) -> None:
    made = office.do(policies.attach, "a", policy("team:red", {"gpu": 8}), also=["b"])
    held = office.submit("team:red", 8).id
    office.do(pools.delete, "a", on_work="drain")
    assert office.memory.policy(made.id).name == "a/team:red"
    office.do(requests.release, held)
    assert office.memory.policy(made.id).name == "b/team:red"
    assert same_as_stored(office)


@pytest.mark.parametrize("on_work", ["refuse", "let-go", "drain"])
def test_a_pool_whose_going_would_promise_too_much_of_the_others_stays(
    office: Office, wide: Declared[Policy], on_work: str
) -> None:
    """S11: 12 may be used of a and b; b alone has 8."""
    with pytest.raises(InvalidRules, match="limit 12 of 'gpu' for team:red is over the capacity 8 of pool 'b'"):
        office.do(pools.delete, "a", on_work=on_work)
    assert office.memory.pool("a").spec.state == "active"

"""Queues: they follow from policies and profiles, count what is in them, and are seen by those whose they are."""

from __future__ import annotations

from typing import Any

import pytest

from fairpool.app.authz import EVERYTHING, Principal, Reach, Right, Role
from fairpool.app.errors import NotFound
from fairpool.app.records import Declared
from fairpool.app.use_cases import policies, profiles, queues, requests
from fairpool.core.amounts import vector
from fairpool.core.errors import InvalidName
from fairpool.core.ids import ProfileId, RequestId
from fairpool.core.policies import Profile, Subject
from tests.unit.app.office import Office, opened, policy


@pytest.fixture
def office() -> Office:
    """One pool of 8 GPUs; teams red and blue, of which each has 2 reserved; a profile of half a GPU."""
    office = opened()
    create(office, "half", {"gpu": "0.5"})
    return office


def create(office: Office, name: str, demand: dict[str, object], *pools: str) -> Declared[Profile]:
    profile = Profile(id=ProfileId(""), name=name, demand=vector(demand), pools=pools or ("p",))
    return office.do(profiles.create, profile)


def names(office: Office, reach: Reach = EVERYTHING) -> list[str]:
    return [queue.name for queue in office.ask(lambda memory, now: queues.all_for(memory, reach))]


def find(office: Office, name: str, reach: Reach = EVERYTHING) -> queues.Queue:
    owner, _, profile = name.rpartition("/")
    return office.ask(lambda memory, now: queues.find(memory, reach, owner, profile))


def member(*teams: str, name: str = "ada") -> Reach:
    caller = Principal(subject=Subject.parse(f"user:{name}"), role=Role.MEMBER, teams=frozenset(teams))
    return Reach(principal=caller, right=Right.OWN)


def ask(office: Office, profile: str = "half", subject: str = "team:red", **named: Any) -> RequestId:
    return office.submit(subject, demand=None, profile=profile, **named).id


# ---- which there are -------------------------------------------------------------------------------------------------


def test_a_queue_follows_from_a_policy_and_a_profile_and_goes_with_either(office: Office) -> None:
    assert names(office) == ["blue/half", "red/half"]
    create(office, "whole", {"gpu": 1})
    assert names(office) == ["blue/half", "blue/whole", "red/half", "red/whole"]
    office.do(profiles.delete, "half")
    assert names(office) == ["blue/whole", "red/whole"]
    red = next(found for found in office.memory.policies_of(office.memory.pool("p").spec.id) if "red" in found.name)
    office.do(policies.detach, red.id)
    assert names(office) == ["blue/whole"]


def test_a_policy_that_names_profiles_makes_queues_for_these_only(office: Office) -> None:
    create(office, "whole", {"gpu": 1})
    office.policy("team:green", profiles=("whole",))
    assert [name for name in names(office) if "green" in name] == ["green/whole"]
    with pytest.raises(NotFound, match="no queue 'green/half': the policy of team:green on pool p does not offer"):
        find(office, "green/half")


def test_there_is_no_queue_for_a_profile_above_the_limit_and_the_reason_is_told(office: Office) -> None:
    office.policy("team:green", limit=vector({"gpu": 2}))
    create(office, "big", {"gpu": 4})
    assert "green/big" not in names(office)
    with pytest.raises(
        NotFound, match="no queue 'green/big': 4 gpu is asked for, the limit of team:green on pool p is 2"
    ):
        find(office, "green/big")


def test_a_queue_that_could_never_give_anything_for_now_stays_and_says_why(office: Office) -> None:
    create(office, "huge", {"gpu": 9})
    [place] = find(office, "red/huge").places
    assert place.never is not None
    assert place.never.code.value == "EXCEEDS_POOL_CAPACITY"


def test_two_policies_of_one_team_make_one_queue_over_both_pools_in_the_profiles_order(office: Office) -> None:
    office.pool("cloud")
    office.do(policies.attach, "cloud", policy("team:red", priority=50))
    create(office, "anywhere", {"gpu": 1}, "p", "cloud")
    assert [place.pool for place in find(office, "red/anywhere").places] == ["p", "cloud"]
    assert [place.pool for place in find(office, "blue/anywhere").places] == ["p"]


def test_names_never_collide(office: Office) -> None:
    """Names hold no slash, and queues of others than teams say whose they are."""
    office.policy("user:red")
    office.policy("service-account:red")
    found = names(office)
    assert len(found) == len(set(found))
    assert {"red/half", "user:red/half", "service-account:red/half"} <= set(found)
    assert str(find(office, "user:red/half").subject) == "user:red"
    with pytest.raises(InvalidName):
        create(office, "a/b", {"gpu": 1})
    with pytest.raises(InvalidName):
        office.policy("team:a/b")


def test_why_there_is_no_queue_is_told(office: Office) -> None:
    with pytest.raises(NotFound, match=r"no queue 'red/hafl': no profile 'hafl'") as raised:
        find(office, "red/hafl")
    assert raised.value.candidates[0] == "red/half"
    with pytest.raises(NotFound, match="team:green has no policy on p, which is where profile 'half' runs"):
        find(office, "green/half")


# ---- what is in them -------------------------------------------------------------------------------------------------


def test_a_queue_counts_what_waits_and_runs_and_how_long(office: Office) -> None:
    office.submit("team:blue", gpus=8, lease_s=86_400)
    first = ask(office, lease_s=86_400, profile="half", name="first", priority=-1)
    office.pass_time(5)
    second = ask(office, lease_s=86_400)
    count = find(office, "red/half").count
    assert (count.pending, count.running, count.oldest) == (2, 0, office.get(first).request.queued_at)
    office.do(requests.cancel, first)
    assert find(office, "red/half").count.oldest == office.get(second).request.queued_at
    office.pass_time(60)  # the grace period of the borrower is over
    count = find(office, "red/half").count
    assert (count.pending, count.running, count.oldest) == (0, 1, None)
    office.do(requests.release, second)
    assert (find(office, "red/half").count.running, find(office, "blue/half").count.running) == (0, 0)


def test_a_request_counts_in_the_queue_of_each_of_its_subjects(office: Office) -> None:
    office.policy("user:ada")
    subjects = (Subject.parse("user:ada"), Subject.parse("team:red"))
    ask(office, subjects=subjects)
    assert [find(office, name).count.running for name in ("red/half", "user:ada/half", "blue/half")] == [1, 1, 0]


def test_counts_are_the_same_after_a_restart(office: Office) -> None:
    office.submit("team:blue", gpus=8, lease_s=86_400)
    ask(office, lease_s=86_400)
    ask(office, lease_s=86_400, subject="team:blue")
    after = office.restarted()
    for name in ("red/half", "blue/half"):
        before, now = find(office, name).count, find(after, name).count
        assert (before.pending, before.running, before.oldest) == (now.pending, now.running, now.oldest)


def test_positions_are_those_of_the_pool_and_the_first_comes_first(office: Office) -> None:
    office.submit("team:blue", gpus=8, lease_s=86_400, preemptible=True)
    office.policy("team:gold", priority=9)
    create(office, "all", {"gpu": 8})
    low, high = ask(office, "all", name="low"), ask(office, "all", name="high", priority=3)
    gold = ask(office, "all", "team:gold")
    found = office.ask(lambda memory, now: queues.lines(memory, [low, high, gold, RequestId("gone")]))
    assert [(line.record.id, dict(line.positions)) for line in found] == [
        (gold, {"p": 1}),
        (high, {"p": 2}),
        (low, {"p": 3}),
    ]


def test_what_the_next_request_would_meet_is_told(office: Office) -> None:
    explained = office.ask(
        lambda memory, now: queues.next_in(memory, now, queues.find(memory, EVERYTHING, "red", "half"))
    )
    assert explained is not None
    assert explained.explanation.status.value == "allocated"
    office.submit("team:red", gpus=8, lease_s=86_400, preemptible=True)
    create(office, "all", {"gpu": 8})
    explained = office.ask(
        lambda memory, now: queues.next_in(memory, now, queues.find(memory, EVERYTHING, "red", "all"))
    )
    assert explained is not None
    assert explained.explanation.status.value == "queued"


# ---- who sees them ---------------------------------------------------------------------------------------------------


def test_a_member_sees_the_queues_of_their_teams_and_their_own_only(office: Office) -> None:
    office.policy("user:ada")
    office.policy("user:bob")
    office.policy("component:local")
    assert names(office, member("red")) == ["component:local/half", "red/half", "user:ada/half"]
    assert names(office, member()) == ["component:local/half", "user:ada/half"]
    with pytest.raises(NotFound, match=r"^no queue 'blue/half'$"):
        find(office, "blue/half", member("red"))
    assert find(office, "red/half", member("red")).name == "red/half"


def test_who_runs_things_sees_all_queues(office: Office) -> None:
    caller = Principal(subject=Subject.parse("user:op"), role=Role.OPERATOR)
    operator = Reach(principal=caller, right=Right.ALL)
    assert names(office, operator) == names(office, EVERYTHING) == ["blue/half", "red/half"]


def test_asking_for_queues_touches_no_waiting_request(office: Office) -> None:
    """A queue is found by its counts alone."""
    office.submit("team:blue", gpus=8, lease_s=86_400, preemptible=True)
    create(office, "all", {"gpu": 8})
    count = office.memory.queues.of(Subject.parse("team:red"), "all")
    assert count.pending == 0
    for _ in range(3):
        ask(office, "all", lease_s=86_400)
    looked: list[str] = []
    live = office.memory.live

    class Watched(dict[Any, Any]):
        def __getitem__(self, key: Any) -> Any:
            looked.append(key)
            return super().__getitem__(key)

        def __iter__(self) -> Any:
            raise AssertionError("the live requests were gone through")

    office.memory.live = Watched(live)
    try:
        assert [queue.count.pending for queue in office.ask(lambda m, now: queues.all_for(m, EVERYTHING))] == [
            0,
            0,
            3,
            0,
        ]
    finally:
        office.memory.live = live
    assert not looked

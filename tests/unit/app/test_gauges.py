"""What there is now, as numbers: who waits where and for how long, whatever the order in which they are served."""

from __future__ import annotations

from fairpool.app.gauges import QueueGauge, gauges
from fairpool.app.use_cases import profiles, requests
from fairpool.core import amounts
from fairpool.core.ids import ProfileId
from fairpool.core.policies import Profile
from tests.unit.app.office import Office, opened


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

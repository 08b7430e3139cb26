"""The transition table of requests: exactly the changes of status that section 9 of the semantics lists."""

from __future__ import annotations

import itertools

import pytest

from fairpool.core import events as ev
from fairpool.core.errors import IllegalTransition, InvalidInput, UnknownObject
from fairpool.core.ids import SECOND, Instant, RequestId
from fairpool.core.lifecycle import HAPPENING_OF, TABLE, Happening, after
from fairpool.core.planner import decide
from fairpool.core.requests import Status
from fairpool.testing import builders as make

NEXT = {
    Status.QUEUED: {Status.ALLOCATED, Status.REJECTED, Status.CANCELLED, Status.EXPIRED},
    Status.ALLOCATED: {Status.RELEASED, Status.PREEMPTING, Status.EXPIRED, Status.CANCELLED},
    Status.PREEMPTING: {Status.PREEMPTED},
}
R = RequestId("r")


def test_the_table_leads_where_section_9_says_and_nowhere_else() -> None:
    found: dict[Status, set[Status]] = {}
    for (status, _), following in TABLE.items():
        found.setdefault(status, set()).add(following)
    assert found == NEXT


@pytest.mark.parametrize(
    ("status", "happening"), [pair for pair in itertools.product(Status, Happening) if pair not in TABLE]
)
def test_any_other_change_is_refused_by_request_status_and_event(status: Status, happening: Happening) -> None:
    with pytest.raises(IllegalTransition) as refusal:
        after(R, status, happening)
    assert str(refusal.value) == f"request 'r' is {status.value}: it cannot be {happening.value}"


@pytest.mark.parametrize("how", [Happening.RELEASE, Happening.DEADLINE, Happening.EXPIRE, Happening.CANCEL])
def test_however_an_evicted_request_lets_go_it_was_preempted(how: Happening) -> None:
    assert after(R, Status.PREEMPTING, how) is Status.PREEMPTED


@pytest.mark.parametrize("how", HAPPENING_OF)
def test_a_running_request_ends_as_it_was_told_and_frees_what_it_held(how: Status) -> None:
    """S35: a lapsed lease (`expired`) frees the capacity as a release does. That the change is durable before anybody
    is told (S34) is asked where there is a store."""
    world = make.settled(make.pool("p", {"gpu": 8}), make.policy(), make.request("r"))
    if how is Status.PREEMPTED:  # only a deadline does that, to a request that was told to let go
        with pytest.raises(IllegalTransition):
            world.apply(ev.Ended(request=R, how=how), make.START)
        return
    (change,) = world.apply(ev.Ended(request=R, how=how), Instant(5 * SECOND))
    assert change == ev.Transition(request=R, before=Status.ALLOCATED, after=how, at=Instant(5 * SECOND))
    assert world.status_of(R) is None
    assert world.snapshot().allocations == ()
    assert world.free(make.pool("p").id) == {"gpu": 8000}


def test_a_queued_request_cannot_be_released_and_stays_queued() -> None:
    world = make.world(make.pool("p", {"gpu": 8}), make.policy(), make.request("r"))
    with pytest.raises(IllegalTransition):
        world.apply(ev.Ended(request=R, how=Status.RELEASED), make.START)
    assert world.status_of(R) is Status.QUEUED


def test_a_request_that_has_ended_is_unknown() -> None:
    world = make.settled(make.pool("p", {"gpu": 8}), make.policy(), make.request("r"))
    world.apply(ev.Ended(request=R, how=Status.RELEASED), make.START)
    with pytest.raises(UnknownObject, match="no request 'r'"):
        world.apply(ev.Ended(request=R, how=Status.RELEASED), make.START)


def test_a_request_is_submitted_once() -> None:
    world = make.settled(make.pool("p", {"gpu": 8}), make.policy(), make.request("r"))
    with pytest.raises(InvalidInput, match="exists already"):
        world.apply(ev.Submitted(request=make.request("r")), make.START)


def test_at_the_deadline_the_hold_ends_and_whoever_caused_it_starts() -> None:
    """S31: whether or not the owner answered; and not a moment earlier."""
    world = make.settled(
        make.pool("p", {"gpu": 8}),
        make.policy("team:t", {"gpu": 8}),
        make.policy("team:b", grace_s=10),
        make.request("b", "team:b", {"gpu": 8}),
        later=[make.request("r", "team:t", {"gpu": 8})],
    )
    early = decide(world, Instant(10 * SECOND - 1))
    assert early.is_empty
    assert early.wake_at == 10 * SECOND
    due = decide(world, Instant(10 * SECOND))
    assert [(finish.request, finish.status) for finish in due.finishes] == [("b", Status.PREEMPTED)]
    assert [grant.request for grant in due.grants] == ["r"]

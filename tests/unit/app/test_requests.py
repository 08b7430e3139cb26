"""Requests: submitted once, repeated with their place, ended once, explained and checked without a trace."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fairpool.app.authz import OWNER, Principal, Role
from fairpool.app.errors import Ambiguous, Conflict, KeyReused, NotFound, QueueFull
from fairpool.app.records import RequestRecord
from fairpool.app.use_cases import profiles, requests, runs, settings
from fairpool.core.amounts import vector
from fairpool.core.errors import IllegalTransition
from fairpool.core.ids import SECOND, ProfileId
from fairpool.core.policies import Profile, Subject
from fairpool.core.reasons import Code
from fairpool.core.requests import Demand, Status
from tests.unit.app.office import START, Office, ask, opened, same_as_stored, submitting


@pytest.fixture
def office() -> Office:
    return opened()


# ---- what is asked for -----------------------------------------------------------------------------------------------


def test_the_server_adds_one_step_slot_whatever_the_author_says(office: Office) -> None:
    """S1: one per request, in its first part."""
    demand = Demand((vector({"gpu": 1, "step_run": 7}), vector({"gpu": 1, "step_run": 3})))
    made = office.do(requests.submit, ask(demand=demand))
    assert made.request.demand.total == vector({"gpu": 2, "step_run": 1})
    assert made.request.demand.parts[0] == vector({"gpu": 1, "step_run": 1})


def test_a_component_that_no_policy_speaks_of_starts_work_at_once_and_shows_it(office: Office) -> None:
    """S15."""
    made = office.submit("component:local", 99)
    assert made.status is Status.ALLOCATED
    assert made.state.grant is not None
    assert made.state.grant.pool is None
    assert "no policy" in office.told.entries[-1].change.cause


def test_a_workspace_that_requires_policies_rejects_ungoverned_work(office: Office) -> None:
    """S15."""
    office.do(settings.update, require_policy=True)
    made = office.submit("component:local")
    assert [made.status, *(reason.code for reason in made.state.reasons)] == [Status.REJECTED, Code.NO_POLICY]
    assert office.restarted().submit("component:local").status is Status.REJECTED


def test_what_can_never_run_is_rejected_at_once_with_its_numbers(office: Office) -> None:
    """S17."""
    made = office.submit(gpus=9)
    (reason,) = made.state.reasons
    assert (made.status, reason.code, reason.asked, reason.possible) == (
        Status.REJECTED,
        Code.EXCEEDS_POOL_CAPACITY,
        9000,
        8000,
    )


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"pool": "nowhere"}, "pool"),
        ({"profile": "none"}, "profile"),
        ({"subject": "component:nobody"}, "component"),
        ({"retry_of": "gone"}, "request"),
    ],
)
def test_what_is_named_and_not_there_is_said_by_its_kind(office: Office, given: dict[str, Any], kind: str) -> None:
    with pytest.raises(NotFound) as raised:
        office.submit(**given)
    assert raised.value.kind == kind


def test_a_near_miss_names_what_was_meant(office: Office) -> None:
    office.pool("training-gpus")
    with pytest.raises(NotFound) as raised:
        office.submit(pool="traning-gpus")
    assert raised.value.candidates == ("training-gpus",)


def test_a_profile_says_what_is_asked_for(office: Office) -> None:
    office.do(profiles.create, Profile(id=ProfileId(""), name="half", demand=vector({"gpu": "0.5"}), pools=("p",)))
    made = office.do(requests.submit, ask(demand=None, profile="half"))
    assert made.request.demand.total == vector({"gpu": "0.5", "step_run": 1})
    assert made.status is Status.ALLOCATED


# ---- once ------------------------------------------------------------------------------------------------------------


def test_the_same_key_gives_the_same_request_in_one_round_in_the_next_and_after_a_restart(office: Office) -> None:
    """S36."""
    given = ask(idempotency_key="k", labels={"a": "1", "b": "2"})
    again = ask(idempotency_key="k", labels={"b": "2", "a": "1"})
    first, same = office.round(*submitting(given, again))
    later = office.do(requests.submit, given)
    after = office.restarted().do(requests.submit, again)
    assert len({first.result().id, same.result().id, later.id, after.id}) == 1


def test_the_same_key_with_another_body_is_refused_in_one_round_and_later(office: Office) -> None:
    """S36."""
    answers = office.round(*submitting(ask(idempotency_key="k"), ask(gpus=2, idempotency_key="k")))
    assert answers[0].result().status is Status.ALLOCATED
    assert isinstance(answers[1].exception(), KeyReused)
    with pytest.raises(KeyReused):
        office.submit("team:blue", idempotency_key="k")
    assert len(office.memory.live) == 1


def test_a_key_whose_request_has_ended_still_gives_that_request(office: Office) -> None:
    made = office.submit(idempotency_key="k")
    office.do(requests.release, made.id)
    again = office.submit(idempotency_key="k")
    assert (again.id, again.status) == (made.id, Status.RELEASED)


def test_of_many_at_once_each_succeeds_or_fails_for_itself(office: Office) -> None:
    found = office.do(requests.submit_many, [ask(), ask(pool="nowhere"), NotFound("x", "read"), ask(gpus=99)])
    told = [item.status if isinstance(item, RequestRecord) else type(item) for item in found]
    assert told == [Status.ALLOCATED, NotFound, NotFound, Status.REJECTED]
    assert same_as_stored(office)


def test_a_request_knows_who_made_it_and_each_change_its_actor_and_cause(office: Office) -> None:
    """S34."""
    made = office.do(requests.submit, ask(name="train", run="", labels={"x": "y"}), actor="user:bob")
    office.do(requests.cancel, made.id, actor="user:eve", reason="not needed")
    assert made.submission.created_by == "user:bob"
    changes = [entry.change for entry in office.told.entries if entry.change.object == made.id]
    assert [(change.what, change.actor, change.cause) for change in changes] == [
        ("queued", "user:bob", "submitted"),
        ("allocated", "scheduler", "pool p, policy of team:red"),
        ("cancelled", "user:eve", "not needed"),
    ]
    assert {change.name for change in changes} == {"train"}


def test_all_changes_of_a_runs_requests_can_be_followed_by_the_run(office: Office) -> None:
    run = office.do(runs.create_run, runs.NewRun(name="sweep"))
    made = office.submit(run=run.id)
    office.do(requests.release, made.id)
    changes = [entry.change for entry in office.told.entries if entry.change.run == run.id]
    assert [change.what for change in changes] == ["pending", "queued", "allocated", "released"]


# ---- again, after an eviction ----------------------------------------------------------------------------------------


def evicted(office: Office, **named: Any) -> RequestRecord:
    """A request of team blue that team red's reservation has put out, after 100 seconds of running."""
    victim = office.submit("team:blue", 8, lease_s=86_400, **named)
    office.clock.advance(100)
    office.submit("team:red", 2, lease_s=86_400)
    return office.do(requests.release, victim.id)


def test_a_retry_keeps_the_place_of_what_it_repeats(office: Office) -> None:
    """S24."""
    old = evicted(office)
    assert old.status is Status.PREEMPTED
    made = office.submit("team:blue", 8, retry_of=old.id)
    assert made.request.queued_at == START
    assert made.submission.created_at == START + 100 * SECOND


def test_a_preempted_request_is_repeated_once(office: Office) -> None:
    old = evicted(office)
    first, second = office.round(*submitting(*[ask("team:blue", 8, retry_of=old.id)] * 2))
    made = first.result()
    assert isinstance(second.exception(), Conflict)
    assert made.id in str(second.exception())
    with pytest.raises(Conflict, match="repeated already"):
        office.submit("team:blue", 8, retry_of=old.id)
    after = office.restarted()
    with pytest.raises(Conflict, match="repeated already"):
        after.submit("team:blue", 8, retry_of=old.id)
    after.do(requests.cancel, made.id)
    with pytest.raises(Conflict, match="repeated already"):
        after.submit("team:blue", 8, retry_of=old.id)


def test_only_the_same_subject_repeats_and_only_what_was_preempted(office: Office) -> None:
    old = evicted(office)
    with pytest.raises(Conflict, match="was made as team:blue"):
        office.submit("team:red", retry_of=old.id)
    done = office.submit("team:red")
    office.do(requests.cancel, done.id)
    with pytest.raises(Conflict, match="only a preempted one"):
        office.submit("team:red", retry_of=done.id)


def test_a_retry_waits_as_long_as_it_says_from_its_own_arrival(office: Office) -> None:
    """S36 with S24: the time for which the first attempt ran is not the retry's waiting."""
    old = evicted(office, wait_timeout_s=30)
    made = office.submit("team:blue", 8, retry_of=old.id, wait_timeout_s=30, lease_s=86_400)
    assert (made.status, requests.own_wait_timeout_s(made)) == (Status.QUEUED, 30)
    office.pass_time(29)
    assert office.status(made.id) == "queued"
    office.pass_time(1)
    assert office.status(made.id) == "rejected"
    assert [reason.code for reason in office.get(made.id).state.reasons] == [Code.WAIT_TIMEOUT]


# ---- the end ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", [requests.cancel, requests.release])
def test_ending_twice_is_the_same_as_once(office: Office, end: Any) -> None:
    made = office.submit()
    first = office.do(end, made.id)
    assert office.do(end, made.id).state == first.state
    assert len(office.history(made.id)) == 3


def test_what_is_over_does_not_end_in_another_way(office: Office) -> None:
    made = office.submit()
    office.do(requests.release, made.id)
    with pytest.raises(IllegalTransition):
        office.do(requests.cancel, made.id)


def test_a_waiting_request_cannot_let_go_of_what_it_does_not_hold(office: Office) -> None:
    office.submit(gpus=8)
    waiting = office.submit()
    with pytest.raises(IllegalTransition):
        office.do(requests.release, waiting.id)
    assert office.status(waiting.id) == "queued"


@pytest.mark.parametrize("end", [requests.cancel, requests.release])
def test_evicted_work_ends_as_preempted_however_it_lets_go_and_as_often(office: Office, end: Any) -> None:
    victim, owner = office.submit("team:blue", 8), office.submit("team:red", 2)
    assert office.status(victim.id) == "preempting"
    assert office.do(end, victim.id).status is Status.PREEMPTED
    assert office.do(end, victim.id).status is Status.PREEMPTED
    assert office.status(owner.id) == "allocated"


def test_at_the_deadline_the_hold_ends_whether_or_not_the_owner_answered(office: Office) -> None:
    """S31."""
    victim, owner = office.submit("team:blue", 8), office.submit("team:red", 2)
    office.pass_time(29)
    assert (office.status(victim.id), office.status(owner.id)) == ("preempting", "queued")
    office.pass_time(1)
    assert (office.status(victim.id), office.status(owner.id)) == ("preempted", "allocated")
    grant = office.get(victim.id).state.grant
    assert grant is not None
    assert grant.eviction is not None
    assert grant.eviction.cause == owner.id


def test_what_evictions_are_freeing_is_kept_over_a_restart(office: Office) -> None:
    """S31."""
    office.submit("team:blue", 8)
    owner = office.submit("team:red", 2)
    after = office.restarted()
    assert after.get(owner.id).state.claim == office.get(owner.id).state.claim is not None
    late = after.submit("team:blue", 1)
    after.pass_time(31)
    assert (after.status(owner.id), after.status(late.id)) == ("allocated", "allocated")


def test_a_request_is_found_by_id_and_unique_prefix(office: Office) -> None:
    made, other = office.submit(), office.submit()
    assert office.get(made.id).id == made.id
    with pytest.raises(Ambiguous) as raised:
        office.do(requests.cancel, "request")
    assert set(raised.value.candidates) == {made.id, other.id}
    with pytest.raises(NotFound):
        office.do(requests.cancel, "nothing")


# ---- asked without a trace -------------------------------------------------------------------------------------------


def test_checking_says_what_would_happen_and_leaves_nothing(office: Office) -> None:
    office.submit(gpus=8, lease_s=3600)
    before = office.memory.world.snapshot(), office.store.reader.history.last_seq()
    reader = office.store.reader
    waits = office.ask(lambda memory, now: requests.check(memory, reader, now, ask(gpus=7)))
    never = office.ask(lambda memory, now: requests.check(memory, reader, now, ask(gpus=9)))
    assert waits.explanation.status is Status.QUEUED
    assert waits.explanation.candidates
    assert never.explanation.status is Status.REJECTED
    assert (office.memory.world.snapshot(), office.store.reader.history.last_seq()) == before


def test_an_explanation_names_those_who_hold_what_is_missing(office: Office) -> None:
    """S37."""
    holder, waiting = office.submit("team:blue", 8, name="big"), office.submit("team:blue", 4)
    found = office.ask(lambda memory, now: requests.explain(memory, now, memory.live[waiting.id]))
    assert found.mentioned[holder.id].submission.name == "big"
    assert [view.position for view in found.explanation.candidates] == [1]
    assert set(found.pool_names.values()) == {"p"}


def test_what_is_over_is_explained_by_what_is_remembered(office: Office) -> None:
    made = office.submit(gpus=9)
    found = office.ask(lambda memory, now: requests.explain(memory, now, made))
    assert (found.explanation.status, found.explanation.reasons) == (Status.REJECTED, made.state.reasons)


def test_of_requests_made_at_one_moment_a_retry_still_comes_before_those_that_came_after_it(office: Office) -> None:
    """S24: its place is that of the request it repeats, among those of the same moment too."""
    guest, later = (item.result() for item in office.round(*submitting(ask("team:blue", 8), ask("team:blue", 8))))
    office.submit("team:red", 2, lease_s=86_400)
    office.do(requests.release, guest.id)
    retry = office.submit("team:blue", 8, retry_of=guest.id)
    assert retry.request.queued_at < later.request.queued_at


def test_nobody_has_more_waiting_than_they_may_and_what_starts_or_ends_makes_room(office: Office) -> None:
    alice = Principal(subject=Subject.parse("user:alice"), role=Role.OPERATOR)

    def submit(who: Principal = alice, gpus: int = 8) -> RequestRecord:
        return office.do(requests.submit, ask("team:red", gpus), caller=who, most_queued=2, actor=who.actor)

    running, first, second = submit(), submit(), submit()
    assert [record.status for record in (running, first, second)] == [Status.ALLOCATED, Status.QUEUED, Status.QUEUED]
    with pytest.raises(QueueFull) as caught:
        submit()
    assert (caught.value.queued, caught.value.most) == (2, 2)
    bob = replace(alice, subject=Subject.parse("user:bob"))
    assert submit(bob).status is Status.QUEUED
    assert [submit(OWNER).status for _ in range(3)] == [Status.QUEUED] * 3
    office.do(requests.cancel, second.id)
    assert submit().status is Status.QUEUED
    office.do(requests.release, running.id)
    assert submit().status is Status.QUEUED
    with pytest.raises(QueueFull):
        submit()
    assert (
        office.memory.queued_by == office.restarted().memory.queued_by == {"user:alice": 2, "user:bob": 1, "local": 3}
    )

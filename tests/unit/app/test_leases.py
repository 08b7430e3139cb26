"""S35: owners renew leases, and one who stops loses what it holds. S36: who said how long it runs is kept to that."""

from __future__ import annotations

import pytest

from fairpool.app.leases import FLUSH_EVERY_S, FLUSH_MOST, OVERTIME_S, SLACK, Deadlines, LeaseBook
from fairpool.app.records import Lease
from fairpool.app.store_errors import StoreUnavailable
from fairpool.app.use_cases import policies, requests
from fairpool.core.ids import SECOND, Instant, RequestId
from fairpool.core.requests import Status
from tests.unit.app.office import START, Office, ask, opened, submitting


@pytest.fixture
def office() -> Office:
    return opened()


def test_a_crashed_owner_leaks_nothing_and_the_next_gets_what_it_held(office: Office) -> None:
    crashed, waiting = office.submit(gpus=8), office.submit(gpus=8, lease_s=3600)
    office.pass_time(59)
    assert (office.status(crashed.id), office.status(waiting.id)) == ("allocated", "queued")
    office.pass_time(1)
    assert (office.status(crashed.id), office.status(waiting.id)) == ("expired", "allocated")
    assert office.get(crashed.id).state.ended_by == "lease"


def test_a_waiting_request_whose_owner_is_gone_leaves_the_queue(office: Office) -> None:
    office.submit(gpus=8, lease_s=3600)
    waiting = office.submit()
    office.pass_time(60)
    assert office.status(waiting.id) == "expired"


def test_an_owner_that_renews_keeps_what_it_holds(office: Office) -> None:
    held = office.submit()
    for _ in range(20):
        office.pass_time(15)
        found, missing = office.do(requests.renew, [held.id])
        assert [record.status for record in found] == [Status.ALLOCATED]
        assert missing == []
    office.pass_time(59)
    assert office.status(held.id) == "allocated"


def test_whoever_renews_too_late_is_told_that_it_is_over(office: Office) -> None:
    held = office.submit()
    office.pass_time(61)
    found, missing = office.do(requests.renew, [held.id, "never-there"])
    assert [record.status for record in found] == [Status.EXPIRED]
    assert missing == ["never-there"]


def test_renewals_cost_no_commit_of_their_own_and_are_written_down_in_time(office: Office) -> None:
    held = office.submit(lease_s=300)
    batches = len(office.store.batches)
    office.clock.advance(10)
    office.do(requests.renew, [held.id])
    assert len(office.store.batches) == batches
    office.pass_time(FLUSH_EVERY_S + 5)
    (written,) = [batch for batch in office.store.batches[batches:] if batch.renewed]
    assert dict(written.renewed)[held.id].until == START + 310 * SECOND


def test_after_a_long_time_away_every_owner_gets_one_full_lease(office: Office) -> None:
    held, waiting = office.submit(gpus=8), office.submit(gpus=8)
    office.clock.advance(3600)
    after = office.restarted()
    after.pass_time(59)
    assert (after.status(held.id), after.status(waiting.id)) == ("allocated", "queued")
    after.do(requests.renew, [waiting.id])
    after.pass_time(2)
    assert (after.status(held.id), after.status(waiting.id)) == ("expired", "allocated")


def test_a_lapse_that_could_not_be_written_down_happens_later_and_once(office: Office) -> None:
    held = office.submit()
    office.clock.advance(60)
    office.store.refusals = [StoreUnavailable("busy")]
    office.scheduler.cycle([])
    office.pass_time(61)
    assert office.history(held.id) == ["queued", "allocated", "expired"]


def test_an_evicted_owner_that_dies_frees_its_hold_before_the_deadline_and_reads_preempted(office: Office) -> None:
    _patient(office)
    victim = office.submit("team:blue", 8, lease_s=20)
    owner = office.submit("team:red", 2, lease_s=3600)
    assert office.status(victim.id) == "preempting"
    office.pass_time(21)
    assert (office.status(victim.id), office.status(owner.id)) == ("preempted", "allocated")


def _patient(office: Office) -> None:
    change = policies.PolicyChange(grace_s=600)
    office.do(policies.update, office.memory.policies_of(office.memory.pool("p").spec.id)[0].id, change)


def test_a_hold_ends_when_it_has_run_for_longer_than_it_said(office: Office) -> None:
    """S25 lets short work start behind what is held for another on the strength of what it said."""
    held = office.submit(max_runtime_s=100, lease_s=3600)
    office.pass_time(100 + OVERTIME_S - 1)
    assert office.status(held.id) == "allocated"
    office.pass_time(1)
    assert (office.status(held.id), office.get(held.id).state.ended_by) == ("expired", "max_runtime_s")


def test_how_long_work_may_run_counts_from_its_grant_and_survives_a_restart(office: Office) -> None:
    first = office.submit(gpus=8, max_runtime_s=1000, lease_s=7200)
    second = office.submit(gpus=8, max_runtime_s=10, lease_s=7200)
    office.pass_time(500)
    after = office.restarted()
    after.pass_time(500 + OVERTIME_S - 1)
    assert after.status(first.id) == "allocated"
    after.pass_time(1)
    assert (after.status(first.id), after.status(second.id)) == ("expired", "allocated")
    after.pass_time(10 + OVERTIME_S)
    assert after.status(second.id) == "expired"


def test_what_ended_in_time_is_not_ended_again(office: Office) -> None:
    held = office.submit(max_runtime_s=10, lease_s=3600)
    office.do(requests.release, held.id)
    office.pass_time(3600)
    assert office.history(held.id) == ["queued", "allocated", "released"]


def test_deadlines_remember_no_more_than_is_live() -> None:
    deadlines = Deadlines()
    for number in range(50_000):
        deadlines.set(RequestId(f"r{number}"), Instant(10**9 + number))
        deadlines.drop(RequestId(f"r{number}"))
    assert len(deadlines) == 0
    assert len(deadlines._heap) <= SLACK + 1


def test_a_deadline_comes_at_the_moment_set_last_and_once() -> None:
    deadlines = Deadlines()
    for request, at in (("a", 10), ("b", 10), ("a", 30), ("b", 5), ("b", 20), ("c", 25)):
        deadlines.set(RequestId(request), Instant(at))
    assert deadlines.due(Instant(19)) == []
    assert deadlines.due(Instant(25)) == ["b", "c"]
    assert deadlines.next() == 30
    assert [deadlines.due(Instant(30)), deadlines.due(Instant(99)), deadlines.next()] == [["a"], [], None]


def test_renewals_of_many_are_written_down_a_part_at_a_time() -> None:
    many = [RequestId(f"r{number:05}") for number in range(2 * FLUSH_MOST + 7)]
    book = LeaseBook(((request, Lease(until=Instant(0), length_s=60)) for request in many), Instant(0))
    now, sizes = Instant(FLUSH_EVERY_S * SECOND), []
    assert book.unwritten(Instant(now - 1)) == ()
    while part := book.unwritten(now):
        book.written((request for request, _ in part), now)
        assert book.unwritten(now) == (), "the next part waits a second, so that no call waits behind all of them"
        sizes.append(len(part))
        now = Instant(now + SECOND)
    assert sizes == [FLUSH_MOST, FLUSH_MOST, 7]


def test_a_renewal_may_say_another_length(office: Office) -> None:
    held = office.submit(lease_s=600)
    office.do(requests.renew, [held.id], length_s=5)
    office.pass_time(5)
    assert office.status(held.id) == "expired"


def test_ten_thousand_renewals_of_one_round_are_one_lookup_each(office: Office) -> None:
    answers = office.round(*submitting(*(ask(lease_s=60) for _ in range(200))))
    ids = [answer.result().id for answer in answers]
    office.clock.advance(30)
    found, missing = office.do(requests.renew, ids * 50)
    assert (len(found), missing) == (10_000, [])
    assert {record.lease.until for record in found if record.lease} == {START + 90 * SECOND}

"""Each committed round is told as numbers, once; a round that was undone is not."""

from __future__ import annotations

from collections import Counter

import pytest

from fairpool.app.metering import RoundReport
from fairpool.app.scheduler import Scheduler
from fairpool.app.store_errors import StoreUnavailable
from fairpool.app.use_cases import requests
from fairpool.core.requests import Status
from tests.unit.app.office import Office, opened


class Counts:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.reports: list[RoundReport] = []
        self.failures = 0
        self.broken = False

    def round(self, report: RoundReport) -> None:
        if self.broken:
            raise ZeroDivisionError("a bug")
        self.reports.append(report)

    def failed(self) -> None:
        self.failures += 1

    def total(self, name: str) -> Counter[object]:
        return sum((Counter(getattr(report, name)) for report in self.reports), Counter())


@pytest.fixture
def counts() -> Counts:
    return Counts()


@pytest.fixture
def office(counts: Counts) -> Office:
    office = opened()
    office.scheduler.resign()
    office.scheduler = Scheduler(
        office.store, office.clock, office.ids, office.told, leading=office.scheduler.leading, meter=counts
    )
    return office


def test_grants_evictions_rejections_and_ends_are_told_with_their_reasons(office: Office, counts: Counts) -> None:
    red = office.submit("team:red", 8)
    office.clock.advance(5)
    blue = office.submit("team:blue", 2)
    office.submit("team:blue", 99)
    office.clock.advance(2)
    office.do(requests.release, red.id)
    assert office.status(blue.id) == "allocated"
    grants = [grant for report in counts.reports for grant in report.grants]
    assert [(grant.pool, grant.policy, grant.waited_s) for grant in grants] == [
        ("p", "team:red", 0),
        ("p", "team:blue", 2),
    ]
    assert counts.total("evictions") == Counter({("p", "reclaim"): 1})
    assert counts.total("rejections") == Counter({"EXCEEDS_POOL_CAPACITY": 1})
    assert counts.total("ended") == Counter({"rejected": 1, "preempted": 1})
    assert sum(report.submitted for report in counts.reports) == 3


def test_a_request_that_starts_and_ends_in_one_round_counts_in_both(office: Office, counts: Counts) -> None:
    record = office.submit("team:red", 1)
    assert record.status is Status.ALLOCATED
    assert counts.reports[-1].submitted == len(counts.reports[-1].grants) == 1


def test_a_round_that_could_not_be_committed_is_counted_as_that_and_nothing_else(
    office: Office, counts: Counts
) -> None:
    office.ask(lambda memory, now: None)
    before = len(counts.reports)
    office.store.refusals = [StoreUnavailable("gone")]
    with pytest.raises(StoreUnavailable):
        office.submit("team:red", 1)
    assert (len(counts.reports), counts.failures) == (before, 1)


def test_counting_that_breaks_takes_nothing_back(office: Office, counts: Counts) -> None:
    counts.broken = True
    assert office.submit("team:red", 1).status is Status.ALLOCATED
    assert office.submit("team:red", 1).status is Status.ALLOCATED

"""Two servers, a database and people, in a world in which everything goes wrong: each seed is one run.

More of them: `make faults`. A seed that fails prints its story and how to run it again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from fairpool.app.records import Batch
from fairpool.app.use_cases import requests
from fairpool.store.sql import SqlStore
from tests.simulation import people, run
from tests.simulation.faults import FailingStore
from tests.simulation.hunting import SeedFailed, Total, a_place, hunt, one

SEEDS = 500
ENOUGH_TO_NOTICE = 60


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """What goes wrong is what this is about: its log would be endless."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.timeout(900)  # a minute of computing, of which others may leave it a fifth
def test_nothing_is_lost_doubled_or_broken_whatever_goes_wrong(
    record_property: Callable[[str, object], None],
) -> None:
    total = hunt(range(SEEDS))
    record_property("figure", str(total))
    assert total.seeds == SEEDS
    assert min(total.faults.values()) > 20, f"each kind of fault happens often enough: {total.faults}"
    assert total.leaderships > 2 * SEEDS


def test_a_seed_is_one_run() -> None:
    with a_place() as (template, folder):
        first = one(7, template, folder)
    with a_place() as (template, folder):
        assert one(7, template, folder) == first


def noticed() -> str:
    """What the first seed says that notices something."""
    with pytest.raises(SeedFailed) as failed:
        hunt(range(ENOUGH_TO_NOTICE))
    return str(failed.value)


def test_a_leader_that_is_not_fenced_off_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    commit = SqlStore.commit

    def unfenced(self: SqlStore, batch: Batch, token: int) -> int:
        leader = self.leases.current()
        return commit(self, batch, leader.token if leader is not None else token)

    monkeypatch.setattr(SqlStore, "commit", unfenced)
    assert "again: python -m tests.simulation --from" in noticed()


def test_a_client_that_repeats_without_its_key_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = iter(range(10**6))

    def careless(given: requests.Ask, tx: Any) -> Any:
        return requests.submit(tx, replace(given, idempotency_key=f"k{next(calls)}"))

    monkeypatch.setattr(people, "_submit", careless)
    assert noticed()


def test_telling_what_was_not_committed_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def lying(self: FailingStore, batch: Batch, token: int) -> int:
        if len(batch.inserted) and self.chance.goes_wrong("a commit that is none", 0.2):
            return self.store.reader.history.last_seq() + len(batch.changes)
        return commit(self, batch, token)

    commit = FailingStore.commit
    monkeypatch.setattr(FailingStore, "commit", lying)
    assert noticed()


def test_leases_that_nobody_ends_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "CALM_S", 60)
    monkeypatch.setattr("fairpool.app.leases.LeaseBook.lapsed", lambda self, now: [])
    assert "never ended" in noticed()


def test_what_several_seeds_come_to_adds_up() -> None:
    total = Total()
    with a_place() as (template, folder):
        ran = one(3, template, folder)
    total.add(ran)
    total.add(ran)
    assert (total.seeds, total.requests) == (2, 2 * ran.requests)
    assert "simulated servers: 2 seeds" in str(total)

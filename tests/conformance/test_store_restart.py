"""A store gives back the very world that was committed to it (S34)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fairpool.core.audit import audit
from fairpool.core.planner import plan
from fairpool.core.world import World
from tests.conformance.store_samples import trial, trial_of
from tests.conformance.world_batches import Life


@pytest.mark.parametrize("seed", range(12))
def test_after_any_life_every_store_restores_the_same_world(seed: int, tmp_path: Path, postgres_url: str) -> None:
    life = Life(seed)
    trials = [trial("memory", tmp_path), trial("sqlite", tmp_path), trial_of(postgres_url)]
    for number, batch in enumerate(life.batches(80)):
        for on in trials:
            on.store.commit(batch, on.token)
        if number % 10:
            continue
        memory, sqlite, postgres = (on.store.load() for on in trials)
        assert memory == sqlite == postgres
        assert sqlite.snapshot == life.world.snapshot()
    memory, sqlite, postgres = (on.reopened().load() for on in trials)
    assert memory == sqlite == postgres
    assert sqlite.live == {name: record for name, record in life.records.items() if not record.status.is_final}
    every = list(life.records)
    assert all(on.store.reader.requests.get(every) == life.records for on in trials)
    restored = World.restore(sqlite.snapshot)
    assert audit(restored, life.now) == ()
    # When to look again may differ: the old world remembers moments of requests that are gone.
    assert replace(plan(restored, life.now), wake_at=None) == replace(plan(life.world, life.now), wake_at=None)
    for on in trials:
        on.store.close()


def test_these_lives_have_everything_in_them_that_a_store_must_keep() -> None:
    """Or else the test above would prove little."""
    seen: set[str] = set()
    for seed in range(12):
        life = Life(seed)
        for batch in life.batches(80):
            for _, state in batch.updated:
                seen.add(state.status.value)
                if state.claim:
                    seen.add("claim")
    assert {"allocated", "preempting", "preempted", "released", "expired", "cancelled", "rejected", "claim"} <= seen

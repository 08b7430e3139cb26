"""A store gives back the very world that was committed to it (S34)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fairpool.core.audit import audit
from fairpool.core.planner import plan
from fairpool.core.world import World
from tests.conformance.store_samples import trial
from tests.conformance.world_batches import Life


@pytest.mark.parametrize("seed", range(12))
def test_after_any_life_every_store_restores_the_same_world(seed: int, tmp_path: Path) -> None:
    life = Life(seed)
    trials = [trial(kind, tmp_path) for kind in ("memory", "sqlite")]
    for number, batch in enumerate(life.batches(80)):
        for on in trials:
            on.store.commit(batch, on.token)
        if number % 10:
            continue
        memory, sqlite = (on.store.load() for on in trials)
        assert memory == sqlite
        assert sqlite.snapshot == life.world.snapshot()
    memory, sqlite = (on.reopened().load() for on in trials)
    assert memory == sqlite
    assert sqlite.live == {name: record for name, record in life.records.items() if not record.status.is_final}
    every = list(life.records)
    assert trials[0].store.reader.requests.get(every) == trials[1].store.reader.requests.get(every) == life.records
    restored = World.restore(sqlite.snapshot)
    assert audit(restored, life.now) == ()
    # When to look again may differ: the old world remembers moments of requests that are gone.
    assert replace(plan(restored, life.now), wake_at=None) == replace(plan(life.world, life.now), wake_at=None)
    trials[1].store.close()


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

"""Devices as sets say what a plain count of each device says, whatever is given out and taken back (S7, INV-4)."""

from __future__ import annotations

from random import Random

import pytest

from fairpool.core.amounts import WHOLE
from fairpool.core.devices import Chosen, Devices

BOOKS = ((1, 1), (1, 0), (0, 1))
TOTAL = 5


def _recounted(given: list[tuple[Chosen, int, int]]) -> dict[int, tuple[int, int]]:
    used: dict[int, tuple[int, int]] = {}
    for chosen, now, after in given:
        for device, share in chosen:
            old = used.get(device, (0, 0))
            used[device] = (old[0] + share * now, old[1] + share * after)
    return used


def _one_more(rng: Random, devices: Devices) -> tuple[Chosen, int, int] | None:
    gpus = rng.choice([250, 500, 1000, 2000])
    now, after = rng.choice(BOOKS)
    if not now:
        return (devices.choose_after(gpus), 0, 1) if devices.fits_after(gpus) else None
    fits = gpus <= devices.free * WHOLE or (gpus < WHOLE and devices.fraction_room(gpus) is not None)
    return (devices.choose(gpus), now, after) if fits else None


@pytest.mark.parametrize("seed", range(40))
def test_sets_of_devices_agree_with_a_recount(seed: int) -> None:
    rng, devices = Random(seed), Devices(TOTAL)
    given: list[tuple[Chosen, int, int]] = []
    for _ in range(60):
        more = _one_more(rng, devices) if rng.random() < 0.6 else None
        if more is not None:
            devices.shift(more[0], more[1], more[2])
            given.append(more)
        elif given:
            chosen, now, after = given.pop(rng.randrange(len(given)))
            devices.shift(chosen, -now, -after)
        used = _recounted(given)
        assert devices.in_use() == used
        assert all(max(shares) <= WHOLE for shares in used.values())
        assert devices.free == TOTAL - len(used)
        assert devices.free_after == TOTAL - sum(after > 0 for _, after in used.values())
        assert devices.shared == {at: max(shares) for at, shares in used.items() if max(shares) < WHOLE}

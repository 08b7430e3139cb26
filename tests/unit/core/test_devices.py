"""Devices as sets say what a plain count of each device says, whatever is given out and taken back (S7, INV-4)."""

from __future__ import annotations

from collections.abc import Callable
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


def _give_or_take_back(rng: Random, devices: Devices, given: list[tuple[Chosen, int, int]]) -> None:
    more = _one_more(rng, devices) if rng.random() < 0.6 else None
    if more is not None:
        devices.shift(*more)
        given.append(more)
    elif given:
        chosen, now, after = given.pop(rng.randrange(len(given)))
        devices.shift(chosen, -now, -after)


@pytest.mark.parametrize("seed", range(40))
def test_sets_of_devices_agree_with_a_recount(seed: int) -> None:
    rng, devices = Random(seed), Devices(TOTAL)
    given: list[tuple[Chosen, int, int]] = []
    for _ in range(60):
        _give_or_take_back(rng, devices, given)
        used = _recounted(given)
        assert devices.in_use() == used
        assert all(max(shares) <= WHOLE for shares in used.values())
        assert devices.free == TOTAL - len(used)
        assert devices.free_after == TOTAL - sum(after > 0 for _, after in used.values())
        assert devices.shared == {at: max(shares) for at, shares in used.items() if max(shares) < WHOLE}


ASKED = (1, 250, 500, 750, 999, 1000, 2000, 5000)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_offered_is_what_a_look_at_every_device_finds(seed: int) -> None:
    """S8: fractions beside the fraction that leaves least, whole ones the lowest first. S9: 5 to 7 stand beyond a
    capacity that fell; what is on them is accounted for and nothing more is."""
    rng, devices = Random(seed), Devices(TOTAL)
    given: list[tuple[Chosen, int, int]] = [
        (((at, rng.choice([250, 1000])),), 1, rng.choice([0, 1])) for at in (5, 6, 7)
    ]
    for chosen, now, after in given:
        devices.shift(chosen, now, after)
    for _ in range(40):
        _give_or_take_back(rng, devices, given)
        used = _recounted(given)
        both = {at: max(used.get(at, (0, 0))) for at in range(TOTAL)}
        later = {at: used.get(at, (0, 0))[1] for at in range(TOTAL)}
        assert devices.is_any_shared == any(share < WHOLE for chosen, _, _ in given for _, share in chosen)
        for gpus in ASKED:
            assert devices.fraction_room(gpus) == _best_beside(both, gpus)
            _check_offer(devices.choose, both, gpus)
            _check_offer(devices.choose_after, later, gpus)
            assert devices.fits_after(gpus) == _fits(later, gpus)
            assert [devices.takes_after(((at, gpus),)) for at in range(TOTAL + 3)] == [
                at < TOTAL and later[at] + gpus <= WHOLE for at in range(TOTAL + 3)
            ]


def _best_beside(used: dict[int, int], gpus: int) -> tuple[int, int] | None:
    return min(((WHOLE - share - gpus, at) for at, share in used.items() if 0 < share <= WHOLE - gpus), default=None)


def _fits(used: dict[int, int], gpus: int) -> bool:
    whole = sum(not share for share in used.values()) * WHOLE
    return gpus <= whole or (gpus < WHOLE and _best_beside(used, gpus) is not None)


def _check_offer(choose: Callable[[int], Chosen], used: dict[int, int], gpus: int) -> None:
    if not _fits(used, gpus):
        return
    untouched = [at for at, share in sorted(used.items()) if not share]
    beside = _best_beside(used, gpus) if gpus < WHOLE else None
    devices = [beside[1]] if beside is not None else untouched[: max(1, gpus // WHOLE)]
    assert choose(gpus) == tuple((at, min(gpus, WHOLE)) for at in devices)

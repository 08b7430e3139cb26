"""The GPU devices of one node in both books (node_books.py says what these are): which are free, shared, or given out.

Sets of devices are whole numbers, one bit a device, so that asking for the lowest free ones, giving some out and
counting the rest cost the same for eight devices and for eight hundred.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairpool.core.amounts import WHOLE

Chosen = tuple[tuple[int, int], ...]
"""Devices by index, and how many thousandths of each."""


class Devices:
    """The devices of one node. Those that stand beyond a capacity that fell are accounted for and never free."""

    __slots__ = (
        "_all",
        "_open",
        "_open_after",
        "_part_after",
        "_part_now",
        "_shares",
        "_whole_after",
        "_whole_now",
        "free",
        "free_after",
        "shared",
        "total",
    )

    def __init__(self, total: int) -> None:
        self.total = total
        self.free = total  # whole devices that are free in both books
        self.free_after = total  # the same in the `after` book
        self.shared: dict[int, int] = {}  # devices with a fraction given out and one left in both -> the fuller book
        self._shares: dict[int, tuple[int, int]] = {}  # devices given out in fractions -> thousandths (now, after)
        self._all = self._open = self._open_after = (1 << total) - 1  # open: free, as a set
        self._whole_now = self._whole_after = 0  # sets: given out whole
        self._part_now = self._part_after = 0  # sets: given out in fractions

    def shift(self, devices: Sequence[tuple[int, int]], now: int, after: int) -> None:
        """Give out (+1) or take back (-1) in each book (0: leave that book alone)."""
        whole = 0
        for device, share in devices:
            if share == WHOLE:
                whole |= 1 << device
            else:
                self._shift_share(device, share * now, share * after)
        if whole:
            if now:
                self._whole_now = self._whole_now | whole if now > 0 else self._whole_now & ~whole
            if after:
                self._whole_after = self._whole_after | whole if after > 0 else self._whole_after & ~whole
            for device in [device for device, _ in devices if device in self._shares] if self._shares else ():
                self._look_whether_shared(device)
        self._open_after = self._all & ~(self._whole_after | self._part_after)
        self._open = self._open_after & ~(self._whole_now | self._part_now)
        self.free_after = self._open_after.bit_count()
        self.free = self._open.bit_count()

    def _shift_share(self, device: int, now: int, after: int) -> None:
        old_now, old_after = self._shares.get(device, (0, 0))
        new_now, new_after = self._shares[device] = (old_now + now, old_after + after)
        bit = 1 << device
        self._part_now = self._part_now | bit if new_now else self._part_now & ~bit
        self._part_after = self._part_after | bit if new_after else self._part_after & ~bit
        if not new_now and not new_after:
            del self._shares[device]
        self._look_whether_shared(device)

    def _look_whether_shared(self, device: int) -> None:
        fuller = max(self._shares.get(device, (0, 0)))
        whole = (self._whole_now | self._whole_after) >> device & 1
        if 0 < fuller < WHOLE and not whole and device < self.total:
            self.shared[device] = fuller
        else:
            self.shared.pop(device, None)

    def in_use(self) -> dict[int, tuple[int, int]]:
        """What is given out of each device, in thousandths (now, after): all that there is to know."""
        used = dict(self._shares)
        whole = self._whole_now | self._whole_after
        for device in _lowest(whole, whole.bit_count()):
            now, after = used.get(device, (0, 0))
            now += (self._whole_now >> device & 1) * WHOLE
            used[device] = (now, after + (self._whole_after >> device & 1) * WHOLE)
        return used

    @property
    def is_any_shared(self) -> bool:
        """Whether any device is given out in fractions."""
        return bool(self._shares)

    def fraction_room(self, gpus: int) -> tuple[int, int] | None:
        """(what stays free of it, the device) for the shared device that `gpus` thousandths fill best in both books."""
        best = None
        for device, fuller in self.shared.items():
            rest = WHOLE - fuller - gpus
            if rest >= 0 and (best is None or (rest, device) < best):
                best = (rest, device)
        return best

    def fits_after(self, gpus: int) -> bool:
        """Whether so many thousandths fit in the `after` book."""
        if gpus >= WHOLE:
            return gpus <= self.free_after * WHOLE
        return self.free_after > 0 or self._fraction_room_after(gpus) is not None

    def takes_after(self, devices: Sequence[tuple[int, int]]) -> bool:
        """Whether exactly these have room in the `after` book."""
        return all(device < self.total and self._used_after(device) + share <= WHOLE for device, share in devices)

    def choose(self, gpus: int) -> Chosen:
        """Which devices a part gets that is known to fit in both books: of the free ones those with lowest index."""
        if gpus < WHOLE:
            room = self.fraction_room(gpus)
            return ((room[1] if room else _lowest(self._open, 1)[0], gpus),)
        return tuple([(device, WHOLE) for device in _lowest(self._open, gpus // WHOLE)])

    def choose_after(self, gpus: int) -> Chosen:
        """The same for a part that is known to fit in the `after` book."""
        if gpus < WHOLE:
            room = self._fraction_room_after(gpus)
            return ((room[1] if room else _lowest(self._open_after, 1)[0], gpus),)
        return tuple([(device, WHOLE) for device in _lowest(self._open_after, gpus // WHOLE)])

    def _used_after(self, device: int) -> int:
        return WHOLE if self._whole_after >> device & 1 else self._shares.get(device, (0, 0))[1]

    def _fraction_room_after(self, gpus: int) -> tuple[int, int] | None:
        rooms = [
            (WHOLE - after - gpus, device)
            for device, (_, after) in self._shares.items()
            if 0 < after <= WHOLE - gpus and device < self.total and not self._whole_after >> device & 1
        ]
        return min(rooms, default=None)


def _lowest(devices: int, count: int) -> list[int]:
    """The `count` lowest devices of a set (fewer where there are not so many)."""
    found: list[int] = []
    while devices and len(found) < count:
        lowest = devices & -devices
        found.append(lowest.bit_length() - 1)
        devices ^= lowest
    return found

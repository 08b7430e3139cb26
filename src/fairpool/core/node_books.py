"""What is in use on one node: its keys, and its GPU devices (devices.py) (S7).

Every quantity is kept in two books. `now` is what is in use at this moment. `after` is what will be in use once every
eviction under way has ended and whoever it is for has moved in. Something may start only where both books have room:
that is what keeps freed capacity, nodes and devices for the request that caused an eviction (S31). Evictions are
chosen on the `after` book alone, so they reckon with what is kept.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairpool.core.amounts import GPU, Amounts
from fairpool.core.devices import Chosen, Devices
from fairpool.core.pools import Node, NodeState, device_count

Rest = tuple[int, ...]
"""What is free of some keys in both books, or asked of them, in the order of the keys."""

UNMETERED = 1 << 62
"""What is free of a key that a node does not list."""


class NodeBooks:
    """Both books of one node. A pool without nodes has one of these, named "", that tracks only its devices."""

    __slots__ = ("devices", "free_after", "free_now", "index", "name", "ready")

    def __init__(self, name: str, index: int, capacity: Amounts, device_total: int, *, ready: bool) -> None:
        self.name = name
        self.index = index
        self.ready = ready
        self.free_now = dict(capacity)
        self.free_after = dict(capacity)
        self.devices = Devices(device_total)

    @classmethod
    def of_node(cls, node: Node, index: int) -> NodeBooks:
        """The empty books of `node`."""
        ready = node.state is NodeState.READY
        return cls(node.name, index, node.capacity, device_count(node.capacity), ready=ready)

    def shift(self, part: Amounts, devices: Chosen, now: int, after: int) -> None:
        """Add (+1) or remove (-1) a part in each book (0: leave that book alone)."""
        free_now, free_after = self.free_now, self.free_after
        if free_now:
            for key, value in part:
                if key in free_now:
                    free_now[key] -= value * now
                    free_after[key] -= value * after
        if devices:
            self.devices.shift(devices, now, after)

    def rest(self, keys: Sequence[str]) -> Rest:
        """What is free of these keys in both books."""
        now, after = self.free_now, self.free_after
        return tuple([min(now.get(key, UNMETERED), after.get(key, UNMETERED)) for key in keys])

    def fits(self, part: Amounts) -> bool:
        """Whether the part's keys other than GPUs fit this node in both books."""
        for key, value in part:
            if key != GPU and key in self.free_now and (value > self.free_now[key] or value > self.free_after[key]):
                return False
        return True

    def fits_after(self, part: Amounts) -> bool:
        """Whether the part, devices included, fits this node in the `after` book."""
        for key, value in part:
            if key == GPU:
                if not self.devices.fits_after(value):
                    return False
            elif key in self.free_after and value > self.free_after[key]:
                return False
        return True

    def takes_after(self, part: Amounts, devices: Chosen) -> bool:
        """Whether the part fits on exactly these devices in the `after` book."""
        if any(key in self.free_after and value > self.free_after[key] for key, value in part):
            return False
        return self.devices.takes_after(devices)


def has_room(rest: Rest, asked: Rest) -> bool:
    """Whether that much is free; of what is over its capacity nothing may be asked."""
    for value, free in zip(asked, rest, strict=True):  # noqa: SIM110 (a plain loop is twice as fast)
        if value and value > free:
            return False
    return True

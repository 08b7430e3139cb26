"""`placement: defragment` (S8): a part goes where it spoils least for what is typical in the pool (typical.py).

What a node's free GPUs are worth is how much of them each kind of demand could use, added up over the kinds: nothing
of a node that has no CPUs left for it, nothing of two free devices for a kind that needs four. A part goes where the
node is worth least less with it; a fraction looks at every device that it could lie on. Nodes with the same devices
left on which the same kinds find room are alike: of them only those with the least and the most left of the other keys
are looked at.

Weng and others, "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent"
(USENIX ATC 2023), measure free GPUs like this. There, what is typical is known beforehand.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from fairpool.core.amounts import GPU, WHOLE, Amounts, get
from fairpool.core.node_books import NodeBooks, Rest, has_room
from fairpool.core.requests import PartPlacement
from fairpool.core.typical import TypicalDemands

MOST_WORTHS = 20_000
"""How many looks are remembered with what they are worth: some megabytes."""


class _Devices(NamedTuple):
    """What is left of a node's GPUs: untouched devices, and of each shared one, the least first."""

    free: int
    shared: tuple[int, ...]

    @property
    def room(self) -> tuple[int, int]:
        """What decides whether a part fits: untouched devices, and what is left of the least used shared one."""
        return self.free, self.shared[-1] if self.shared else 0


_Standing = tuple[Rest, int]  # what a node has left of the keys but GPUs, its place in the pool
_Look = tuple[_Devices, int]  # its devices, and the kinds for which its other keys are enough
_Choice = tuple[int, int, Rest, int, int]


class _Alike:
    """Nodes of one look: what they are worth each, and the nodes, that with the least left first.

    choices: of these nodes alone, where a part would go that asks for so many GPUs and so much of the other keys. They
    are remembered until a node comes or goes.
    """

    __slots__ = ("choices", "nodes", "worth")

    def __init__(self, worth: int) -> None:
        self.worth = worth
        self.nodes: list[_Standing] = []
        self.choices: dict[tuple[int, Rest], _Choice | None] = {}

    def ends(self) -> Sequence[_Standing]:
        """The one with the least left, and the one with the most."""
        nodes = self.nodes
        return nodes if len(nodes) <= 2 else (nodes[0], nodes[-1])


class Defragmentation:
    """Places parts on the nodes of one pool. Told of every change, it takes notice of it when it is asked next."""

    __slots__ = ("_by_room", "_changed", "_keys", "_looks", "_nodes", "_typical", "_worthless", "_worths")

    def __init__(self, nodes: Sequence[NodeBooks], keys: frozenset[str]) -> None:
        self._nodes = nodes
        self._keys = tuple(sorted(keys - {GPU}))
        self._typical = TypicalDemands(self._keys)
        self._by_room: dict[tuple[int, int], dict[_Look, _Alike]] = {}
        self._worths: dict[_Look, int] = {}  # as far as they were worked out; the same until other kinds are typical
        self._worthless: list[_Standing] = []  # nodes of which no kind could use anything
        self._looks: dict[int, tuple[_Look, _Standing]] = {}  # by the node's place in the pool
        self._changed = {node.index for node in nodes}

    def expect(self, parts: Sequence[Amounts], sign: int) -> None:
        """One more (+1) or less (-1) demand of these parts runs or waits here."""
        for part in parts:
            self._typical.expect(part, sign)

    def changed(self, node: NodeBooks) -> None:
        """Something comes to lie there, or goes."""
        self._changed.add(node.index)

    def place(self, part: Amounts) -> PartPlacement | None:
        """Where the part can lie in both books and spoils least, or None."""
        self._settle()
        gpus, asked = get(part, GPU), tuple([get(part, key) for key in self._keys])
        if not gpus:
            for _, index in _ends_that_fit(self._worthless, asked):
                return PartPlacement(self._nodes[index].name)
        best = self._least_spoilt(gpus, asked, self._typical.bit_of(part))
        if best is None:
            return None
        node = self._nodes[best[3]]
        return PartPlacement(node.name, _devices_of(node, gpus, best[4]))

    def _least_spoilt(self, gpus: int, asked: Rest, own: int) -> _Choice | None:
        """own: the bit of the part's kind, which finds room on all nodes of a look or on none; 0 if it has no kind."""
        part = (gpus, asked)
        best: _Choice | None = None
        for (free, most), looks in self._by_room.items():
            if free * WHOLE < gpus and (most < gpus or gpus >= WHOLE):
                continue
            for (devices, kinds), alike in looks.items():
                if own and not kinds & own:
                    continue
                choices = alike.choices
                if part in choices:
                    choice = choices[part]
                else:
                    nodes = alike.ends() if own else _ends_that_fit(alike.nodes, asked)
                    choice = choices[part] = self._choose(devices, alike.worth, nodes, gpus, asked)
                if choice is not None and (best is None or choice < best):
                    best = choice
        return best

    def _choose(
        self, devices: _Devices, worth: int, nodes: Iterable[_Standing], gpus: int, asked: Rest
    ) -> _Choice | None:
        # 1 what it spoils, 2 what the node is worth, 3 what it has left of other keys, 4 its place, 5 of which device
        best: _Choice | None = None
        for rest, index in nodes:
            beside = self._typical.finding_room(tuple([left - value for left, value in zip(rest, asked, strict=True)]))
            for left, remaining in _options(devices, gpus):
                choice = (worth - self._worth(remaining, beside), worth, rest, index, left)
                if best is None or choice < best:
                    best = choice
        return best

    def _worth(self, devices: _Devices, kinds: int) -> int:
        """How much of what is left of these devices those kinds could use, added up over them."""
        look = (devices, kinds)
        known = self._worths.get(look)
        if known is not None:
            return known
        if len(self._worths) >= MOST_WORTHS:
            self._worths.clear()
        typical = self._typical
        worth = typical.use_of_devices(devices.free, kinds) if devices.free else 0
        for left in devices.shared:
            worth += typical.use_of_fraction(left, kinds)
        self._worths[look] = worth
        return worth

    def _settle(self) -> None:
        """Take notice of what has changed."""
        if self._typical.settle():
            self._look_again()
        for index in self._changed:
            if index in self._looks:
                self._leave(*self._looks.pop(index))
            node = self._nodes[index]
            if node.ready:
                rest = node.rest(self._keys)
                shared = tuple(sorted(WHOLE - fuller for fuller in node.devices.shared.values()))
                look = (_Devices(node.devices.free, shared), self._typical.finding_room(rest))
                self._join(look, (rest, index))
        self._changed.clear()

    def _look_again(self) -> None:
        """With other kinds all nodes look different."""
        self._worths.clear()
        self._by_room.clear()
        finding_room: dict[Rest, int] = {}
        found: dict[_Look, list[_Standing]] = {}
        for (devices, _), standing in self._looks.values():
            rest = standing[0]
            if rest not in finding_room:
                finding_room[rest] = self._typical.finding_room(rest)
            found.setdefault((devices, finding_room[rest]), []).append(standing)
        for look, nodes in found.items():
            alike = self._by_room.setdefault(look[0].room, {})[look] = _Alike(self._worth(*look))
            alike.nodes = sorted(nodes)
            self._looks.update({standing[1]: (look, standing) for standing in nodes})
        groups = [alike for looks in self._by_room.values() for alike in looks.values()]
        self._worthless = sorted(standing for alike in groups if not alike.worth for standing in alike.nodes)

    def _join(self, look: _Look, standing: _Standing) -> None:
        self._looks[standing[1]] = (look, standing)
        looks = self._by_room.setdefault(look[0].room, {})
        alike = looks.get(look)
        if alike is None:
            alike = looks[look] = _Alike(self._worth(*look))
        alike.choices.clear()
        insort(alike.nodes, standing)
        if not alike.worth:
            insort(self._worthless, standing)

    def _leave(self, look: _Look, standing: _Standing) -> None:
        room = look[0].room
        alike = self._by_room[room][look]
        alike.choices.clear()
        del alike.nodes[bisect_left(alike.nodes, standing)]
        if not alike.worth:
            del self._worthless[bisect_left(self._worthless, standing)]
        if not alike.nodes:
            del self._by_room[room][look]
            if not self._by_room[room]:
                del self._by_room[room]


def _options(devices: _Devices, gpus: int) -> Iterator[tuple[int, _Devices]]:
    """(what is left of the shared device it would lie on, else of an untouched one or of none; the devices with it)."""
    free, shared = devices
    if gpus >= WHOLE or not gpus:
        yield 0, _Devices(free - gpus // WHOLE, shared)
        return
    for at, left in enumerate(shared):
        if left >= gpus and (not at or shared[at - 1] != left):
            yield left, _Devices(free, (*shared[:at], left - gpus, *shared[at + 1 :]))
    if free > 0:
        yield WHOLE, _Devices(free - 1, (*shared, WHOLE - gpus))


def _ends_that_fit(nodes: Sequence[_Standing], asked: Rest) -> Iterator[_Standing]:
    """The first and the last of them that have as much left as is asked."""
    first = bisect_left(nodes, ((asked[0],), -1)) if asked and asked[0] else 0
    for at in range(first, len(nodes)):
        if has_room(nodes[at][0], asked):
            yield nodes[at]
            break
    else:
        return
    for last in range(len(nodes) - 1, at, -1):
        if has_room(nodes[last][0], asked):
            yield nodes[last]
            return


def _devices_of(node: NodeBooks, gpus: int, left: int) -> tuple[tuple[int, int], ...]:
    """Which devices, and how much of each; a fraction on the lowest of which that much is left."""
    if not 0 < gpus < WHOLE:
        return node.devices.choose(gpus) if gpus else ()
    if left == WHOLE:
        return tuple((device, gpus) for device, _ in node.devices.choose(WHOLE))
    return ((min(device for device, fuller in node.devices.shared.items() if WHOLE - fuller == left), gpus),)

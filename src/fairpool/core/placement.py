"""Where things lie: how a demand is placed on the nodes of a pool (S7, S8); `node_books.py` says what the books are.

`place` looks for room in both books, which is where something may start; `place_after` in the `after` book alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter

from fairpool.core.amounts import GPU, WHOLE, Amounts, get
from fairpool.core.best_fit import BestFit
from fairpool.core.fragmentation import Defragmentation
from fairpool.core.node_books import NodeBooks
from fairpool.core.pools import Placement
from fairpool.core.requests import PartPlacement


class PoolNodes:
    """The nodes of one pool, and what finds a place on them without a scan: best fit, or the least fragmentation."""

    __slots__ = ("_defragmentation", "_placing", "by_name", "flat", "keys", "nodes", "spread")

    def __init__(self, nodes: Sequence[NodeBooks], *, flat: bool, placement: Placement) -> None:
        self.nodes = nodes
        self.flat = flat
        self.spread = placement is Placement.SPREAD
        self.by_name = {node.name: node for node in nodes}
        self.keys = frozenset(key for node in nodes for key in node.free_now) if not flat else frozenset({GPU})
        asked = placement is Placement.DEFRAGMENT and not flat
        self._defragmentation = Defragmentation(nodes, self.keys) if asked else None
        self._placing = self._defragmentation or BestFit(nodes, self.keys, spread=self.spread)

    def expect(self, parts: Sequence[Amounts], sign: int) -> None:
        """One more (+1) or less (-1) demand of these parts runs or waits here."""
        if self._defragmentation is not None:
            self._defragmentation.expect(parts, sign)

    def shift(self, place: PartPlacement, part: Amounts, now: int, after: int) -> NodeBooks | None:
        """Add or remove a part where it lies; None when its node is gone from the pool."""
        node = self.by_name.get(place.node)
        if node is None:
            return None
        self._placing.changed(node)
        node.shift(part, place.devices, now, after)
        return node

    def shift_devices(self, places: tuple[PartPlacement, ...], now: int, after: int) -> None:
        """The same for all parts where there are no nodes: devices are all that moves."""
        for place in places:
            if place.devices and not place.node:
                self.nodes[0].devices.shift(place.devices, now, after)

    def sums_say_all(self, parts: tuple[Amounts, ...]) -> bool:
        """Whether there is a place for the parts in the `after` book wherever there is enough by sums: there are no
        nodes, and no fractions of devices, given out or asked for."""
        if not self.flat or self.nodes[0].devices.is_any_shared:
            return False
        return all(get(part, GPU) % WHOLE == 0 for part in parts)

    def place(self, parts: tuple[Amounts, ...]) -> tuple[PartPlacement, ...] | None:
        """Where the parts can lie right now (both books), or None. Best fit, largest part first."""
        if len(parts) == 1:
            found = self._place_part(parts[0])
            return None if found is None else (found,)
        return _place_many(self, parts, self._place_part, now=1)

    def place_after(self, parts: tuple[Amounts, ...]) -> tuple[PartPlacement, ...] | None:
        """Where the parts can lie in the `after` book, or None."""
        if len(parts) == 1:
            found = self._place_part_after(parts[0])
            return None if found is None else (found,)
        return _place_many(self, parts, self._place_part_after, now=0)

    def is_free_after(self, parts: tuple[Amounts, ...], places: tuple[PartPlacement, ...]) -> bool:
        """Whether the parts fit at exactly these places in the `after` book."""
        laid: list[tuple[PartPlacement, Amounts]] = []
        try:
            for place, part in zip(places, parts, strict=True):
                node = self.by_name.get(place.node)
                if node is None or not node.ready or not node.takes_after(part, place.devices):
                    return False
                self.shift(place, part, 0, 1)
                laid.append((place, part))
            return True
        finally:
            for place, part in reversed(laid):
                self.shift(place, part, 0, -1)

    def has_place_after(self, parts: tuple[Amounts, ...], near: str | None = None) -> bool:
        """Whether `place_after` would find something; cheaper, since no devices are chosen. `near`: look at that node
        only (single parts)."""
        if len(parts) > 1:
            return self.place_after(parts) is not None
        nodes = self.nodes if near is None else [self.by_name[near]] if near in self.by_name else []
        return any(node.ready and node.fits_after(parts[0]) for node in nodes)

    def _place_part(self, part: Amounts) -> PartPlacement | None:
        return self._place_flat(get(part, GPU)) if self.flat else self._placing.place(part)

    def _place_flat(self, gpus: int) -> PartPlacement | None:
        if not gpus:
            return _ANYWHERE
        node = self.nodes[0]
        if gpus >= WHOLE:
            if gpus > node.devices.free * WHOLE:
                return None
        elif node.devices.free <= 0 and node.devices.fraction_room(gpus) is None:
            return None
        return PartPlacement(node.name, node.devices.choose(gpus))

    def _place_part_after(self, part: Amounts) -> PartPlacement | None:
        gpus = get(part, GPU)
        best = None
        for node in self.nodes:
            if node.ready and node.fits_after(part):
                key = (node.devices.free_after if not self.spread else -node.devices.free_after, node.index)
                if best is None or key < best:
                    best = key
        if best is None:
            return None
        node = self.nodes[best[1]]
        return PartPlacement(node.name, node.devices.choose_after(gpus) if gpus else ())


_ANYWHERE = PartPlacement("")

_PlacePart = Callable[[Amounts], PartPlacement | None]

SEARCH_STEPS = 2_000
"""How many part-on-node trials a gang of unequal parts may cost beyond best fit. Placing such a gang is bin packing;
equal parts never need it, since filling nodes one after the other is then exact."""


def _place_many(
    nodes: PoolNodes,
    parts: tuple[Amounts, ...],
    place_part: _PlacePart,
    *,
    now: int,
) -> tuple[PartPlacement, ...] | None:
    order = sorted(range(len(parts)), key=lambda i: (_size(parts[i]), -i), reverse=True)
    laid: list[tuple[int, PartPlacement]] = []
    try:
        for i in order:
            place = place_part(parts[i])
            if place is None:
                break
            nodes.shift(place, parts[i], now, 1)
            laid.append((i, place))
        else:
            return tuple(place for _, place in sorted(laid, key=itemgetter(0)))
    finally:
        for i, place in reversed(laid):
            nodes.shift(place, parts[i], -now, -1)
    if nodes.flat or len(set(parts)) == 1:
        return None
    return _Search(nodes, parts, order, now).run()


def _size(part: Amounts) -> tuple[int, Amounts]:
    return get(part, GPU), part


class _Search:
    """Backtracking over the nodes for gangs of unequal parts that best fit could not place."""

    def __init__(self, nodes: PoolNodes, parts: tuple[Amounts, ...], order: list[int], now: int) -> None:
        self.nodes = nodes
        self.parts = parts
        self.order = order
        self.now = now
        self.steps = SEARCH_STEPS
        self.places: dict[int, PartPlacement] = {}

    def run(self) -> tuple[PartPlacement, ...] | None:
        """The first complete placement, or None when there is none or the steps are used up."""
        if self._lay(0):
            return tuple(self.places[i] for i in range(len(self.parts)))
        return None

    def _lay(self, depth: int) -> bool:
        if depth == len(self.order):
            return True
        part = self.parts[self.order[depth]]
        for node in self.nodes.nodes:
            if self.steps <= 0:
                return False
            self.steps -= 1
            place = self._on(node, part)
            if place is None:
                continue
            self.nodes.shift(place, part, self.now, 1)
            self.places[self.order[depth]] = place
            done = self._lay(depth + 1)
            self.nodes.shift(place, part, -self.now, -1)
            if done:
                return True
        return False

    def _on(self, node: NodeBooks, part: Amounts) -> PartPlacement | None:
        gpus = get(part, GPU)
        if not node.ready or not node.fits_after(part):
            return None
        if not self.now:
            return PartPlacement(node.name, node.devices.choose_after(gpus) if gpus else ())
        room = gpus <= node.devices.free * WHOLE or (gpus < WHOLE and node.devices.fraction_room(gpus) is not None)
        if not node.fits(part) or not room:
            return None
        return PartPlacement(node.name, node.devices.choose(gpus) if gpus else ())

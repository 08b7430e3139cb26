"""`placement: pack` and `spread` (S8): a part goes to the node that it fills best, or to the one with most left.

Nodes stand in tables in the order in which they are to be taken, so that the first one with room is it. A table is made
when a part first asks for its keys, and kept up to date with every node that changes.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import NamedTuple

from fairpool.core.amounts import GPU, WHOLE, Amounts, get
from fairpool.core.node_books import UNMETERED, NodeBooks, Rest, has_room
from fairpool.core.requests import PartPlacement

_Entry = tuple[tuple[int, ...], int]
"""What decides between nodes, the lower the better, and a node's place in the pool."""


class _Wish(NamedTuple):
    """A part that is asked for. gpus: in thousandths; devices: as many untouched ones as that takes; by_key: of each of
    the pool's other keys; keys: those that the part names, in its order; in_order: of these, GPUs being nothing, since
    of them the untouched devices say enough."""

    gpus: int
    devices: int
    by_key: Rest
    keys: tuple[str, ...]
    in_order: tuple[int, ...]


_MOST_WISHES = 1_000
"""Kinds of parts that are remembered."""


class _Table:
    """Nodes by one number, and among those of the same number in order."""

    __slots__ = ("_standing", "by_number")

    def __init__(self) -> None:
        self.by_number: dict[int, list[_Entry]] = {}
        self._standing: dict[int, list[tuple[int, _Entry]]] = {}  # by node: where it stands

    def enter(self, number: int, order: tuple[int, ...], index: int) -> None:
        """Have a node stand there, besides where it stands already."""
        entry = (order, index)
        insort(self.by_number.setdefault(number, []), entry)
        self._standing.setdefault(index, []).append((number, entry))

    def drop(self, index: int) -> None:
        """Have a node stand nowhere any more."""
        for number, entry in self._standing.pop(index, ()):
            entries = self.by_number[number]
            del entries[bisect_left(entries, entry)]
            if not entries:
                del self.by_number[number]


class BestFit:
    """Places parts on the nodes of one pool. Told of every change, it takes notice of it when it is asked next."""

    __slots__ = ("_changed", "_keys", "_nodes", "_rests", "_sharing", "_spread", "_tables", "_wishes")

    def __init__(self, nodes: Sequence[NodeBooks], keys: frozenset[str], *, spread: bool) -> None:
        self._nodes = nodes
        self._keys = tuple(sorted(keys - {GPU}))
        self._spread = spread
        self._rests: dict[int, Rest] = {}  # of the nodes that may be used, by their place in the pool
        self._sharing = _Table()  # by what is left of a shared device, then by untouched ones
        self._tables: dict[tuple[str, ...], _Table] = {}  # by untouched devices, then by what is free of these keys
        self._wishes: dict[Amounts, _Wish] = {}
        self._changed = {node.index for node in nodes if node.ready}

    def changed(self, node: NodeBooks) -> None:
        """Something comes to lie there, or goes."""
        if node.ready:
            self._changed.add(node.index)

    def place(self, part: Amounts) -> PartPlacement | None:
        """Where the part can lie in both books, or None."""
        if self._changed:
            self._settle()
        wish = self._wishes.get(part) or self._wish(part)
        index = self._fraction_node(wish) if 0 < wish.gpus < WHOLE else None
        if index is None:
            index = self._emptying_node(wish)
        if index is None:
            return None
        node = self._nodes[index]
        return PartPlacement(node.name, node.devices.choose(wish.gpus) if wish.gpus else ())

    def _wish(self, part: Amounts) -> _Wish:
        """What is asked, in the terms of the tables. Remembered: few kinds of parts are asked for again and again."""
        pairs = [(key, value) for key, value in part if key == GPU or key in self._keys]
        gpus = get(part, GPU)
        wish = _Wish(
            gpus=gpus,
            devices=-(-gpus // WHOLE),
            by_key=tuple([get(part, key) for key in self._keys]),
            keys=tuple([key for key, _ in pairs]),
            in_order=tuple([0 if key == GPU else value for key, value in pairs]),
        )
        if len(self._wishes) >= _MOST_WISHES:
            self._wishes.clear()
        self._wishes[part] = wish
        return wish

    def _fraction_node(self, wish: _Wish) -> int | None:
        # 1 the device that is left with least, 2 the node with the fewest free devices, 3 the node's place in the pool
        by_left = self._sharing.by_number
        for left in sorted([left for left in by_left if left >= wish.gpus]):
            index = self._first_with_room(by_left[left], wish.by_key)
            if index is not None:
                return index
        return None

    def _emptying_node(self, wish: _Wish) -> int | None:
        # 1 free devices: fewest that do (pack) or most (spread), 2 what the other keys leave, 3 the node's place
        by_free, devices = self._table(wish.keys).by_number, wish.devices
        for free in sorted([free for free in by_free if free >= devices], reverse=self._spread):
            index = self._first_in_order(by_free[free], wish)
            if index is not None:
                return index
        return None

    def _first_with_room(self, entries: Sequence[_Entry], asked: Rest) -> int | None:
        rests = self._rests
        for _, index in entries:
            if has_room(rests[index], asked):
                return index
        return None

    def _first_in_order(self, entries: Sequence[_Entry], wish: _Wish) -> int | None:
        """The same where nodes stand by what is free of the wanted keys: those that lack one of them, and have as much
        of the keys before it, stand together and are passed over in one step."""
        at, spread, wanted = 0, self._spread, wish.in_order
        while at < len(entries):
            order, index = entries[at]
            for place, value in enumerate(wanted):
                if value and value > (-order[place] if spread else order[place]):
                    beyond = (*order[:place], UNMETERED if spread else value)
                    at = bisect_left(entries, (beyond, -1), at + 1)
                    break
            else:
                if has_room(self._rests[index], wish.by_key):
                    return index
                at += 1
        return None

    def _table(self, keys: tuple[str, ...]) -> _Table:
        table = self._tables.get(keys)
        if table is None:
            table = self._tables[keys] = _Table()
            for index in self._rests:
                self._enter(table, keys, self._nodes[index])
        return table

    def _enter(self, table: _Table, keys: tuple[str, ...], node: NodeBooks) -> None:
        sign, free_now = -1 if self._spread else 1, node.free_now
        table.enter(node.devices.free, tuple([sign * free_now.get(key, UNMETERED) for key in keys]), node.index)

    def _settle(self) -> None:
        """Take notice of what has changed."""
        for index in self._changed:
            node = self._nodes[index]
            self._rests[index] = node.rest(self._keys)
            self._sharing.drop(index)
            if node.devices.shared:
                for left in {WHOLE - fuller for fuller in node.devices.shared.values()}:
                    self._sharing.enter(left, (node.devices.free,), index)
            for keys, table in self._tables.items():
                table.drop(index)
                self._enter(table, keys, node)
        self._changed.clear()

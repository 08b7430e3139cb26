"""What is typical in a pool: the kinds of demand that run or wait there, and how much of a node each could use.

A kind is one part of a demand as the nodes see it; every kind counts once, however many there are of it. So what is
typical follows from the world alone (INV-9), and changes only when a kind appears or the last of it goes. The kinds
that find room on a node are one integer with a bit for each, since a pool may see thousands of them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence

from fairpool.core.amounts import GPU, WHOLE, Amounts, get
from fairpool.core.node_books import Rest


class TypicalDemands:
    """The kinds of demand of one pool that ask for GPUs; others have no use for a GPU that is left.

    keys: what nodes have besides GPUs; other keys are the pool's as a whole and bind nothing to a node.
    """

    __slots__ = ("_all", "_by_devices", "_by_fraction", "_by_key", "_changed", "_counts", "_keys", "_numbers")

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = tuple(keys)
        self._counts: dict[Amounts, int] = {}
        self._changed: set[Amounts] = set()  # kinds that appeared or went since the tables were made
        self._make_tables()

    def expect(self, part: Amounts, sign: int) -> None:
        """One more (+1) or less (-1) demand of that kind runs or waits."""
        if not get(part, GPU):
            return
        kind = self._kind_of(part)
        before = self._counts.get(kind, 0)
        if before + sign:
            self._counts[kind] = before + sign
        else:
            del self._counts[kind]
        if not before or not before + sign:
            self._changed ^= {kind}  # one that went and came back has not changed

    def bit_of(self, part: Amounts) -> int:
        """The bit of a part's kind; 0 where it is of none of these."""
        number = self._numbers.get(self._kind_of(part))
        return 0 if number is None else 1 << number

    def _kind_of(self, part: Amounts) -> Amounts:
        return tuple([(key, value) for key, value in part if key == GPU or key in self._keys])

    def settle(self) -> bool:
        """Take notice of kinds that appeared or went; whether there were any."""
        if not self._changed:
            return False
        self._changed.clear()
        self._make_tables()
        return True

    def finding_room(self, rest: Rest) -> int:
        """The kinds for which so much of the keys but GPUs is enough."""
        kinds = self._all
        for free, (values, fitting) in zip(rest, self._by_key, strict=True):
            kinds &= fitting[bisect_right(values, free)]
        return kinds

    def use_of_devices(self, free: int, kinds: int) -> int:
        """How much of `free` untouched devices these kinds could use, added up over them."""
        return free * WHOLE * (kinds & self._by_devices[min(free, len(self._by_devices) - 1)]).bit_count()

    def use_of_fraction(self, left: int, kinds: int) -> int:
        """The same for a shared device of which `left` is left."""
        values, fitting = self._by_fraction
        return left * (kinds & fitting[bisect_right(values, left)]).bit_count()

    def _make_tables(self) -> None:
        # Which bit is whose makes no difference: they are only counted.
        kinds = list(self._counts)
        self._numbers = {kind: number for number, kind in enumerate(kinds)}
        self._all = (1 << len(kinds)) - 1
        self._by_key = []
        for key in self._keys:
            asked = {number: get(kind, key) for number, kind in enumerate(kinds)}
            self._by_key.append(_steps({number: value for number, value in asked.items() if value}, self._all))
        gpus = {number: get(kind, GPU) for number, kind in enumerate(kinds)}
        fractions = {number: value for number, value in gpus.items() if value < WHOLE}
        self._by_fraction = _steps(fractions, _bits(fractions))
        most = max(gpus.values(), default=0) // WHOLE
        self._by_devices = [
            _bits(number for number, value in gpus.items() if value < WHOLE or value <= free * WHOLE)
            for free in range(most + 1)
        ]


def _bits(numbers: Iterable[int]) -> int:
    bits = 0
    for number in numbers:
        bits |= 1 << number
    return bits


def _steps(asked: Mapping[int, int], among: int) -> tuple[list[int], list[int]]:
    """(the amounts asked, in order; before, between and after them: which of the kinds ask no more than that)."""
    asking: dict[int, int] = {}
    for number, value in asked.items():
        asking[value] = asking.get(value, 0) | 1 << number
    values = sorted(asking)
    fitting = [among & ~_bits(asked)]
    for value in values:
        fitting.append(fitting[-1] | asking[value])
    return values, fitting

"""`placement: pack` and `spread` find by their tables what looking at every node would find (S8)."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairpool.core.amounts import GPU, WHOLE, Amounts, get, of
from fairpool.core.books import PoolBooks
from fairpool.core.node_books import UNMETERED, NodeBooks
from fairpool.core.pools import Placement
from fairpool.core.requests import PartPlacement
from fairpool.testing import builders as make

PARTS = st.tuples(
    st.sampled_from([0, 100, 300, 500, 700, 1000, 2000, 4000]), st.integers(0, 6_000), st.sampled_from([0, 0, 1000])
)


@pytest.mark.parametrize("placement", [Placement.PACK, Placement.SPREAD])
@settings(max_examples=150)
@given(asked=st.lists(PARTS, min_size=1, max_size=40), seed=st.integers(0, 2**32))
def test_a_part_goes_where_a_look_at_every_node_would_put_it(
    placement: Placement, asked: list[tuple[int, int, int]], seed: int
) -> None:
    """After anything that came and went, in both books or in one. Nodes that list no memory give any."""
    rng = Random(seed)
    nodes = {f"n{n}": {"gpu": rng.randint(0, 4), "mcpu": rng.randint(1, 12)} for n in range(5)}
    for units in rng.sample(list(nodes.values()), 3):
        units["mem"] = rng.randint(1, 3)
    books = PoolBooks(make.pool(nodes=nodes, placement=placement))
    lying: list[tuple[PartPlacement, Amounts, int]] = []
    for gpus, mcpu, mem in asked:
        part = of({GPU: gpus, "mcpu": mcpu, "mem": mem})
        found = books.nodes.place((part,))
        assert (found[0].node if found else None) == _expected(books, part)
        if found is not None:
            now = rng.choice([0, 1, 1])  # kept for later, or given out
            books.nodes.shift(found[0], part, now, 1)
            lying.append((found[0], part, now))
        if lying and rng.random() < 0.3:
            place, gone, now = lying.pop(rng.randrange(len(lying)))
            books.nodes.shift(place, gone, -now, -1)


def _expected(books: PoolBooks, part: Amounts) -> str | None:
    gpus, fitting = get(part, GPU), [node for node in books.nodes.nodes if node.fits(part)]
    rooms = [(room[0], node.devices.free, node.index) for node in fitting if (room := node.devices.fraction_room(gpus))]
    if 0 < gpus < WHOLE and rooms:
        return books.nodes.nodes[min(rooms)[2]].name
    untouched = [node for node in fitting if node.devices.free * WHOLE >= gpus]
    if not untouched:
        return None
    return min(untouched, key=lambda node: _standing(node, part, spread=books.nodes.spread)).name


def _standing(node: NodeBooks, part: Amounts, *, spread: bool) -> tuple[int, list[int], int]:
    sign = -1 if spread else 1
    leaves = [sign * (node.free_now.get(key, UNMETERED) - value) for key, value in part]
    return sign * node.devices.free, leaves, node.index

"""From what callers send to the values of the core. Refusals of the core get the field's path in the body."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import TypeVar

from fairpool.core import amounts
from fairpool.core.amounts import Amounts
from fairpool.core.errors import InvalidInput
from fairpool.core.ids import check_name
from fairpool.core.policies import Subject
from fairpool.core.pools import Node, NodeState
from fairpool.core.requests import Demand
from fairpool.wire.amounts import MAX_KEYS
from fairpool.wire.pools import NodeSpec
from fairpool.wire.requests import RequestCreate

Given = TypeVar("Given")
Made = TypeVar("Made")


def at(field: str, make: Callable[[Given], Made], given: Given) -> Made:
    """`make(given)`, with `field` put before the path of what it refuses."""
    try:
        return make(given)
    except InvalidInput as error:
        raise error.at(field) from None


def vector(field: str, units: Mapping[str, object]) -> Amounts:
    """Amounts as sent, as the core's vector; zeros are left out."""
    return at(field, amounts.vector, units)


def vector_with_zeros(field: str, units: Mapping[str, object]) -> tuple[tuple[str, int], ...]:
    """Amounts as sent, with zeros: a limit of 0 forbids, and a capacity of 0 removes a key."""
    given = dict(vector(field, units))
    return tuple(sorted((key, given.get(key, 0)) for key in units))


def subjects(field: str, texts: Sequence[str]) -> tuple[Subject, ...]:
    """Subjects as sent, each once, in the order given."""
    return tuple(dict.fromkeys(at(f"{field}.{index}", _subject, text) for index, text in enumerate(texts)))


@lru_cache(maxsize=10_000)
def _subject(text: str) -> Subject:
    """The same few subjects make all the requests."""
    return Subject.parse(text)


def nodes(field: str, specs: Iterable[NodeSpec]) -> tuple[Node, ...]:
    """Nodes as sent."""
    return tuple(at(f"{field}.{index}", _node, spec) for index, spec in enumerate(specs))


def _node(spec: NodeSpec) -> Node:
    return Node(
        name=at("name", lambda given: check_name(given, what="node name"), spec.name),
        capacity=vector("capacity", spec.capacity),
        state=NodeState(spec.state),
        gpu_type=spec.gpu_type,
        labels=tuple(sorted(spec.labels.items())),
    )


def demand(body: RequestCreate) -> Demand | None:
    """The demand of a request; None where its profile is to say it."""
    if body.parts is not None:
        if body.demand is not None or body.node_count != 1:
            other = "demand" if body.demand is not None else "node_count"
            raise InvalidInput(
                f"a request has either 'parts' or '{other}'", field="parts", possible="parts that are not all equal"
            )
        parts = tuple(_part(f"parts.{index}", part) for index, part in enumerate(body.parts))
        if not parts:
            raise InvalidInput("a request needs at least one part", field="parts", possible="one or more")
        keys = {key for part in parts for key, _ in part}
        if len(keys) > MAX_KEYS:
            raise InvalidInput(f"{len(keys)} resource keys", field="parts", possible=f"at most {MAX_KEYS}")
        return at("parts", Demand, parts)
    if body.demand is None:
        if body.profile is None:
            raise InvalidInput("missing", field="demand", possible='what one part needs, such as {"gpu": 1}')
        return None
    units = tuple(body.demand.items())
    return at("demand", lambda given: _equal_parts(given, body.node_count), units)


@lru_cache(maxsize=10_000)
def _equal_parts(units: tuple[tuple[str, int | Decimal], ...], count: int) -> Demand:
    """The same few demands make all the requests; equal ones that are one object are also told apart faster."""
    return Demand.of(amounts.vector(dict(units)), count)


def _part(field: str, units: Mapping[str, object]) -> Amounts:
    part = vector(field, units)
    at(field, Demand.of, part)  # refuses what no device could hold, and says which part it is
    return part


def name(field: str, text: str, *, what: str) -> str:
    """A name as sent."""
    return at(field, lambda given: check_name(given, what=f"{what} name"), text)

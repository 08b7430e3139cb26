"""Declared objects as the history tells them, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from fairpool.app.records import AnyDeclared, Document, Json, Kind, Spec
from fairpool.app.schedules import SCHEDULE
from fairpool.app.use_cases import policies, pools, profiles, vaults
from fairpool.core import amounts
from fairpool.core.amounts import Amounts, amount
from fairpool.core.ids import PolicyId, PoolId, ProfileId
from fairpool.core.policies import Policy, Profile, Subject
from fairpool.core.pools import Node, NodeState, Ordering, Placement, Pool, PoolState

NAME = "name"
_NOTED = ("description", "defaults", "managed", SCHEDULE)
"""What may stand in a note. Of components and stacks the description is part of the spec."""


def told(declared: AnyDeclared) -> dict[str, Json]:
    """All that there is to know of an object, as its history would have told it when it was created now."""
    return {**declared.note, **_shown(declared), NAME: declared.name}


def _shown(declared: AnyDeclared) -> Document:
    match declared.spec:
        case Pool() as pool:
            return pools.shown(pool)
        case Policy() as policy:
            return policies.shown(policy, declared.note)
        case Profile() as profile:
            return profiles.shown(profile, declared.note)
        case document:
            return vaults.shown(document) if declared.kind is Kind.VAULT else document


def spec_of(kind: Kind, object_id: str, document: Document, older: Spec | None) -> Spec:
    """The spec that the history tells. older: the same object's at another time, for what the history leaves out."""
    match kind:
        case Kind.POOL:
            return _pool(object_id, document)
        case Kind.POLICY:
            return _policy(object_id, document, older if isinstance(older, Policy) else None)
        case Kind.PROFILE:
            return _profile(object_id, document)
    noted = {NAME, "managed"} if kind in (Kind.COMPONENT, Kind.STACK) else {NAME, *_NOTED}
    return {key: value for key, value in document.items() if key not in noted}


def note_of(kind: Kind, document: Document) -> Document:
    """The note that the history tells."""
    noted = ("managed",) if kind in (Kind.COMPONENT, Kind.STACK) else _NOTED
    return {key: document[key] for key in noted if document.get(key)}


def _pool(object_id: str, document: Document) -> Pool:
    nodes = _mapping(document.get("nodes"))
    return Pool(
        id=PoolId(object_id),
        name=str(document[NAME]),
        capacity=_vector(document.get("capacity")),
        nodes=tuple(_node(name, _mapping(said)) for name, said in nodes.items()),
        state=PoolState(str(document.get("state", PoolState.ACTIVE))),
        ordering=Ordering(str(document.get("ordering", Ordering.FAIR))),
        backfill=bool(document.get("backfill", True)),
        placement=Placement(str(document.get("placement", Placement.PACK))),
        max_bypass_s=cast("int", document.get("max_bypass_s", 0)),
        components=frozenset(_words(document.get("components"))),
    )


def _node(name: str, said: Document) -> Node:
    labels = _mapping(said.get("labels"))
    return Node(
        name=name,
        capacity=_vector(said.get("capacity")),
        state=NodeState(str(said.get("state", NodeState.READY))),
        gpu_type=str(said.get("gpu_type", "")),
        labels=tuple(sorted((key, str(value)) for key, value in labels.items())),
    )


def _policy(object_id: str, document: Document, older: Policy | None) -> Policy:
    there = _words(document.get("pool_ids")) or (older.pools if older is not None else ())
    limit = _mapping(document.get("limit"))
    offered = document.get("profiles")
    return Policy(
        id=PolicyId(object_id),
        pool=PoolId(there[0] if there else ""),
        also=tuple(PoolId(pool) for pool in there[1:]),
        subject=Subject.parse(str(document["subject"])),
        priority=cast("int", document.get("priority", 0)),
        reserved=_vector(document.get("reserved")),
        limit=tuple(sorted((key, int(amount(value))) for key, value in limit.items())),
        weight=int(amount(document.get("weight", 1))),
        dedicated=bool(document.get("dedicated", False)),
        grace_s=cast("int", document.get("grace_s", 0)),
        min_runtime_s=cast("int", document.get("min_runtime_s", 0)),
        profiles=None if offered is None else _words(offered),
    )


def _profile(object_id: str, document: Document) -> Profile:
    demand, there = _vector(document.get("demand")), _words(document.get("pools"))
    return Profile(id=ProfileId(object_id), name=str(document[NAME]), demand=demand, pools=there)


def _vector(value: Json) -> Amounts:
    return amounts.vector(_mapping(value))


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}


def _words(value: Json) -> tuple[str, ...]:
    return tuple(str(word) for word in value) if isinstance(value, list) else ()

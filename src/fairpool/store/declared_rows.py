"""Declared objects as rows, and back. Pure.

A pool is a row with its nodes and amounts beside it, a policy a row with its amounts; the rest are one row each.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, cast

from sqlalchemy import Row, Table

from fairpool.app.records import DOCUMENTS, AnyDeclared, Declared, Kind
from fairpool.core.amounts import Amounts
from fairpool.core.ids import Instant, PolicyId, PoolId, ProfileId
from fairpool.core.policies import Policy, Profile, Subject
from fairpool.core.pools import Node, NodeState, Ordering, Placement, Pool, PoolState
from fairpool.store import codec, schema

Values = dict[str, Any]

TABLES = {
    Kind.POOL: schema.pools,
    Kind.POLICY: schema.policies,
    Kind.PROFILE: schema.profiles,
    **dict.fromkeys(DOCUMENTS, schema.documents),
}


def rows_of(declared: AnyDeclared, workspace: str) -> Iterator[tuple[Table, Values]]:
    """All rows of an object, its own first."""
    common: Values = {
        "workspace": workspace,
        "id": declared.id,
        "name": declared.name,
        "version": declared.version,
        "created_at": declared.created_at,
        "updated_at": declared.updated_at,
        "note": codec.dump_document(declared.note),
    }
    match declared.spec:
        case Pool() as pool:
            yield schema.pools, common | _pool_values(pool)
            yield from _pool_parts(pool, workspace)
        case Policy() as policy:
            yield schema.policies, common | _policy_values(policy)
            yield from _policy_parts(policy, workspace)
        case Profile() as profile:
            values = {"demand": codec.dump_amounts(profile.demand), "pools": codec.dump(profile.pools)}
            yield schema.profiles, common | values
        case document:
            yield schema.documents, common | {"kind": declared.kind.value, "spec": codec.dump(document)}


def _pool_values(pool: Pool) -> Values:
    return {
        "state": pool.state.value,
        "ordering": pool.ordering.value,
        "backfill": pool.backfill,
        "placement": (Placement.PACK if pool.placement is Placement.DEFRAGMENT else pool.placement).value,
        "defragments": pool.placement is Placement.DEFRAGMENT,
        "max_bypass_s": pool.max_bypass_s,
        "components": codec.dump(sorted(pool.components)) if pool.components else None,
    }


def _pool_parts(pool: Pool, workspace: str) -> Iterator[tuple[Table, Values]]:
    mine: Values = {"workspace": workspace, "pool_id": pool.id}
    for position, node in enumerate(pool.nodes):
        yield (
            schema.pool_nodes,
            mine
            | {
                "name": node.name,
                "position": position,
                "state": node.state.value,
                "gpu_type": node.gpu_type,
                "labels": codec.dump(node.labels) if node.labels else None,
            },
        )
    for name, amounts in (("", pool.capacity), *((node.name, node.capacity) for node in pool.nodes)):
        for key, amount in amounts:
            yield schema.pool_amounts, mine | {"node": name, "key": key, "amount": amount}


def _policy_values(policy: Policy) -> Values:
    return {
        "pool_id": policy.pool,
        "subject": str(policy.subject),
        "priority": policy.priority,
        "weight": policy.weight,
        "dedicated": policy.dedicated,
        "grace_s": policy.grace_s,
        "min_runtime_s": policy.min_runtime_s,
        "profiles": None if policy.profiles is None else codec.dump(policy.profiles),
    }


def _policy_parts(policy: Policy, workspace: str) -> Iterator[tuple[Table, Values]]:
    for position, pool in enumerate(policy.also):
        row = {"workspace": workspace, "policy_id": policy.id, "pool_id": pool, "position": position}
        yield schema.policy_pools, row
    reserved, limit = dict(policy.reserved), dict(policy.limit)
    for key in sorted({*reserved, *limit}):
        yield (
            schema.policy_amounts,
            {
                "workspace": workspace,
                "policy_id": policy.id,
                "key": key,
                "reserved": reserved.get(key),
                "most": limit.get(key),
            },
        )


def pools_of(
    rows: Iterable[Row[Any]], nodes: Iterable[Row[Any]], amounts: Iterable[Row[Any]]
) -> Iterator[Declared[Pool]]:
    """The pools that these rows make up. nodes: in order of position."""
    of_node: dict[tuple[str, str], dict[str, int]] = {}
    for row in amounts:
        of_node.setdefault((row.pool_id, row.node), {})[row.key] = row.amount
    of_pool: dict[str, list[Node]] = {}
    for row in nodes:
        of_pool.setdefault(row.pool_id, []).append(
            Node(
                name=row.name,
                capacity=_vector(of_node.get((row.pool_id, row.name), {})),
                state=NodeState(row.state),
                gpu_type=row.gpu_type,
                labels=tuple((key, value) for key, value in json.loads(row.labels)) if row.labels else (),
            )
        )
    for row in rows:
        yield _declared(
            Kind.POOL,
            row,
            Pool(
                id=PoolId(row.id),
                name=row.name,
                capacity=_vector(of_node.get((row.id, ""), {})),
                nodes=tuple(of_pool.get(row.id, ())),
                state=PoolState(row.state),
                ordering=Ordering(row.ordering),
                backfill=bool(row.backfill),
                placement=Placement.DEFRAGMENT if row.defragments else Placement(row.placement),
                max_bypass_s=row.max_bypass_s,
                components=frozenset(json.loads(row.components)) if row.components else frozenset(),
            ),
        )


def policies_of(
    rows: Iterable[Row[Any]], amounts: Iterable[Row[Any]], pools: Iterable[Row[Any]]
) -> Iterator[Declared[Policy]]:
    """The policies that these rows make up. pools: the further ones of each, in order of position."""
    also: dict[str, list[PoolId]] = {}
    for row in pools:
        also.setdefault(row.policy_id, []).append(PoolId(row.pool_id))
    reserved: dict[str, dict[str, int]] = {}
    limits: dict[str, dict[str, int]] = {}
    for row in amounts:
        if row.reserved is not None:
            reserved.setdefault(row.policy_id, {})[row.key] = row.reserved
        if row.most is not None:
            limits.setdefault(row.policy_id, {})[row.key] = row.most
    for row in rows:
        yield _declared(
            Kind.POLICY,
            row,
            Policy(
                id=PolicyId(row.id),
                pool=PoolId(row.pool_id),
                also=tuple(also.get(row.id, ())),
                subject=Subject.parse(row.subject),
                priority=row.priority,
                reserved=_vector(reserved.get(row.id, {})),
                limit=_vector(limits.get(row.id, {})),
                weight=row.weight,
                dedicated=bool(row.dedicated),
                grace_s=row.grace_s,
                min_runtime_s=row.min_runtime_s,
                profiles=None if row.profiles is None else tuple(json.loads(row.profiles)),
            ),
        )


def profile_of(row: Row[Any]) -> Declared[Profile]:
    """The profile that a row stands for."""
    demand, pools = codec.load_amounts(row.demand), tuple(json.loads(row.pools))
    return _declared(Kind.PROFILE, row, Profile(id=ProfileId(row.id), name=row.name, demand=demand, pools=pools))


def document_of(row: Row[Any]) -> AnyDeclared:
    """The object with a document for its spec that a row stands for."""
    return _declared(Kind(row.kind), row, cast("dict[str, Any]", json.loads(row.spec)))


def _vector(amounts: dict[str, int]) -> Amounts:
    return tuple(sorted(amounts.items()))


def _declared(kind: Kind, row: Row[Any], spec: Any) -> Declared[Any]:
    return Declared(
        kind=kind,
        id=row.id,
        name=row.name,
        spec=spec,
        version=row.version,
        created_at=Instant(row.created_at),
        updated_at=Instant(row.updated_at),
        note=codec.load_document(row.note),
    )

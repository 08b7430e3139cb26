"""Pools and their nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from starlette.responses import Response

from fairpool.app.memory import Memory
from fairpool.app.records import Declared, Kind
from fairpool.app.use_cases import pools
from fairpool.core.ids import Instant
from fairpool.core.pools import Node, NodeState, Ordering, Placement, Pool
from fairpool.server import concerns, incoming, lookups, redaction
from fairpool.server.bodies import pool_of
from fairpool.server.calls import Call
from fairpool.server.deciding import asked, created, decided
from fairpool.server.endpoints import Endpoint, present
from fairpool.server.presenting import pool_view
from fairpool.wire.pages import Page
from fairpool.wire.pools import NodeUpdate, PoolCreate, PoolDeletion, PoolUpdate, PoolView


async def _list(call: Call) -> Response:
    def ask(memory: Memory, now: Instant) -> Page[PoolView]:
        page = lookups.page_of(concerns.chosen(memory, Kind.POOL, call.reach), call)
        items = [pool_view(memory, now, cast("Declared[Pool]", record), whole=False) for record in page.items]
        return Page[PoolView](items=items, next_cursor=lookups.next_cursor(page))

    return present(await asked(call, ask))


async def _create(call: Call) -> Response:
    body, dry_run = await call.body(PoolCreate), call.dry_run
    pool = pool_of(body)
    view = await created(
        call, Kind.POOL, lambda tx: pools.create(tx, pool, description=body.description, dry_run=dry_run), pool_view
    )
    return present(view, status=200 if dry_run else 201, version=view.version, location=f"pools/{view.id}")


async def _get(call: Call) -> Response:
    def ask(memory: Memory, now: Instant) -> PoolView:
        found = concerns.found(memory, Kind.POOL, call.path["ref"], call.reach)
        return redaction.pool(pool_view(memory, now, cast("Declared[Pool]", found)), call.reach)

    view = await asked(call, ask)
    return present(view, version=view.version)


async def _update(call: Call) -> Response:
    body, dry_run, version = await call.body(PoolUpdate), call.dry_run, call.expected_version
    change = pools.PoolChange(
        name=None if body.name is None else incoming.name("name", body.name, what="pool"),
        capacity=None if body.capacity is None else incoming.vector_with_zeros("capacity", body.capacity),
        nodes=None if body.nodes is None else incoming.nodes("nodes", body.nodes),
        ordering=None if body.ordering is None else Ordering(body.ordering),
        backfill=body.backfill,
        placement=None if body.placement is None else Placement(body.placement),
        max_bypass_s=body.max_bypass_s,
        components=None if body.components is None else frozenset(body.components),
        description=body.description,
        evict_borrowers=body.evict_borrowers,
    )
    ref = call.path["ref"]
    view = await decided(call, lambda tx: pools.update(tx, ref, change, version=version, dry_run=dry_run), pool_view)
    return present(view, version=view.version)


async def _update_node(call: Call) -> Response:
    body, dry_run, version = await call.body(NodeUpdate), call.dry_run, call.expected_version
    ref, node = call.path["ref"], call.path["node"]

    def change(old: Node) -> Node:
        state = old.state if body.state is None else NodeState(body.state)
        labels = old.labels if body.labels is None else tuple(sorted(body.labels.items()))
        return replace(old, state=state, labels=labels)

    view = await decided(
        call, lambda tx: pools.update_node(tx, ref, node, change, version=version, dry_run=dry_run), pool_view
    )
    return present(view, version=view.version)


async def _delete(call: Call) -> Response:
    dry_run, version, ref = call.dry_run, call.expected_version, call.path["ref"]
    on_work = call.text("on_work") or "refuse"
    view = await decided(
        call, lambda tx: pools.delete(tx, ref, on_work=on_work, version=version, dry_run=dry_run), _deletion
    )
    return present(view)


def _deletion(memory: Memory, now: Instant, done: pools.PoolDeletion) -> PoolDeletion:
    return PoolDeletion(
        pool=done.pool.name,
        outcome="draining" if done.draining else "deleted",
        queued=list(done.queued),
        active=list(done.active),
        policies=list(done.policies),
    )


ENDPOINTS = {
    "pool_list": Endpoint(handler=_list, summary="List pools by name.", answer=Page[PoolView]),
    "pool_create": Endpoint(
        handler=_create,
        summary="Create a pool.",
        body=PoolCreate,
        answer=PoolView,
        status=201,
        headers=("Idempotency-Key",),
    ),
    "pool_get": Endpoint(handler=_get, summary="A pool with its nodes, policies and usage.", answer=PoolView),
    "pool_update": Endpoint(
        handler=_update, summary="Change a pool.", body=PoolUpdate, answer=PoolView, headers=("If-Match",)
    ),
    "pool_delete": Endpoint(handler=_delete, summary="Delete a pool.", answer=PoolDeletion, headers=("If-Match",)),
    "node_update": Endpoint(
        handler=_update_node, summary="Change one node.", body=NodeUpdate, answer=PoolView, headers=("If-Match",)
    ),
}

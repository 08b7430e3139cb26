"""Policies."""

from __future__ import annotations

from typing import cast

from starlette.responses import Response

from fairpool.app.memory import Memory
from fairpool.app.records import Declared, Kind
from fairpool.app.use_cases import policies
from fairpool.core.amounts import amount
from fairpool.core.ids import Instant
from fairpool.core.policies import Policy, Subject
from fairpool.server import concerns, incoming, lookups
from fairpool.server.bodies import policy_of, schedule_of
from fairpool.server.calls import Call
from fairpool.server.deciding import asked, created, decided
from fairpool.server.endpoints import Endpoint, present
from fairpool.server.presenting import policy_view
from fairpool.wire.pages import Page
from fairpool.wire.policies import PolicyCreate, PolicyUpdate, PolicyView


async def _list(call: Call) -> Response:
    pool, text = call.text("pool"), call.text("subject")
    subject = None if text is None else incoming.at("subject", Subject.parse, text)

    def ask(memory: Memory, now: Instant) -> Page[PolicyView]:
        reach = call.reach
        wanted = None if pool is None else concerns.found(memory, Kind.POOL, pool, reach).id
        found = [cast("Declared[Policy]", record) for record in concerns.chosen(memory, Kind.POLICY, reach)]
        found = [record for record in found if wanted is None or wanted in record.spec.pools]
        found = [record for record in found if subject is None or record.spec.subject == subject]
        page = lookups.page_of(found, call)
        items = [policy_view(memory, now, record) for record in page.items]
        return Page[PolicyView](items=items, next_cursor=lookups.next_cursor(page))

    return present(await asked(call, ask))


async def _create(call: Call) -> Response:
    body, dry_run = await call.body(PolicyCreate), call.dry_run
    policy, schedule = policy_of(body), schedule_of(body.schedule)
    view = await created(
        call,
        Kind.POLICY,
        lambda tx: policies.attach(tx, body.pool, policy, also=body.also, schedule=schedule, dry_run=dry_run),
        policy_view,
    )
    return present(view, status=200 if dry_run else 201, version=view.version, location=f"policies/{view.id}")


async def _get(call: Call) -> Response:
    def ask(memory: Memory, now: Instant) -> PolicyView:
        found = concerns.found(memory, Kind.POLICY, call.path["id"], call.reach)
        return policy_view(memory, now, cast("Declared[Policy]", found))

    view = await asked(call, ask)
    return present(view, version=view.version)


async def _update(call: Call) -> Response:
    body, dry_run, version = await call.body(PolicyUpdate), call.dry_run, call.expected_version
    change = policies.PolicyChange(
        subject=None if body.subject is None else incoming.at("subject", Subject.parse, body.subject),
        also=None if body.also is None else tuple(body.also),
        priority=body.priority,
        reserved=None if body.reserved is None else incoming.vector("reserved", body.reserved),
        limit=None if body.limit is None else incoming.vector_with_zeros("limit", body.limit),
        weight=None if body.weight is None else amount(body.weight),
        dedicated=body.dedicated,
        grace_s=body.grace_s,
        min_runtime_s=body.min_runtime_s,
        profiles=None if body.profiles is None else tuple(body.profiles),
        # Said and null: all profiles again. Left out: as it is.
        all_profiles="profiles" in body.model_fields_set and body.profiles is None,
        schedule=None if body.schedule is None else schedule_of(body.schedule),
    )
    ref = call.path["id"]
    view = await decided(
        call, lambda tx: policies.update(tx, ref, change, version=version, dry_run=dry_run), policy_view
    )
    return present(view, version=view.version)


async def _delete(call: Call) -> Response:
    dry_run, version, ref = call.dry_run, call.expected_version, call.path["id"]
    view = await decided(call, lambda tx: policies.detach(tx, ref, version=version, dry_run=dry_run), policy_view)
    return present(view)


ENDPOINTS = {
    "policy_list": Endpoint(handler=_list, summary="List policies by pool and subject.", answer=Page[PolicyView]),
    "policy_create": Endpoint(
        handler=_create,
        summary="Attach a policy to a pool.",
        body=PolicyCreate,
        answer=PolicyView,
        status=201,
        headers=("Idempotency-Key",),
    ),
    "policy_get": Endpoint(handler=_get, summary="A policy with what its requests use.", answer=PolicyView),
    "policy_update": Endpoint(
        handler=_update, summary="Change a policy.", body=PolicyUpdate, answer=PolicyView, headers=("If-Match",)
    ),
    "policy_delete": Endpoint(handler=_delete, summary="Detach a policy.", answer=PolicyView, headers=("If-Match",)),
}

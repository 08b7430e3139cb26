"""Components and stacks."""

from __future__ import annotations

from typing import cast

from starlette.responses import Response

from fairpool.app.memory import Memory
from fairpool.app.records import Declared, Document, Kind
from fairpool.app.use_cases import components, stacks
from fairpool.core.ids import Instant
from fairpool.server import incoming, lookups
from fairpool.server.calls import Call
from fairpool.server.deciding import asked, created, decided
from fairpool.server.endpoints import Endpoint, present
from fairpool.server.outgoing import moment
from fairpool.wire.pages import Page
from fairpool.wire.stacks import (
    ComponentCreate,
    ComponentUpdate,
    ComponentView,
    StackCreate,
    StackUpdate,
    StackView,
)


def _component(memory: Memory, now: Instant, record: Declared[Document]) -> ComponentView:
    return ComponentView.model_validate(
        {
            **record.spec,
            "id": record.id,
            "name": record.name,
            "version": record.version,
            "subject": f"component:{record.name}",
            "created_at": moment(record.created_at),
            "updated_at": moment(record.updated_at),
        }
    )


def _stack(memory: Memory, now: Instant, record: Declared[Document]) -> StackView:
    return StackView.model_validate(
        {
            **record.spec,
            "id": record.id,
            "name": record.name,
            "version": record.version,
            "active": bool(record.id) and stacks.active(memory) == record.id,
            "created_at": moment(record.created_at),
            "updated_at": moment(record.updated_at),
        }
    )


async def _component_list(call: Call) -> Response:
    def ask(memory: Memory, now: Instant) -> Page[ComponentView]:
        page = lookups.page_of(memory.all(Kind.COMPONENT), call)
        items = [_component(memory, now, cast("Declared[Document]", record)) for record in page.items]
        return Page[ComponentView](items=items, next_cursor=lookups.next_cursor(page))

    return present(await asked(call, ask))


async def _component_create(call: Call) -> Response:
    body, dry_run = await call.body(ComponentCreate), call.dry_run
    name = incoming.name("name", body.name, what="component")
    view = await created(
        call,
        Kind.COMPONENT,
        lambda tx: components.create(
            tx,
            name,
            kind=body.kind,
            flavor=body.flavor,
            config=body.config,
            description=body.description,
            dry_run=dry_run,
        ),
        _component,
    )
    return present(view, status=200 if dry_run else 201, version=view.version, location=f"components/{view.id}")


async def _component_get(call: Call) -> Response:
    ref = call.path["ref"]
    view = await asked(call, lambda memory, now: _component(memory, now, memory.document(Kind.COMPONENT, ref)))
    return present(view, version=view.version)


async def _component_update(call: Call) -> Response:
    body, dry_run, version = await call.body(ComponentUpdate), call.dry_run, call.expected_version
    change = components.ComponentChange(flavor=body.flavor, config=body.config, description=body.description)
    ref = call.path["ref"]
    view = await decided(
        call, lambda tx: components.update(tx, ref, change, version=version, dry_run=dry_run), _component
    )
    return present(view, version=view.version)


async def _component_delete(call: Call) -> Response:
    dry_run, version, ref = call.dry_run, call.expected_version, call.path["ref"]
    view = await decided(call, lambda tx: components.delete(tx, ref, version=version, dry_run=dry_run), _component)
    return present(view)


async def _stack_list(call: Call) -> Response:
    def ask(memory: Memory, now: Instant) -> Page[StackView]:
        page = lookups.page_of(memory.all(Kind.STACK), call)
        items = [_stack(memory, now, cast("Declared[Document]", record)) for record in page.items]
        return Page[StackView](items=items, next_cursor=lookups.next_cursor(page))

    return present(await asked(call, ask))


async def _stack_create(call: Call) -> Response:
    body, dry_run = await call.body(StackCreate), call.dry_run
    name = incoming.name("name", body.name, what="stack")
    view = await created(
        call,
        Kind.STACK,
        lambda tx: stacks.create(
            tx,
            name,
            orchestrator=body.orchestrator,
            step_operators=body.step_operators,
            artifact_store=body.artifact_store,
            description=body.description,
            dry_run=dry_run,
        ),
        _stack,
    )
    return present(view, status=200 if dry_run else 201, version=view.version, location=f"stacks/{view.id}")


async def _stack_get(call: Call) -> Response:
    ref = call.path["ref"]
    view = await asked(call, lambda memory, now: _stack(memory, now, memory.document(Kind.STACK, ref)))
    return present(view, version=view.version)


async def _stack_update(call: Call) -> Response:
    body, dry_run, version = await call.body(StackUpdate), call.dry_run, call.expected_version
    change = stacks.StackChange(
        orchestrator=body.orchestrator,
        step_operators=None if body.step_operators is None else tuple(body.step_operators),
        # Said and null: none any more. Left out: as it is.
        artifact_store=body.artifact_store or ("" if "artifact_store" in body.model_fields_set else None),
        description=body.description,
    )
    ref = call.path["ref"]
    view = await decided(call, lambda tx: stacks.update(tx, ref, change, version=version, dry_run=dry_run), _stack)
    return present(view, version=view.version)


async def _stack_delete(call: Call) -> Response:
    dry_run, version, ref = call.dry_run, call.expected_version, call.path["ref"]
    view = await decided(call, lambda tx: stacks.delete(tx, ref, version=version, dry_run=dry_run), _stack)
    return present(view)


async def _stack_activate(call: Call) -> Response:
    ref = call.path["ref"]
    view = await decided(call, lambda tx: stacks.activate(tx, ref), _stack)
    return present(view, version=view.version)


ENDPOINTS = {
    "component_list": Endpoint(handler=_component_list, summary="List components by name.", answer=Page[ComponentView]),
    "component_create": Endpoint(
        handler=_component_create,
        summary="Register a component.",
        body=ComponentCreate,
        answer=ComponentView,
        status=201,
        headers=("Idempotency-Key",),
    ),
    "component_get": Endpoint(handler=_component_get, summary="A component.", answer=ComponentView),
    "component_update": Endpoint(
        handler=_component_update,
        summary="Change a component.",
        body=ComponentUpdate,
        answer=ComponentView,
        headers=("If-Match",),
    ),
    "component_delete": Endpoint(
        handler=_component_delete, summary="Delete a component.", answer=ComponentView, headers=("If-Match",)
    ),
    "stack_list": Endpoint(handler=_stack_list, summary="List stacks by name.", answer=Page[StackView]),
    "stack_create": Endpoint(
        handler=_stack_create,
        summary="Create a stack.",
        body=StackCreate,
        answer=StackView,
        status=201,
        headers=("Idempotency-Key",),
    ),
    "stack_get": Endpoint(handler=_stack_get, summary="A stack.", answer=StackView),
    "stack_update": Endpoint(
        handler=_stack_update, summary="Change a stack.", body=StackUpdate, answer=StackView, headers=("If-Match",)
    ),
    "stack_delete": Endpoint(handler=_stack_delete, summary="Delete a stack.", answer=StackView, headers=("If-Match",)),
    "stack_activate": Endpoint(
        handler=_stack_activate, summary="Make it the stack of runs that name none.", answer=StackView
    ),
}

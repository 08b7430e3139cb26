"""The workspaces of the installation. All of this is about ``default``, where they are declared, whoever calls."""

from __future__ import annotations

import asyncio
from typing import cast

from starlette.responses import Response

from fairpool.app.authz import Right
from fairpool.app.errors import NotFound
from fairpool.app.memory import Memory
from fairpool.app.records import DEFAULT_WORKSPACE, Declared, Document, Kind
from fairpool.app.use_cases import workspaces
from fairpool.app.use_cases.workspaces import WorkspaceState, state_of
from fairpool.core.ids import Instant
from fairpool.server import incoming, lookups
from fairpool.server.bodies import description_of
from fairpool.server.calls import Call
from fairpool.server.deciding import created, decided
from fairpool.server.endpoints import Endpoint, present
from fairpool.server.lookups import reading
from fairpool.server.outgoing import moment
from fairpool.wire.pages import Page
from fairpool.wire.workspace import WorkspaceCreate, WorkspaceDeletion, WorkspaceUpdate, WorkspaceView

_DEFAULT = WorkspaceView(name=DEFAULT_WORKSPACE, description="the installation's own")


def _view(record: Declared[Document]) -> WorkspaceView:
    return WorkspaceView(
        id=record.id,
        name=record.name,
        version=record.version,
        state=state_of(record).value,
        description=description_of(record.note),
        created_at=moment(record.created_at),
        updated_at=moment(record.updated_at),
    )


def _shown(memory: Memory, now: Instant, record: Declared[Document]) -> WorkspaceView:
    return _view(record)


async def _seen(call: Call) -> list[WorkspaceView]:
    """Those that the caller may see: their own, or all."""
    declared = await reading(call, lambda reader: reader.declared.all(Kind.WORKSPACE))
    views = [_DEFAULT, *(_view(cast("Declared[Document]", record)) for record in declared)]
    seen = [view for view in views if call.right is Right.ALL or view.name == call.principal.workspace]
    now = call.services.clock.now()
    return [_as_served(view, is_served=call.services.workspaces.serves(view.name, now)) for view in seen]


def _as_served(view: WorkspaceView, *, is_served: bool) -> WorkspaceView:
    if is_served or view.state != WorkspaceState.OPEN:
        return view
    return view.model_copy(update={"state": "unavailable"})


async def _list(call: Call) -> Response:
    page = lookups.page_of(await _seen(call), call)
    return present(Page[WorkspaceView](items=list(page.items), next_cursor=lookups.next_cursor(page)))


async def _get(call: Call) -> Response:
    ref, seen = call.path["ref"], await _seen(call)
    found = next((view for view in seen if ref in (view.id, view.name)), None)
    if found is None:
        raise NotFound(Kind.WORKSPACE.value, ref)
    return present(found, version=found.version)


async def _create(call: Call) -> Response:
    body, dry_run = await call.body(WorkspaceCreate), call.dry_run
    name = incoming.name("name", body.name, what="workspace")
    view = await created(
        call,
        Kind.WORKSPACE,
        lambda tx: workspaces.create(tx, name, description=body.description, dry_run=dry_run),
        _shown,
    )
    return present(view, status=200 if dry_run else 201, version=view.version, location=f"workspaces/{view.id}")


async def _update(call: Call) -> Response:
    body, dry_run, version, ref = (
        await call.body(WorkspaceUpdate),
        call.dry_run,
        call.expected_version,
        call.path["ref"],
    )
    view = await decided(
        call,
        lambda tx: workspaces.update(tx, ref, description=body.description, version=version, dry_run=dry_run),
        _shown,
    )
    return present(view, version=view.version)


async def _delete(call: Call) -> Response:
    dry_run, version, ref = call.dry_run, call.expected_version, call.path["ref"]
    work, along = workspaces.Work(), dict[Kind, int]()
    declared = await reading(call, lambda reader: reader.declared.match(Kind.WORKSPACE, ref))
    if len(declared) == 1:
        # Off the scheduler's thread: it counts. Whether work came since then, whoever removes it looks again.
        reader = call.services.workspaces.reader(declared[0].name)
        work, along = await asyncio.to_thread(lambda: (workspaces.work_in(reader), workspaces.objects_in(reader)))
    view = await decided(
        call, lambda tx: workspaces.delete(tx, ref, work, along, version=version, dry_run=dry_run), _deletion
    )
    return present(view)


def _deletion(memory: Memory, now: Instant, done: workspaces.WorkspaceDeletion) -> WorkspaceDeletion:
    counts = {
        "users": Kind.USER,
        "teams": Kind.TEAM,
        "service_accounts": Kind.SERVICE_ACCOUNT,
        "pools": Kind.POOL,
        "policies": Kind.POLICY,
        "profiles": Kind.PROFILE,
        "vaults": Kind.VAULT,
        "webhooks": Kind.WEBHOOK,
    }
    return WorkspaceDeletion.model_validate(
        {"workspace": done.workspace.name, **{field: done.along.get(kind, 0) for field, kind in counts.items()}}
    )


ENDPOINTS = {
    "workspace_list": Endpoint(
        handler=_list,
        summary="List workspaces: one's own, or all for the installation's own token.",
        answer=Page[WorkspaceView],
        is_local=True,
        of_installation=True,
    ),
    "workspace_create": Endpoint(
        handler=_create,
        summary="Create a workspace.",
        body=WorkspaceCreate,
        answer=WorkspaceView,
        status=201,
        headers=("Idempotency-Key",),
        of_installation=True,
    ),
    "workspace_get": Endpoint(
        handler=_get, summary="A workspace.", answer=WorkspaceView, is_local=True, of_installation=True
    ),
    "workspace_update": Endpoint(
        handler=_update,
        summary="Describe a workspace otherwise.",
        body=WorkspaceUpdate,
        answer=WorkspaceView,
        headers=("If-Match",),
        of_installation=True,
    ),
    "workspace_delete": Endpoint(
        handler=_delete,
        summary="Delete a workspace in which nothing waits or runs, with all that it has. It is `closing` until every "
        "server has let go of it.",
        answer=WorkspaceDeletion,
        headers=("If-Match",),
        of_installation=True,
    ),
}

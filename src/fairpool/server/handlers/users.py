"""Users."""

from __future__ import annotations

from starlette.responses import Response

from fairpool.app.authz import Role
from fairpool.app.records import Kind
from fairpool.app.use_cases import users
from fairpool.server import incoming, people
from fairpool.server.calls import Call
from fairpool.server.deciding import created, decided
from fairpool.server.endpoints import Endpoint, present
from fairpool.wire.pages import Page
from fairpool.wire.people import UserCreate, UserDeletion, UserUpdate, UserView


async def _list(call: Call) -> Response:
    return present(await people.listed(call, Kind.USER, people.user_view))


async def _create(call: Call) -> Response:
    body, dry_run = await call.body(UserCreate), call.dry_run
    name = incoming.name("name", body.name, what="user")
    view = await created(
        call,
        Kind.USER,
        lambda tx: users.create(
            tx,
            name,
            role=Role(body.role),
            display_name=body.display_name,
            email=body.email,
            description=body.description,
            dry_run=dry_run,
        ),
        people.user_view,
    )
    return present(view, status=200 if dry_run else 201, version=view.version, location=f"users/{view.id}")


async def _get(call: Call) -> Response:
    view = await people.shown(call, Kind.USER, people.user_view)
    return present(view, version=view.version)


async def _update(call: Call) -> Response:
    body, dry_run, version = await call.body(UserUpdate), call.dry_run, call.expected_version
    change = users.UserChange(
        role=None if body.role is None else Role(body.role),
        display_name=body.display_name,
        email=body.email,
        description=body.description,
    )
    ref = call.path["ref"]
    view = await decided(
        call, lambda tx: users.update(tx, ref, change, version=version, dry_run=dry_run), people.user_view
    )
    return present(view, version=view.version)


async def _delete(call: Call) -> Response:
    dry_run, version, ref = call.dry_run, call.expected_version, call.path["ref"]
    view = await decided(call, lambda tx: users.delete(tx, ref, version=version, dry_run=dry_run), people.user_deletion)
    return present(view)


ENDPOINTS = {
    "user_list": Endpoint(handler=_list, summary="List users by name.", answer=Page[UserView]),
    "user_create": Endpoint(
        handler=_create,
        summary="Create a user.",
        body=UserCreate,
        answer=UserView,
        status=201,
        headers=("Idempotency-Key",),
    ),
    "user_get": Endpoint(handler=_get, summary="A user with their teams.", answer=UserView),
    "user_update": Endpoint(
        handler=_update, summary="Change a user.", body=UserUpdate, answer=UserView, headers=("If-Match",)
    ),
    "user_delete": Endpoint(
        handler=_delete,
        summary="Delete a user: tokens are revoked, queued requests cancelled.",
        answer=UserDeletion,
        headers=("If-Match",),
    ),
}

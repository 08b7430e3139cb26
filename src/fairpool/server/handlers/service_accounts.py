"""Service accounts."""

from __future__ import annotations

from starlette.responses import Response

from fairpool.app.authz import Role
from fairpool.app.records import Kind
from fairpool.app.use_cases import service_accounts
from fairpool.server import incoming, people
from fairpool.server.calls import Call
from fairpool.server.deciding import created, decided
from fairpool.server.endpoints import Endpoint, present
from fairpool.wire.pages import Page
from fairpool.wire.people import (
    ServiceAccountCreate,
    ServiceAccountDeletion,
    ServiceAccountUpdate,
    ServiceAccountView,
)


async def _list(call: Call) -> Response:
    return present(await people.listed(call, Kind.SERVICE_ACCOUNT, people.account_view))


async def _create(call: Call) -> Response:
    body, dry_run = await call.body(ServiceAccountCreate), call.dry_run
    name = incoming.name("name", body.name, what="service account")
    view = await created(
        call,
        Kind.SERVICE_ACCOUNT,
        lambda tx: service_accounts.create(
            tx, name, role=Role(body.role), teams=body.teams, description=body.description, dry_run=dry_run
        ),
        people.account_view,
    )
    return present(view, status=200 if dry_run else 201, version=view.version, location=f"service-accounts/{view.id}")


async def _get(call: Call) -> Response:
    view = await people.shown(call, Kind.SERVICE_ACCOUNT, people.account_view)
    return present(view, version=view.version)


async def _update(call: Call) -> Response:
    body, dry_run, version = await call.body(ServiceAccountUpdate), call.dry_run, call.expected_version
    change = service_accounts.AccountChange(
        role=None if body.role is None else Role(body.role),
        teams=None if body.teams is None else tuple(body.teams),
        description=body.description,
    )
    ref = call.path["ref"]
    view = await decided(
        call, lambda tx: service_accounts.update(tx, ref, change, version=version, dry_run=dry_run), people.account_view
    )
    return present(view, version=view.version)


async def _delete(call: Call) -> Response:
    dry_run, version, ref = call.dry_run, call.expected_version, call.path["ref"]
    view = await decided(
        call, lambda tx: service_accounts.delete(tx, ref, version=version, dry_run=dry_run), people.account_deletion
    )
    return present(view)


ENDPOINTS = {
    "service_account_list": Endpoint(
        handler=_list, summary="List service accounts by name.", answer=Page[ServiceAccountView]
    ),
    "service_account_create": Endpoint(
        handler=_create,
        summary="Create a service account.",
        body=ServiceAccountCreate,
        answer=ServiceAccountView,
        status=201,
        headers=("Idempotency-Key",),
    ),
    "service_account_get": Endpoint(handler=_get, summary="A service account.", answer=ServiceAccountView),
    "service_account_update": Endpoint(
        handler=_update,
        summary="Change a service account.",
        body=ServiceAccountUpdate,
        answer=ServiceAccountView,
        headers=("If-Match",),
    ),
    "service_account_delete": Endpoint(
        handler=_delete,
        summary="Delete a service account: tokens are revoked, queued requests cancelled.",
        answer=ServiceAccountDeletion,
        headers=("If-Match",),
    ),
}

"""Vaults, and what they give to a granted request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from starlette.responses import Response

from fairpool.app.errors import NotFound
from fairpool.app.memory import Memory
from fairpool.app.records import AnyDeclared, Declared, Document, Kind
from fairpool.app.transaction import Transaction
from fairpool.app.use_cases import vaults, webhooks
from fairpool.app.use_cases.vaults import Environment, Setting, VaultChange
from fairpool.core.ids import Instant
from fairpool.core.policies import Subject, SubjectKind
from fairpool.server import lookups
from fairpool.server.calls import Call
from fairpool.server.deciding import asked, decided
from fairpool.server.endpoints import Endpoint, present
from fairpool.server.outgoing import moment
from fairpool.wire.pages import Page
from fairpool.wire.vaults import (
    EnvironmentView,
    VariableView,
    VaultCreate,
    VaultRotation,
    VaultSecret,
    VaultUpdate,
    VaultValue,
    VaultView,
)


def change_of(body: VaultCreate | VaultUpdate) -> VaultChange:
    """The change that a body describes."""
    single = {key: _setting(getattr(body, key)) for key in vaults.SINGLE if key in body.model_fields_set}
    return VaultChange(
        environment={name: _setting(given) for name, given in body.environment.items()},
        secrets={name: _setting(given) for name, given in body.secrets.items()},
        single=single,
        description=body.description,
    )


def _setting(given: VaultValue | VaultSecret | None) -> Setting | None:
    return None if given is None else Setting(value=given.value, locked=given.locked)


def _view(memory: Memory, now: Instant, record: Declared[Document]) -> VaultView:
    return VaultView.model_validate(
        {
            **vaults.shown(record.spec),
            "id": record.id,
            "name": record.name,
            "version": record.version,
            "description": str(record.note.get("description", "")),
            "created_at": moment(record.created_at),
            "updated_at": moment(record.updated_at),
        }
    )


def _team(vault: AnyDeclared) -> tuple[Subject, ...]:
    return (Subject(SubjectKind.TEAM, vault.name),)


async def _list(call: Call) -> Response:
    reach = call.reach

    def ask(memory: Memory, now: Instant) -> Page[VaultView]:
        seen = [record for record in memory.all(Kind.VAULT) if reach.covers("", _team(record))]
        page = lookups.page_of(seen, call)
        items = [_view(memory, now, cast("Declared[Document]", record)) for record in page.items]
        return Page[VaultView](items=items, next_cursor=lookups.next_cursor(page))

    return present(await asked(call, ask))


async def _create(call: Call) -> Response:
    body, dry_run = await call.body(VaultCreate), call.dry_run
    change, sealer = change_of(body), call.services.sealer
    view = await decided(call, lambda tx: vaults.create(tx, body.name, change, sealer, dry_run=dry_run), _view)
    return present(view, status=200 if dry_run else 201, version=view.version, location=f"vaults/{view.id}")


async def _get(call: Call) -> Response:
    reach, ref = call.reach, call.path["ref"]

    def ask(memory: Memory, now: Instant) -> VaultView:
        found = memory.document(Kind.VAULT, ref)
        if not reach.covers("", _team(found)):
            raise NotFound(Kind.VAULT.value, ref)
        return _view(memory, now, found)

    view = await asked(call, ask)
    return present(view, version=view.version)


async def _update(call: Call) -> Response:
    body, dry_run, version = await call.body(VaultUpdate), call.dry_run, call.expected_version
    change, sealer, ref = change_of(body), call.services.sealer, call.path["ref"]
    view = await decided(
        call, lambda tx: vaults.update(tx, ref, change, sealer, version=version, dry_run=dry_run), _view
    )
    return present(view, version=view.version)


async def _delete(call: Call) -> Response:
    dry_run, version, ref = call.dry_run, call.expected_version, call.path["ref"]
    view = await decided(call, lambda tx: vaults.delete(tx, ref, version=version, dry_run=dry_run), _view)
    return present(view)


async def _rotate(call: Call) -> Response:
    sealer = call.services.sealer

    def rotate(tx: Transaction) -> Callable[[], tuple[int, int, int]]:
        webhooks.check_can_be_opened(tx, sealer)  # nothing is sealed anew unless everything can be
        counts = vaults.rotate(tx, sealer)
        sealed = webhooks.reseal(tx, sealer)
        return lambda: (*counts(), sealed)

    def told(memory: Memory, now: Instant, counts: tuple[int, int, int]) -> VaultRotation:
        return VaultRotation(vaults=counts[0], secrets=counts[1], webhooks=counts[2])

    return present(await decided(call, rotate, told))


async def _environment(call: Call) -> Response:
    sealer, ref, caller = call.services.sealer, call.path["id"], call.principal
    view = await decided(call, lambda tx: vaults.read(tx, ref, sealer, caller=caller), _environment_view)
    answer = present(view)
    answer.headers["Cache-Control"] = "no-store"
    return answer


def _environment_view(memory: Memory, now: Instant, found: Environment) -> EnvironmentView:
    return EnvironmentView(request=found.request, vault=found.vault, variables=_variables(found.variables))


def _variables(found: Mapping[str, vaults.Variable]) -> dict[str, VariableView]:
    return {
        name: VariableView(value=variable.value, locked=variable.locked, secret=variable.secret)
        for name, variable in found.items()
    }


ENDPOINTS = {
    "vault_list": Endpoint(handler=_list, summary="List vaults by team; of secrets the names.", answer=Page[VaultView]),
    "vault_create": Endpoint(
        handler=_create, summary="Create the vault of a team.", body=VaultCreate, answer=VaultView, status=201
    ),
    "vault_get": Endpoint(handler=_get, summary="A vault; of secrets the names.", answer=VaultView),
    "vault_update": Endpoint(
        handler=_update,
        summary="Change a vault: names that are given change, null takes one away.",
        body=VaultUpdate,
        answer=VaultView,
        headers=("If-Match",),
    ),
    "vault_delete": Endpoint(handler=_delete, summary="Delete a vault.", answer=VaultView, headers=("If-Match",)),
    "vault_rotate": Endpoint(
        handler=_rotate, summary="Seal all secrets anew with the newest key.", answer=VaultRotation
    ),
    "request_environment": Endpoint(
        handler=_environment,
        summary="What the vault of its team gives to a request that holds something, to whoever made it. "
        "Every call is written into the vault's history.",
        answer=EnvironmentView,
    ),
}

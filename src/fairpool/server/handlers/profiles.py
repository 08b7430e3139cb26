"""Profiles."""

from __future__ import annotations

from typing import cast

from starlette.responses import Response

from fairpool.app.memory import Memory
from fairpool.app.records import Declared, Kind
from fairpool.app.use_cases import profiles
from fairpool.app.use_cases.profiles import Defaults
from fairpool.core.ids import Instant
from fairpool.core.policies import Profile
from fairpool.server import concerns, incoming, lookups
from fairpool.server.bodies import defaults_of, profile_of
from fairpool.server.calls import Call
from fairpool.server.deciding import asked, created, decided
from fairpool.server.endpoints import Endpoint, present
from fairpool.server.outgoing import moment, vector
from fairpool.wire.pages import Page
from fairpool.wire.policies import ProfileCreate, ProfileDefaultsView, ProfileUpdate, ProfileView


def _view(memory: Memory, now: Instant, record: Declared[Profile]) -> ProfileView:
    return ProfileView(
        id=record.id,
        name=record.name,
        version=record.version,
        demand=vector(record.spec.demand),
        pools=list(record.spec.pools),
        defaults=defaults_view(profiles.defaults_in(record.note)),
        description=str(record.note.get("description", "")),
        created_at=moment(record.created_at),
        updated_at=moment(record.updated_at),
    )


def defaults_view(defaults: Defaults) -> ProfileDefaultsView:
    """A profile's defaults."""
    return ProfileDefaultsView(
        preemptible=defaults.preemptible, max_runtime_s=defaults.max_runtime_s, labels=dict(defaults.labels)
    )


async def _list(call: Call) -> Response:
    def ask(memory: Memory, now: Instant) -> Page[ProfileView]:
        page = lookups.page_of(concerns.chosen(memory, Kind.PROFILE, call.reach), call)
        items = [_view(memory, now, cast("Declared[Profile]", record)) for record in page.items]
        return Page[ProfileView](items=items, next_cursor=lookups.next_cursor(page))

    return present(await asked(call, ask))


async def _create(call: Call) -> Response:
    body, dry_run = await call.body(ProfileCreate), call.dry_run
    profile, defaults = profile_of(body), defaults_of(body.defaults)
    view = await created(
        call,
        Kind.PROFILE,
        lambda tx: profiles.create(tx, profile, defaults=defaults, description=body.description, dry_run=dry_run),
        _view,
    )
    return present(view, status=200 if dry_run else 201, version=view.version, location=f"profiles/{view.id}")


async def _get(call: Call) -> Response:
    def ask(memory: Memory, now: Instant) -> ProfileView:
        found = concerns.found(memory, Kind.PROFILE, call.path["ref"], call.reach)
        return _view(memory, now, cast("Declared[Profile]", found))

    view = await asked(call, ask)
    return present(view, version=view.version)


async def _update(call: Call) -> Response:
    body, dry_run, version = await call.body(ProfileUpdate), call.dry_run, call.expected_version
    change = profiles.ProfileChange(
        name=None if body.name is None else incoming.name("name", body.name, what="profile"),
        demand=None if body.demand is None else incoming.vector("demand", body.demand),
        pools=None if body.pools is None else tuple(body.pools),
        defaults=None if body.defaults is None else defaults_of(body.defaults),
        description=body.description,
    )
    ref = call.path["ref"]
    view = await decided(call, lambda tx: profiles.update(tx, ref, change, version=version, dry_run=dry_run), _view)
    return present(view, version=view.version)


async def _delete(call: Call) -> Response:
    dry_run, version, ref = call.dry_run, call.expected_version, call.path["ref"]
    view = await decided(call, lambda tx: profiles.delete(tx, ref, version=version, dry_run=dry_run), _view)
    return present(view)


ENDPOINTS = {
    "profile_list": Endpoint(handler=_list, summary="List profiles by name.", answer=Page[ProfileView]),
    "profile_create": Endpoint(
        handler=_create,
        summary="Create a profile.",
        body=ProfileCreate,
        answer=ProfileView,
        status=201,
        headers=("Idempotency-Key",),
    ),
    "profile_get": Endpoint(handler=_get, summary="A profile.", answer=ProfileView),
    "profile_update": Endpoint(
        handler=_update, summary="Change a profile.", body=ProfileUpdate, answer=ProfileView, headers=("If-Match",)
    ),
    "profile_delete": Endpoint(handler=_delete, summary="Delete a profile.", answer=ProfileView, headers=("If-Match",)),
}

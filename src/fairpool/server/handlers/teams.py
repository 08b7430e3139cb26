"""Teams and who is in them."""

from __future__ import annotations

from starlette.responses import Response

from fairpool.app.records import Kind
from fairpool.app.use_cases import teams
from fairpool.server import incoming, people
from fairpool.server.calls import Call
from fairpool.server.deciding import created, decided
from fairpool.server.endpoints import Endpoint, present
from fairpool.wire.pages import Page
from fairpool.wire.people import TeamCreate, TeamDeletion, TeamUpdate, TeamView


async def _list(call: Call) -> Response:
    return present(await people.listed(call, Kind.TEAM, people.team_view))


async def _create(call: Call) -> Response:
    body, dry_run = await call.body(TeamCreate), call.dry_run
    name = incoming.name("name", body.name, what="team")
    view = await created(
        call,
        Kind.TEAM,
        lambda tx: teams.create(
            tx, name, members=body.members, group=body.group, description=body.description, dry_run=dry_run
        ),
        people.team_view,
    )
    return present(view, status=200 if dry_run else 201, version=view.version, location=f"teams/{view.id}")


async def _get(call: Call) -> Response:
    view = await people.shown(call, Kind.TEAM, people.team_view)
    return present(view, version=view.version)


async def _changed(call: Call, change: teams.TeamChange) -> Response:
    dry_run, version, ref = call.dry_run, call.expected_version, call.path["ref"]
    view = await decided(
        call, lambda tx: teams.update(tx, ref, change, version=version, dry_run=dry_run), people.team_view
    )
    return present(view, version=view.version)


async def _update(call: Call) -> Response:
    body = await call.body(TeamUpdate)
    change = teams.TeamChange(
        name=None if body.name is None else incoming.name("name", body.name, what="team"),
        members=None if body.members is None else tuple(body.members),
        group=body.group,
        description=body.description,
    )
    return await _changed(call, change)


async def _add_member(call: Call) -> Response:
    return await _changed(call, teams.TeamChange(add=(call.path["user"],)))


async def _remove_member(call: Call) -> Response:
    return await _changed(call, teams.TeamChange(remove=(call.path["user"],)))


async def _delete(call: Call) -> Response:
    dry_run, version, ref = call.dry_run, call.expected_version, call.path["ref"]
    view = await decided(call, lambda tx: teams.delete(tx, ref, version=version, dry_run=dry_run), people.team_deletion)
    return present(view)


ENDPOINTS = {
    "team_list": Endpoint(handler=_list, summary="List teams by name.", answer=Page[TeamView]),
    "team_create": Endpoint(
        handler=_create,
        summary="Create a team.",
        body=TeamCreate,
        answer=TeamView,
        status=201,
        headers=("Idempotency-Key",),
    ),
    "team_get": Endpoint(handler=_get, summary="A team with those in it.", answer=TeamView),
    "team_update": Endpoint(
        handler=_update, summary="Change or rename a team.", body=TeamUpdate, answer=TeamView, headers=("If-Match",)
    ),
    "team_delete": Endpoint(
        handler=_delete,
        summary="Delete a team, with the policies that speak of it.",
        answer=TeamDeletion,
        headers=("If-Match",),
    ),
    "team_member_add": Endpoint(
        handler=_add_member,
        summary="Add a user to a team; from the next request on they have what the team has.",
        answer=TeamView,
        headers=("If-Match",),
    ),
    "team_member_remove": Endpoint(
        handler=_remove_member,
        summary="Take a user out of a team; what they have queued through it alone is cancelled.",
        answer=TeamView,
        headers=("If-Match",),
    ),
}

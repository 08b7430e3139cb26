"""The workspace's settings, and what the server says of itself."""

from __future__ import annotations

from starlette.responses import Response

from fairpool.app.memory import Memory
from fairpool.app.records import Declared, Document, RequestQuery
from fairpool.app.use_cases import settings
from fairpool.core.ids import Instant
from fairpool.core.requests import Status
from fairpool.server.calls import Call
from fairpool.server.deciding import asked, decided
from fairpool.server.endpoints import Endpoint, present
from fairpool.server.lookups import reading
from fairpool.server.outgoing import moment
from fairpool.wire.workspace import ServerInfo, SettingsUpdate, SettingsView

_LIVE = frozenset(status for status in Status if not status.is_final)


def _settings(memory: Memory, now: Instant, record: Declared[Document] | None) -> SettingsView:
    spec = record.spec if record is not None else {}
    return SettingsView(
        version=record.version if record is not None else 0, require_policy=bool(spec.get("require_policy", False))
    )


async def _get_settings(call: Call) -> Response:
    view = await asked(call, lambda memory, now: _settings(memory, now, settings.record(memory)))
    return present(view, version=view.version)


async def _update_settings(call: Call) -> Response:
    body, version = await call.body(SettingsUpdate), call.expected_version
    view = await decided(
        call, lambda tx: settings.update(tx, require_policy=body.require_policy, version=version), _settings
    )
    return present(view, version=view.version)


async def _info(call: Call) -> Response:
    services, loop = call.services, call.workspace.loop
    counts = await reading(call, lambda reader: reader.requests.count(RequestQuery(statuses=_LIVE)))
    queued = counts.get(Status.QUEUED, 0)
    return present(
        ServerInfo(
            version=services.version,
            started_at=moment(services.started_at),
            now=moment(services.clock.now()),
            database=services.database,
            leader=loop.is_leading,
            address=services.address,
            leader_address=loop.leader_address,
            queued=queued,
            active=sum(counts.values()) - queued,
        )
    )


ENDPOINTS = {
    "settings_get": Endpoint(handler=_get_settings, summary="The workspace's settings.", answer=SettingsView),
    "settings_update": Endpoint(
        handler=_update_settings,
        summary="Change the workspace's settings.",
        body=SettingsUpdate,
        answer=SettingsView,
        headers=("If-Match",),
    ),
    "server_info": Endpoint(handler=_info, summary="What the server says of itself.", answer=ServerInfo, is_local=True),
}

"""The workspace's settings, and what the server says of itself."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response

from fairpool.app import queries
from fairpool.app.memory import Memory
from fairpool.app.records import Declared, Document
from fairpool.app.use_cases import settings
from fairpool.core.amounts import WHOLE
from fairpool.core.ids import Instant
from fairpool.server.calls import Call
from fairpool.server.deciding import asked, decided
from fairpool.server.endpoints import Endpoint, present
from fairpool.server.failures import unavailable
from fairpool.server.metrics import CONTENT_TYPE, Labels
from fairpool.server.outgoing import moment
from fairpool.wire.workspace import ServerInfo, SettingsUpdate, SettingsView


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
    services = call.services
    queued, active = await asked(call, lambda memory, now: queries.live_requests(memory))
    return present(
        ServerInfo(
            version=services.version,
            started_at=moment(services.started_at),
            now=moment(services.clock.now()),
            database=services.database,
            leader=services.loop.is_leading,
            queued=queued,
            active=active,
        )
    )


async def _health(call: Call) -> Response:
    return Response('{"status":"ok"}', media_type="application/json")


async def _ready(call: Call) -> Response:
    if call.services.watch.closing:
        raise unavailable("the server is stopping")
    if not call.services.loop.is_leading:
        raise unavailable("the server is not the scheduler")
    return Response('{"status":"ready"}', media_type="application/json")


async def _metrics(call: Call) -> Response:
    gauges = await asked(call, _gauges)
    return Response(call.services.metrics.text(gauges), headers={"Content-Type": CONTENT_TYPE})


def _gauges(memory: Memory, now: Instant) -> Mapping[str, list[tuple[Labels, float]]]:
    queued, active = queries.live_requests(memory)
    found: dict[str, list[tuple[Labels, float]]] = {
        "fairpool_requests": [((("status", "queued"),), queued), ((("status", "active"),), active)]
    }
    for status in queries.pool_statuses(memory, now):
        sides = (("capacity", status.capacity), ("used", status.used), ("borrowed", status.borrowed))
        for name, amounts in sides:
            rows = found.setdefault(f"fairpool_pool_{name}", [])
            for key, value in sorted(amounts.items()):
                rows.append(((("pool", status.declared.name), ("key", key)), value / WHOLE))
        waiting = found.setdefault("fairpool_pool_queued", [])
        waiting.append(((("pool", status.declared.name),), status.queued))
    return found


ENDPOINTS = {
    "settings_get": Endpoint(handler=_get_settings, summary="The workspace's settings.", answer=SettingsView),
    "settings_update": Endpoint(
        handler=_update_settings,
        summary="Change the workspace's settings.",
        body=SettingsUpdate,
        answer=SettingsView,
        headers=("If-Match",),
    ),
    "server_info": Endpoint(handler=_info, summary="What the server says of itself.", answer=ServerInfo),
    "health": Endpoint(handler=_health, summary="That the process lives.", is_open=True),
    "ready": Endpoint(handler=_ready, summary="Whether the server decides."),
    "metrics": Endpoint(handler=_metrics, summary="Counts for Prometheus.", media_type="text/plain"),
}

"""What those who operate the server ask it: does it live, can it serve, what has it counted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

from starlette.responses import Response

from fairpool.app import gauges
from fairpool.app.errors import NotLeading
from fairpool.app.gauges import Gauges
from fairpool.app.queries import live_requests
from fairpool.app.scheduler import Ask
from fairpool.server.calls import Call
from fairpool.server.endpoints import Endpoint
from fairpool.server.metrics import CONTENT_TYPE, Sample, build_info, samples
from fairpool.server.workspaces import Workspace
from fairpool.wire.workspace import Check, Readiness

Found = TypeVar("Found")

CHECK_S = 2.0
"""How long a check may take: what answers no sooner serves nobody."""


async def _health(call: Call) -> Response:
    return Response('{"status":"ok"}', media_type="application/json")


async def _ready(call: Call) -> Response:
    services = call.services
    stopping = "the server is stopping" if services.workspaces.closing else ""
    checks = [Check(name="serving", holds=not stopping, detail=stopping)]
    checks += await asyncio.gather(*(_checked(name, look) for name, look in services.checks.items()))
    view = Readiness(ready=all(check.holds for check in checks), checks=checks)
    return Response(
        view.model_dump_json(),
        status_code=200 if view.ready else 503,
        headers={"Cache-Control": "no-store"} if view.ready else {"Cache-Control": "no-store", "Retry-After": "1"},
        media_type="application/json",
    )


async def _checked(name: str, look: Callable[[], str]) -> Check:
    try:
        async with asyncio.timeout(CHECK_S):
            wrong = await asyncio.to_thread(look)
    except TimeoutError:
        wrong = f"no answer within {CHECK_S:g} s"
    return Check(name=name, holds=not wrong, detail=wrong)


async def _metrics(call: Call) -> Response:
    services = call.services
    everything = call.principal.subject is None and call.workspace_named is None
    rows: dict[str, list[Sample]] = {}
    found: list[tuple[str, Gauges]] = []
    for workspace in services.workspaces if everything else [call.workspace]:
        labels = (workspace.name,)
        rows.setdefault("fairpool_leading", []).append((labels, float(workspace.loop.is_leading)))
        rows.setdefault("fairpool_calls_waiting", []).append((labels, float(workspace.loop.waiting)))
        with suppress(NotLeading):  # the server that leads tells them
            found.append((workspace.name, await _gauges(call, workspace)))

    def text() -> bytes:
        for name, there in found:
            for metric, told in samples(name, there).items():
                rows.setdefault(metric, []).extend(told)
        whole = {**build_info(services.version, services.database), **rows}
        return services.metrics.text(whole, only=None if everything else call.workspace.name)

    return Response(await asyncio.to_thread(text), headers={"Content-Type": CONTENT_TYPE})


async def _gauges(call: Call, workspace: Workspace) -> Gauges:
    """What there is in a workspace, part by part: between two of them others have their turn."""

    async def asked(ask: Ask[Found]) -> Found:
        return await call.services.bridge.answer(workspace.loop.ask(ask))

    counted = await asked(lambda memory, now: live_requests(memory))
    there = await asked(gauges.parts)
    found = [await asked(partial(gauges.part_of, part=part)) for part in there]
    return gauges.together(counted, found)


ENDPOINTS = {
    "health": Endpoint(handler=_health, summary="That the process lives.", is_open=True, is_local=True),
    "ready": Endpoint(
        handler=_ready,
        summary="Whether the server can serve calls, check by check; status 503 where it cannot.",
        answer=Readiness,
        also=((503, Readiness),),
        is_open=True,
        is_local=True,
    ),
    "metrics": Endpoint(handler=_metrics, summary="Counts for Prometheus.", media_type="text/plain", is_local=True),
}

"""Runs and steps, as their drivers report them."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.responses import Response

from fairpool.app.ports import Reader
from fairpool.app.records import RequestQuery, RequestRecord, RunQuery, RunRecord, StepRecord
from fairpool.app.records import RunStatus as Status
from fairpool.app.use_cases import runs
from fairpool.core.ids import Instant
from fairpool.server import incoming, lookups, outgoing
from fairpool.server.calls import Call
from fairpool.server.endpoints import Endpoint, present
from fairpool.server.lookups import acted, reading
from fairpool.wire.amounts import plain_amount
from fairpool.wire.pages import Page
from fairpool.wire.runs import RunCreate, RunUpdate, RunView, StepCreate, StepUpdate, StepView
from fairpool.wire.values import RunStatus

_ATTEMPTS_READ = 1_000
"""Requests read at once when all attempts of a run's steps are gathered."""


async def _list(call: Call) -> Response:
    query = RunQuery(labels=lookups.labels_of(call), owner=call.reach.owner)
    cursor, limit = lookups.cursor_of(call), call.page_size

    def read(reader: Reader) -> Page[RunView]:
        page = reader.runs.page(query, cursor=cursor, limit=limit)
        counts = reader.runs.step_counts([run.id for run in page.items])
        items = [outgoing.run(run, counts=counts.get(run.id, {})) for run in page.items]
        return Page[RunView](items=items, next_cursor=lookups.next_cursor(page))

    return present(await reading(call, read))


async def _create(call: Call) -> Response:
    body, key = await call.body(RunCreate), call.idempotency_key
    new = runs.NewRun(
        name=body.name,
        kind=body.kind,
        stack=body.stack or "",
        user=body.user,
        team="" if body.team is None else incoming.name("team", body.team, what="team"),
        labels=body.labels,
    )
    caller = call.principal
    made = await acted(call, lambda tx: runs.create_run(tx, new, idempotency_key=key or "", caller=caller))
    return _presented(made, status=201)


async def _get(call: Call) -> Response:
    ref, now, reach = call.path["ref"], call.services.clock.now(), call.reach

    def read(reader: Reader) -> RunView:
        run = runs.find_run(reader, ref, reach)
        attempts = _attempts(reader, RequestQuery(run=run.id))
        steps = [_step(step, attempts.get(step.id, ()), now) for step in reader.runs.steps(run.id)]
        counts = reader.runs.step_counts([run.id]).get(run.id, {})
        return outgoing.run(run, counts=counts, steps=steps)

    view = await reading(call, read)
    return present(view, version=view.version)


async def _update(call: Call) -> Response:
    body, ref, reach = await call.body(RunUpdate), call.path["ref"], call.reach
    status = _status(body.status)
    changed = await acted(call, lambda tx: runs.update_run(tx, ref, status=status, error=body.error, reach=reach))
    return _presented(changed)


async def _create_step(call: Call) -> Response:
    body, ref, reach = await call.body(StepCreate), call.path["ref"], call.reach
    key = call.idempotency_key or ""
    new = runs.NewStep(
        name=body.name,
        index=body.index,
        component=body.component,
        log=body.log,
        details={"settings": {key: plain_amount(value) for key, value in body.settings.items()}},
    )
    made = await acted(call, lambda tx: runs.create_step(tx, ref, new, idempotency_key=key, reach=reach))
    view = _step(made, (), call.services.clock.now())
    return present(view, status=201, version=view.version, location=f"steps/{view.id}")


async def _get_step(call: Call) -> Response:
    ref, now, reach = call.path["id"], call.services.clock.now(), call.reach

    def read(reader: Reader) -> StepView:
        step = runs.find_step(reader, ref, reach)
        return _step(step, _attempts(reader, RequestQuery(step=step.id)).get(step.id, ()), now)

    view = await reading(call, read)
    return present(view, version=view.version)


async def _update_step(call: Call) -> Response:
    body, ref, reach = await call.body(StepUpdate), call.path["id"], call.reach
    change = runs.StepChange(
        status=_status(body.status),
        request=body.request,
        attempt=body.attempt,
        log=body.log,
        error=body.error,
        checkpoint=body.checkpoint,
    )
    changed = await acted(call, lambda tx: runs.update_step(tx, ref, change, reach=reach))
    view = _step(changed, (), call.services.clock.now())
    return present(view, version=view.version)


def _presented(run: RunRecord, *, status: int = 200) -> Response:
    """A run without its steps, which only asking for one run gathers."""
    view = outgoing.run(run, counts={})
    return present(view, status=status, version=view.version, location=f"runs/{view.id}" if status == 201 else None)


def _step(step: StepRecord, attempts: Iterable[RequestRecord], now: Instant) -> StepView:
    return outgoing.step(step, sorted(attempts, key=lambda record: record.submission.created_at), now)


def _attempts(reader: Reader, query: RequestQuery) -> dict[str, list[RequestRecord]]:
    """The requests of steps, by step."""
    found: dict[str, list[RequestRecord]] = {}
    cursor = None
    while True:
        page = reader.requests.page(query, cursor=cursor, limit=_ATTEMPTS_READ)
        for record in page.items:
            found.setdefault(record.submission.step, []).append(record)
        cursor = page.next
        if cursor is None:
            return found


def _status(status: RunStatus | None) -> Status | None:
    return None if status is None else Status(status.value)


ENDPOINTS = {
    "run_list": Endpoint(handler=_list, summary="List runs, the newest first.", answer=Page[RunView], is_local=True),
    "run_create": Endpoint(
        handler=_create,
        summary="Report that a run begins.",
        body=RunCreate,
        answer=RunView,
        status=201,
        headers=("Idempotency-Key",),
    ),
    "run_get": Endpoint(
        handler=_get, summary="A run with its steps and their requests.", answer=RunView, is_local=True
    ),
    "run_update": Endpoint(handler=_update, summary="Report how a run is going.", body=RunUpdate, answer=RunView),
    "step_create": Endpoint(
        handler=_create_step,
        summary="Report that a step begins.",
        body=StepCreate,
        answer=StepView,
        status=201,
        headers=("Idempotency-Key",),
    ),
    "step_get": Endpoint(handler=_get_step, summary="A step with its requests.", answer=StepView, is_local=True),
    "step_update": Endpoint(
        handler=_update_step, summary="Report how a step is going.", body=StepUpdate, answer=StepView
    ),
}

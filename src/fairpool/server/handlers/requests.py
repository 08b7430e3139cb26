"""Requests: submit, check, list, wait, explain, cancel, release."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace

from starlette.responses import Response

from fairpool.app.authz import Reach
from fairpool.app.errors import Ambiguous, AppError, NotFound
from fairpool.app.memory import Memory
from fairpool.app.ports import Reader
from fairpool.app.records import Kind, RequestQuery, RequestRecord
from fairpool.app.use_cases import requests, runs
from fairpool.core.errors import CoreError, InvalidInput
from fairpool.core.ids import Instant, RequestId
from fairpool.core.policies import Subject
from fairpool.core.requests import Status
from fairpool.server import concerns, incoming, lookups, redaction
from fairpool.server.calls import Call, invalid
from fairpool.server.concerns import Concerns
from fairpool.server.deciding import asked, decided
from fairpool.server.endpoints import Endpoint, present
from fairpool.server.explaining import check_view, explanation_view
from fairpool.server.failures import refusal_of
from fairpool.server.lookups import answered, reading
from fairpool.server.presenting import request_view, request_views
from fairpool.server.watching import wait
from fairpool.wire.explanations import CheckResult, Explanation
from fairpool.wire.pages import Page
from fairpool.wire.problems import Problem
from fairpool.wire.requests import (
    BulkItem,
    BulkResult,
    RequestBulkCreate,
    RequestCancel,
    RequestCreate,
    RequestRelease,
    RequestView,
)
from fairpool.wire.values import RequestStatus

_QUEUED = frozenset({Status.QUEUED})
_ACTIVE = frozenset({Status.ALLOCATED, Status.PREEMPTING})
_VIEWS = {"queued": _QUEUED, "active": _ACTIVE, "live": _QUEUED | _ACTIVE, "all": frozenset[Status]()}


def ask_of(body: RequestCreate, *, key: str | None = None) -> requests.Ask:
    """What is asked for. Raises InvalidInput."""
    if key and body.idempotency_key and key != body.idempotency_key:
        raise InvalidInput(
            "the Idempotency-Key header says another key",
            field="idempotency_key",
            value=body.idempotency_key,
            possible="one of the two, or the same in both",
        )
    return requests.Ask(
        demand=incoming.demand(body),
        node_count=body.node_count,
        subjects=incoming.subjects("subjects", body.subjects),
        team="" if body.team is None else incoming.name("team", body.team, what="team"),
        pool=body.pool or "",
        profile=body.profile or "",
        preemptible=body.preemptible,
        priority=body.priority,
        max_runtime_s=body.max_runtime_s,
        wait_timeout_s=body.wait_timeout_s,
        lease_s=body.lease_s,
        retry_of=body.retry_of or "",
        name=body.name,
        run=body.run or "",
        step=body.step or "",
        labels=body.labels,
        idempotency_key=key or body.idempotency_key or "",
    )


async def _create(call: Call) -> Response:
    wait_s, dry_run, key = call.wait_s, call.dry_run, call.idempotency_key
    ask = ask_of(await call.body(RequestCreate), key=key)
    if dry_run:
        return await _checked(call, ask)
    await _check_run(call, [ask])
    caller, most = call.principal, call.services.max_queued
    view = await decided(call, lambda tx: requests.submit(tx, ask, caller=caller, most_queued=most), request_view)
    if view.status is RequestStatus.ALLOCATED:
        call.services.metrics.observe("fairpool_grant_latency_seconds", call.age_s, call.principal.workspace)
    if wait_s and view.status is RequestStatus.QUEUED:
        view = await _changed(call, view, wait_s)
    return present(view, status=201, version=view.version, location=f"requests/{view.id}")


async def _bulk(call: Call) -> Response:
    body = await call.body(RequestBulkCreate)
    asks: list[requests.Ask | AppError | CoreError] = []
    for given in body.requests:
        try:
            asks.append(ask_of(given))
        except CoreError as error:
            asks.append(error)

    def presented(memory: Memory, now: Instant, found: Sequence[RequestRecord | AppError | CoreError]) -> BulkResult:
        views = iter(request_views(memory, [item for item in found if isinstance(item, RequestRecord)]))
        return BulkResult(
            items=[
                BulkItem(index=index, request=next(views))
                if isinstance(item, RequestRecord)
                else BulkItem(index=index, problem=_problem_of(item, call.reach))
                for index, item in enumerate(found)
            ]
        )

    await _check_run(call, [ask for ask in asks if isinstance(ask, requests.Ask)])
    caller, most = call.principal, call.services.max_queued
    return present(
        await decided(call, lambda tx: requests.submit_many(tx, asks, caller=caller, most_queued=most), presented)
    )


async def _check_run(call: Call, asks: Sequence[requests.Ask]) -> None:
    """A request is shown with the run and the step that it names: nobody gets into those of others. Raises NotFound."""
    named_runs, named_steps = {ask.run for ask in asks if ask.run}, {ask.step for ask in asks if ask.step}
    if not (named_runs or named_steps):
        return
    reach = call.reach

    def look(reader: Reader) -> None:
        for run in named_runs:
            runs.find_run(reader, run, reach)
        for step in named_steps:
            runs.find_step(reader, step, reach)

    if reach.owner is not None:
        await reading(call, look)


def _problem_of(error: AppError | CoreError, reach: Reach) -> Problem:
    if isinstance(error, NotFound | Ambiguous) and reach.owner is not None:
        error = NotFound(error.kind, error.ref)  # without names that are like it: not all are for the caller
    refused = refusal_of(error)
    assert refused is not None
    return refused.problem


async def _check(call: Call) -> Response:
    return await _checked(call, ask_of(await call.body(RequestCreate)))


async def _checked(call: Call, ask: requests.Ask) -> Response:
    reader = call.workspace.reader
    caller, reach = call.principal, call.reach

    def check(memory: Memory, now: Instant) -> requests.Explained:
        return requests.check(memory, reader, now, ask, caller)

    checked = await asked(call, check)
    if checked.explanation.status is Status.QUEUED:
        found = await answered(call, call.workspace.loop.foresee(checked.explanation.request))
        checked = requests.foretold(checked, found)
    return present(check_view(checked, reach))


async def _list(call: Call) -> Response:
    query, cursor, limit = await _query(call), lookups.cursor_of(call), call.page_size
    if call.at is not None:
        return await _list_past(call, query)
    oldest_first = call.text("order") == "oldest"
    page = await reading(
        call, lambda reader: reader.requests.page(query, cursor=cursor, limit=limit, oldest_first=oldest_first)
    )
    views = await asked(call, lambda memory, now: _views(memory, page.items, call.reach))
    return present(Page[RequestView](items=views, next_cursor=lookups.next_cursor(page)))


async def _list_past(call: Call, query: RequestQuery) -> Response:
    """Part of the requests that were live at a moment, as they were. It may be short, and empty, and still go on."""
    then, statuses = replace(query, statuses=frozenset(), live_at=call.at), query.statuses
    cursor, limit, oldest_first = lookups.cursor_of(call), call.page_size, call.text("order") == "oldest"
    page = await reading(
        call, lambda reader: reader.requests.page(then, cursor=cursor, limit=limit, oldest_first=oldest_first)
    )

    def look(memory: Memory, now: Instant) -> list[RequestView]:
        were = [memory.live[record.id] for record in page.items if record.id in memory.live]
        chosen = [record for record in were if not statuses or record.status in statuses]
        return _views(memory, chosen, call.reach)

    return present(Page[RequestView](items=await asked(call, look), next_cursor=lookups.next_cursor(page)))


def _views(memory: Memory, records: Sequence[RequestRecord], reach: Reach) -> list[RequestView]:
    """Those of these that are there for the caller, as far as they are: of others a page may be short, and empty."""
    seen = _visible(memory, records, reach)
    views = request_views(memory, seen)
    return [redaction.request(view, record, reach) for view, record in zip(views, seen, strict=True)]


def _visible(memory: Memory, records: Sequence[RequestRecord], reach: Reach) -> list[RequestRecord]:
    """The caller's own, and of others those that live and may be why one's own wait."""
    if all(requests.is_within(record, reach) for record in records):
        return list(records)
    concern = Concerns(memory.all, reach)

    def is_there(record: RequestRecord) -> bool:
        known = memory.live.get(record.id)
        return requests.is_within(record, reach) or (known is not None and concern.explain(memory, known))

    return [record for record in records if is_there(record)]


async def _query(call: Call) -> RequestQuery:
    pool, run, subject = call.text("pool"), call.text("run"), call.text("subject")
    # What is not told of others' requests must not be found out by asking for it either.
    is_open = not any(call.texts(name) for name in ("run", "subject", "profile", "name", "label"))
    pool_id = run_id = ""
    if pool is not None:
        pool_id = (await reading(call, lambda reader: concerns.known(reader, Kind.POOL, pool, call.reach))).id
    if run is not None:
        run_id = (await reading(call, lambda reader: runs.find_run(reader, run, call.reach))).id
    return RequestQuery(
        statuses=_statuses(call),
        pool=pool_id,
        run=run_id,
        subject="" if subject is None else str(incoming.at("subject", Subject.parse, subject)),
        profile=call.text("profile") or "",
        name=call.text("name") or "",
        labels=lookups.labels_of(call),
        owner=call.reach.owner,
        or_live=is_open,
    )


def _statuses(call: Call) -> frozenset[Status]:
    given, view = call.text("status"), call.text("view")
    if given is None:
        return _VIEWS[view or "live"]
    words = [word.strip() for word in given.split(",")]
    for word in words:
        if word not in list(Status):
            raise invalid("status", f"{word!r} is no status", value=word, words=tuple(Status))
    statuses = frozenset(Status(word) for word in words)
    if view is None or not _VIEWS[view]:
        return statuses
    if not statuses & _VIEWS[view]:
        raise invalid("status", f"no request of the view {view!r} is {given}", value=given, words=tuple(_VIEWS[view]))
    return statuses & _VIEWS[view]


async def _get(call: Call) -> Response:
    wait_s, known = call.wait_s, call.whole("after_version", low=0, high=10**9)
    view = await _look(call, call.path["id"], call.reach)
    if wait_s and not view.status.is_final and (known is None or view.version <= known):
        view = await _changed(call, view, wait_s, version=known)
    return present(view, version=view.version)


async def _look(call: Call, ref: str, reach: Reach) -> RequestView:
    """A request as it is now, by id or unique prefix. Of others those are there that may be why one's own wait."""

    def show(memory: Memory, found: Sequence[RequestRecord]) -> RequestView:
        views = _views(memory, [memory.live.get(record.id) or record for record in found], reach)
        if len(views) > 1:
            raise Ambiguous("request", ref, candidates=[view.id for view in views])
        if not views:
            raise NotFound("request", ref)
        return views[0]

    def live(memory: Memory, now: Instant) -> RequestView | None:
        record = memory.live.get(RequestId(ref))
        return None if record is None else show(memory, [record])

    view = await asked(call, live)
    if view is not None:
        return view
    found = await reading(call, lambda reader: requests.matching(reader, ref))
    return await asked(call, lambda memory, now: show(memory, found))


async def _changed(call: Call, view: RequestView, wait_s: float, *, version: int | None = None) -> RequestView:
    """The request once its status is another one (or its version above `version`), or as it is after the wait. Raises
    Refused for who may not see it any more by then."""
    reach = call.reach
    give_up_at = asyncio.get_running_loop().time() + wait_s
    before = view.status
    with call.waiting(), call.workspace.watch.watching(view.id) as changed:
        while True:
            changed.clear()
            view = await _look(call, view.id, reach)
            moved = view.status is not before if version is None else view.version > version
            left_s = give_up_at - asyncio.get_running_loop().time()
            if moved or view.status.is_final or left_s <= 0 or call.workspace.watch.closing:
                return view
            # A caller that hung up is noticed when the server next writes to it, at the end of its wait at the latest.
            began = time.perf_counter()
            await wait(changed, left_s)
            call.waited(time.perf_counter() - began)
            reach = await call.reach_now()


async def _explain(call: Call) -> Response:
    reader, reach, ref = call.workspace.reader, call.reach, call.path["id"]
    record = await reading(call, lambda reader: requests.find(reader, ref, reach))
    requests.check_within(record, reach)

    # First when it starts, which may take a while: why it waits is then said of the very moment of the answer.
    found = await answered(call, call.workspace.loop.foresee(record.id))

    def explained(memory: Memory, now: Instant) -> Explanation:
        known = requests.explain(memory, now, requests.get(memory, reader, record.id))
        return explanation_view(requests.foretold(known, found), reach)

    return present(await asked(call, explained))


async def _cancel(call: Call) -> Response:
    body, ref, reach = await call.body(RequestCancel, optional=True), call.path["id"], call.reach
    view = await decided(call, lambda tx: requests.cancel(tx, ref, reason=body.reason, reach=reach), request_view)
    return present(view, version=view.version)


async def _release(call: Call) -> Response:
    body, ref, reach = await call.body(RequestRelease, optional=True), call.path["id"], call.reach
    reason = body.reason or ("released by force" if body.force else "")
    view = await decided(call, lambda tx: requests.release(tx, ref, reason=reason, reach=reach), request_view)
    return present(view, version=view.version)


ENDPOINTS = {
    "request_create": Endpoint(
        handler=_create,
        summary="Submit a request. With `dry_run` it is only checked, and answered as by `requests:check`.",
        body=RequestCreate,
        answer=RequestView,
        status=201,
        also=((200, CheckResult),),
        headers=("Idempotency-Key",),
    ),
    "request_bulk": Endpoint(
        handler=_bulk,
        summary="Submit many; each has a result of its own.",
        body=RequestBulkCreate,
        is_large=True,
        answer=BulkResult,
    ),
    "request_check": Endpoint(
        handler=_check,
        summary="Whether a request would run now, later or never, and why.",
        body=RequestCreate,
        answer=CheckResult,
    ),
    "request_list": Endpoint(
        handler=_list, summary="List requests, the newest first; live ones unless asked.", answer=Page[RequestView]
    ),
    "request_get": Endpoint(handler=_get, summary="A request, at once or once it has changed.", answer=RequestView),
    "request_explain": Endpoint(
        handler=_explain, summary="Why a request is where it is, and what would help.", answer=Explanation
    ),
    "request_cancel": Endpoint(
        handler=_cancel, summary="Withdraw a request.", body=RequestCancel, body_optional=True, answer=RequestView
    ),
    "request_release": Endpoint(
        handler=_release,
        summary="Let go of what a request holds.",
        body=RequestRelease,
        body_optional=True,
        answer=RequestView,
    ),
}

"""Webhooks: declare them, see how telling their receivers goes, try them out."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import cast

from starlette.responses import Response

from fairpool.app.memory import Memory
from fairpool.app.records import Declared, Document, Kind, WebhookCursor, cursors_of
from fairpool.app.use_cases import webhooks
from fairpool.app.use_cases.webhooks import WebhookChange, webhook_of
from fairpool.core.ids import Instant
from fairpool.server import bodies, incoming, lookups
from fairpool.server.calls import Call
from fairpool.server.deciding import asked, created, decided
from fairpool.server.endpoints import Endpoint, present
from fairpool.server.failures import unavailable
from fairpool.server.lookups import reading
from fairpool.server.outgoing import maybe_moment, moment
from fairpool.server.webhooks.targets import check_url
from fairpool.server.webhooks.telling import allows_private
from fairpool.wire.pages import Page
from fairpool.wire.webhooks import DeliveryView, NewWebhook, WebhookCreate, WebhookTrial, WebhookUpdate, WebhookView

Cursors = Mapping[str, WebhookCursor]
Fields = dict[str, object]


def _fields(memory: Memory, record: Declared[Document]) -> Fields:
    hook = webhook_of(record)
    gone = (
        f"there is no pool {hook.pool!r} any more: it is told of what is left of that one, and of a new one by its name"
    )
    return {
        "id": record.id,
        "name": record.name,
        "version": record.version,
        "url": hook.url,
        "events": sorted(hook.events),
        "waiting_longer_than_s": hook.waiting_longer_than_s,
        "pool": hook.pool,
        "team": hook.team,
        "enabled": hook.enabled,
        "description": str(record.note.get("description", "")),
        "created_at": moment(record.created_at),
        "updated_at": moment(record.updated_at),
        "warnings": [gone] if webhooks.is_pool_missing(memory, hook) else [],
    }


def _view(call: Call, record: Declared[Document], fields: Fields, cursors: Cursors) -> WebhookView:
    return WebhookView.model_validate({**fields, "delivery": _delivery(call, record, cursors)})


def _delivery(call: Call, record: Declared[Document], cursors: Cursors) -> DeliveryView:
    """How it goes: of its two courses the one that goes worse."""
    teller = call.workspace.teller
    most = teller.retries.tries if teller is not None else 1
    found = [cursors[name] for name in cursors_of(record.id) if name in cursors]
    if not found:
        return DeliveryView(status="ok" if webhook_of(record).enabled else "disabled")
    worst = max(found, key=lambda cursor: cursor.failures)
    status = "retrying" if worst.failures else "ok"
    if worst.failures >= most:
        status = "failing"
    if not webhook_of(record).enabled:
        status = "disabled"
    return DeliveryView(
        status=status,
        failures=worst.failures,
        last_error=worst.last_error,
        next_try_at=maybe_moment(worst.next_try_at),
        told_to=found[0].seq,
    )


async def _cursors(call: Call) -> Cursors:
    return await reading(call, lambda reader: reader.cursors.all())


async def _list(call: Call) -> Response:
    def look(memory: Memory, now: Instant) -> list[tuple[Declared[Document], Fields]]:
        records = (cast("Declared[Document]", record) for record in memory.all(Kind.WEBHOOK))
        return [(record, _fields(memory, record)) for record in records]

    page = lookups.page_of(await asked(call, look), call)
    cursors = await _cursors(call)
    items = [_view(call, record, fields, cursors) for record, fields in page.items]
    return present(Page[WebhookView](items=items, next_cursor=lookups.next_cursor(page)))


def _check_url(call: Call, url: str) -> None:
    check_url(url, allow_private=allows_private(call.workspace.teller))


async def _create(call: Call) -> Response:
    body, dry_run, sealer = await call.body(WebhookCreate), call.dry_run, call.services.sealer
    name = incoming.name("name", body.name, what="webhook")
    _check_url(call, body.url)
    change = bodies.change_of_webhook(body)

    def show(memory: Memory, now: Instant, record: Declared[Document]) -> NewWebhook:
        secret = "" if dry_run else sealer.open(webhook_of(record).secret)
        return NewWebhook.model_validate({**_fields(memory, record), "secret": secret})

    secret = webhooks.new_secret()
    view = await created(
        call,
        Kind.WEBHOOK,
        lambda tx: webhooks.create(tx, name, change, secret=secret, sealer=sealer, dry_run=dry_run),
        show,
    )
    status = 200 if dry_run else 201
    answer = present(view, status=status, version=view.version, location=f"webhooks/{view.id}")
    answer.headers["Cache-Control"] = "no-store"
    return answer


async def _found(call: Call) -> Declared[Document]:
    return await asked(call, lambda memory, now: memory.document(Kind.WEBHOOK, call.path["ref"]))


async def _get(call: Call) -> Response:
    def look(memory: Memory, now: Instant) -> tuple[Declared[Document], Fields]:
        record = memory.document(Kind.WEBHOOK, call.path["ref"])
        return record, _fields(memory, record)

    record, fields = await asked(call, look)
    return present(_view(call, record, fields, await _cursors(call)), version=record.version)


async def _update(call: Call) -> Response:
    body, dry_run, version = await call.body(WebhookUpdate), call.dry_run, call.expected_version
    if body.url is not None:
        _check_url(call, body.url)
    change = WebhookChange(
        url=body.url,
        events=None if body.events is None else tuple(body.events),
        waiting_longer_than_s=body.waiting_longer_than_s,
        pool=body.pool,
        team=body.team,
        enabled=body.enabled,
        description=body.description,
    )
    ref = call.path["ref"]
    view = await decided(
        call,
        lambda tx: webhooks.update(tx, ref, change, version=version, dry_run=dry_run),
        lambda memory, now, record: WebhookView.model_validate(_fields(memory, record)),
    )
    return present(view, version=view.version)


async def _delete(call: Call) -> Response:
    dry_run, version, ref = call.dry_run, call.expected_version, call.path["ref"]
    view = await decided(
        call,
        lambda tx: webhooks.delete(tx, ref, version=version, dry_run=dry_run),
        lambda memory, now, record: WebhookView.model_validate(_fields(memory, record)),
    )
    return present(view)


async def _draw_secret(call: Call) -> Response:
    ref, sealer, version = call.path["ref"], call.services.sealer, call.expected_version
    secret = webhooks.new_secret()
    view = await decided(
        call,
        lambda tx: webhooks.draw_secret(tx, ref, secret=secret, sealer=sealer, version=version),
        lambda memory, now, record: NewWebhook.model_validate({**_fields(memory, record), "secret": secret}),
    )
    answer = present(view, version=view.version)
    answer.headers["Cache-Control"] = "no-store"
    return answer


async def _test(call: Call) -> Response:
    record, teller = await _found(call), call.workspace.teller
    if teller is None:
        raise unavailable("this server calls no webhooks")
    outcome = await asyncio.wrap_future(teller.try_out(webhook_of(record)))
    return present(
        WebhookTrial(
            delivered=outcome.delivered,
            status=outcome.status,
            detail=outcome.detail,
            took_ms=round(outcome.took_s * 1000, 1),
        )
    )


ENDPOINTS = {
    "webhook_list": Endpoint(handler=_list, summary="List webhooks by name.", answer=Page[WebhookView]),
    "webhook_create": Endpoint(
        handler=_create,
        summary="Declare a webhook. The answer has the secret that signs what it is told, this once.",
        body=WebhookCreate,
        answer=NewWebhook,
        status=201,
        also=((200, NewWebhook),),
        headers=("Idempotency-Key",),
    ),
    "webhook_get": Endpoint(handler=_get, summary="A webhook, and how telling its receiver goes.", answer=WebhookView),
    "webhook_update": Endpoint(
        handler=_update,
        summary="Change a webhook, or begin again with one that was given up.",
        body=WebhookUpdate,
        answer=WebhookView,
        headers=("If-Match",),
    ),
    "webhook_delete": Endpoint(handler=_delete, summary="Delete a webhook.", answer=WebhookView, headers=("If-Match",)),
    "webhook_secret": Endpoint(
        handler=_draw_secret,
        summary="Draw a new secret for a webhook, which signs from now on. It is in the answer, this once.",
        answer=NewWebhook,
        headers=("If-Match",),
    ),
    "webhook_test": Endpoint(
        handler=_test, summary="Call the receiver now, once, and say what it answered.", answer=WebhookTrial
    ),
}

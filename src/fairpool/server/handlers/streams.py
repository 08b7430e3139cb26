"""History and the event stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from fairpool.app.authz import Reach
from fairpool.app.errors import Ambiguous, NotFound
from fairpool.app.ports import Reader
from fairpool.app.records import WORK, HistoryQuery, Kind
from fairpool.app.use_cases import requests
from fairpool.server import events, lookups, outgoing, remembering
from fairpool.server.calls import Call, invalid
from fairpool.server.concerns import Concerns
from fairpool.server.endpoints import Endpoint, present
from fairpool.server.lookups import reading
from fairpool.server.problems import Refused
from fairpool.wire.events import HistoryEntry
from fairpool.wire.pages import Page


async def _list(call: Call) -> Response:
    after = call.whole("after", low=0, high=10**18)
    query = _query(call)
    if after is None:
        return await _page(call, query)
    cursor = lookups.cursor_of(call) or after
    page = await reading(
        call, lambda reader: remembering.page(reader, query, call.reach, cursor=cursor, limit=call.page_size)
    )
    items = [outgoing.history(entry) for entry in page.items]
    return present(Page[HistoryEntry](items=items, next_cursor=lookups.next_cursor(page)))


def _query(call: Call) -> HistoryQuery:
    kind, named = _kind(call), call.text("named") or ""
    # By name only rules and rights are found: there are few of them, and work has ids.
    return HistoryQuery(
        kind=kind,
        rules=call.flag("rules") or bool(named) or (kind is not None and kind not in WORK),
        object=call.text("object") or "",
        name=named,
        actor=call.text("actor") or "",
        since=call.moment("since"),
        until=call.moment("until"),
    )


async def _page(call: Call, query: HistoryQuery) -> Response:
    """Part of the history, newest first."""
    cursor = lookups.cursor_of(call)

    def read(reader: Reader) -> Page[HistoryEntry]:
        page = remembering.page(reader, query, call.reach, cursor=cursor, limit=call.page_size, newest_first=True)
        items = [outgoing.history(entry) for entry in page.items]
        return Page[HistoryEntry](items=items, next_cursor=lookups.next_cursor(page))

    return present(await reading(call, read))


async def of_pool(call: Call) -> Response:
    """The history of one pool, newest first."""
    return await _of_declared(call, Kind.POOL, call.path["ref"])


async def of_policy(call: Call) -> Response:
    """The history of one policy, newest first."""
    return await _of_declared(call, Kind.POLICY, call.path["id"])


async def of_vault(call: Call) -> Response:
    """The history of one vault, newest first: who changed it, and whose steps have read it."""
    return await _of_declared(call, Kind.VAULT, call.path["ref"])


async def of_request(call: Call) -> Response:
    """The history of one request, newest first."""
    found = await reading(call, lambda reader: requests.find(reader, call.path["id"], call.reach))
    requests.check_within(found, call.reach)
    return await _page(call, HistoryQuery(kind=Kind.REQUEST, object=found.id))


async def _of_declared(call: Call, kind: Kind, ref: str) -> Response:
    def find(reader: Reader) -> str:
        try:
            found = lookups.declared(reader, kind, ref)
        except (NotFound, Ambiguous):
            if call.reach.owner is None:
                raise
            raise NotFound(kind.value, ref) from None
        if not Concerns(reader.declared.all, call.reach).include(found):
            raise NotFound(kind.value, ref)
        return found.id

    return await _page(call, HistoryQuery(kind=kind, object=await reading(call, find)))


async def _events(call: Call) -> Response:
    kind, wanted, run = _kind(call), call.text("object"), call.text("run")
    reader, watch = call.workspace.reader, call.workspace.watch
    after = call.last_event_id
    if after is None:
        after = await reading(call, lambda reader: reader.history.last_seq())
    query = HistoryQuery(kind=kind, object=wanted or "", run=run or "")

    def look(after: int, limit: int, reach: Reach) -> events.News:
        page = reader.history.page(query, cursor=after, limit=limit)
        found = remembering.readable(reader, page.items, reach)
        last = page.items[-1].seq if page.items else after
        return events.News([outgoing.event(entry) for entry in found], last, more=page.next is not None)

    async def read(after: int, limit: int) -> events.News | None:
        try:
            reach = await call.reach_now()
        except Refused:
            return None
        return await asyncio.to_thread(look, after, limit, reach)

    return EventStream(events.stream(read, watch, after=after), call.services.doorkeeper.begin_wait(call.principal))


class EventStream(StreamingResponse):
    """A stream of events. leave: called when it has ended, however it did."""

    def __init__(self, content: AsyncIterator[bytes], leave: Callable[[], None]) -> None:
        super().__init__(content, media_type="text/event-stream", headers={"Cache-Control": "no-store"})
        self._leave = leave

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See starlette's."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._leave()


def _kind(call: Call) -> Kind | None:
    word = call.text("kind")
    if word is None:
        return None
    if word not in list(Kind):
        raise invalid("kind", "unknown kind", value=word, words=tuple(Kind))
    return Kind(word)


ENDPOINTS = {
    "history": Endpoint(
        handler=_list,
        summary="What happened, newest first, or in order `after` an entry.",
        answer=Page[HistoryEntry],
        is_local=True,
    ),
    "events": Endpoint(
        handler=_events,
        summary="What happens, as server-sent events; without an id only what is new.",
        media_type="text/event-stream",
        headers=("Last-Event-ID",),
        is_local=True,
    ),
    "pool_history": Endpoint(
        handler=of_pool, summary="The history of a pool, newest first.", answer=Page[HistoryEntry], is_local=True
    ),
    "policy_history": Endpoint(
        handler=of_policy, summary="The history of a policy, newest first.", answer=Page[HistoryEntry], is_local=True
    ),
    "vault_history": Endpoint(
        handler=of_vault,
        summary="The history of a vault, newest first: changes, and every read.",
        answer=Page[HistoryEntry],
    ),
    "request_history": Endpoint(
        handler=of_request, summary="The history of a request, newest first.", answer=Page[HistoryEntry], is_local=True
    ),
}

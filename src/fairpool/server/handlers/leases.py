"""Leases of requests (S35)."""

from __future__ import annotations

from starlette.responses import Response

from fairpool.app.errors import NotFound
from fairpool.app.memory import Memory
from fairpool.app.records import RequestRecord
from fairpool.app.use_cases import requests
from fairpool.core.ids import Instant
from fairpool.server import outgoing
from fairpool.server.calls import Call
from fairpool.server.deciding import decided
from fairpool.server.endpoints import Endpoint, present
from fairpool.server.lookups import reading
from fairpool.wire.requests import LeaseBulkRenew, LeaseBulkResult, LeaseRenew, LeaseView

Renewed = tuple[list[RequestRecord], list[str]]


def _result(memory: Memory, now: Instant, renewed: Renewed) -> LeaseBulkResult:
    return LeaseBulkResult(items=[outgoing.lease(record) for record in renewed[0]], missing=renewed[1])


async def _renew(call: Call) -> Response:
    body, ref, reach = await call.body(LeaseRenew, optional=True), call.path["id"], call.reach
    result = await decided(call, lambda tx: requests.renew(tx, [ref], length_s=body.lease_s, reach=reach), _result)
    if result.missing:
        # Owners renew by id, which the scheduler knows; a prefix is for people, and looked up.
        found = await reading(call, lambda reader: requests.find(reader, ref, reach))
        requests.check_within(found, reach)
        result = await decided(
            call, lambda tx: requests.renew(tx, [found.id], length_s=body.lease_s, reach=reach), _result
        )
    if not result.items:
        raise NotFound("request", ref)
    return present(result.items[0])


async def _bulk(call: Call) -> Response:
    body, reach = await call.body(LeaseBulkRenew), call.reach
    return present(await decided(call, lambda tx: requests.renew(tx, body.requests, reach=reach), _result))


ENDPOINTS = {
    "lease_renew": Endpoint(
        handler=_renew,
        summary="Renew a lease, and learn whether to let go.",
        body=LeaseRenew,
        body_optional=True,
        answer=LeaseView,
    ),
    "lease_bulk": Endpoint(
        handler=_bulk, summary="Renew many leases at once.", body=LeaseBulkRenew, is_large=True, answer=LeaseBulkResult
    ),
}

"""All endpoints of API v1 by the name of their route."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from starlette.responses import Response

from fairpool.server.calls import Call
from fairpool.server.endpoints import Endpoint
from fairpool.server.handlers import (
    leases,
    manifests,
    operating,
    policies,
    pools,
    profiles,
    queues,
    requests,
    runs,
    service_accounts,
    signin,
    stacks,
    streams,
    teams,
    tokens,
    users,
    vaults,
    webhooks,
    workspace,
    workspaces,
)
from fairpool.server.openapi import document


async def _openapi(call: Call) -> Response:
    return Response(json.dumps(document(ENDPOINTS, call.services.version)), media_type="application/json")


ENDPOINTS: Final[Mapping[str, Endpoint]] = MappingProxyType(
    {
        **pools.ENDPOINTS,
        **policies.ENDPOINTS,
        **profiles.ENDPOINTS,
        **queues.ENDPOINTS,
        **vaults.ENDPOINTS,
        **stacks.ENDPOINTS,
        **manifests.ENDPOINTS,
        **requests.ENDPOINTS,
        **leases.ENDPOINTS,
        **runs.ENDPOINTS,
        **users.ENDPOINTS,
        **teams.ENDPOINTS,
        **service_accounts.ENDPOINTS,
        **tokens.ENDPOINTS,
        **streams.ENDPOINTS,
        **webhooks.ENDPOINTS,
        **workspaces.ENDPOINTS,
        **workspace.ENDPOINTS,
        **signin.ENDPOINTS,
        **operating.ENDPOINTS,
        "openapi": Endpoint(handler=_openapi, summary="This document.", is_local=True),
    }
)

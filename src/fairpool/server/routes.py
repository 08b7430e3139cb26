"""The endpoints of API v1."""

from fairpool.server.endpoints import Endpoint

ENDPOINTS: dict[str, Endpoint] = {}

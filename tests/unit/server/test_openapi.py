"""The OpenAPI document says of every route what the route table and the wire models say."""

from __future__ import annotations

import json
import re
from typing import Any

from fairpool.server.openapi import document
from fairpool.server.problems import TABLE
from fairpool.server.routes import ENDPOINTS
from fairpool.wire.problems import EXIT_CODES, Slug
from fairpool.wire.routes import QUERY, ROUTES

METHODS = {"get", "post", "patch", "delete", "put"}


def found() -> dict[str, Any]:
    made: dict[str, Any] = json.loads(json.dumps(document(ENDPOINTS, "1.2.3")))
    return made


def test_every_route_has_an_endpoint_and_the_other_way_round() -> None:
    assert set(ENDPOINTS) == set(ROUTES)


def test_every_route_is_in_the_document_and_the_other_way_round() -> None:
    operations = {
        (method.upper(), path): operation["operationId"]
        for path, methods in found()["paths"].items()
        for method, operation in methods.items()
    }
    assert operations == {(route.method, route.template): name for name, route in ROUTES.items()}


def test_every_reference_leads_to_a_schema() -> None:
    made = found()
    references = set(re.findall(r'"\$ref": "#/components/schemas/([^"]+)"', json.dumps(made)))
    assert references
    assert references <= set(made["components"]["schemas"])


def test_path_and_query_parameters_are_those_of_the_table() -> None:
    for methods in found()["paths"].values():
        for operation in methods.values():
            route = ROUTES[operation["operationId"]]
            named = [p["name"] for p in operation["parameters"] if p["in"] == "path"]
            assert named == re.findall(r"\{(\w+)\}", route.path)
            assert tuple(p["name"] for p in operation["parameters"] if p["in"] == "query") == route.query
            assert set(route.query) <= set(QUERY)


def test_bodies_refuse_unknown_fields_and_answers_allow_them() -> None:
    schemas = found()["components"]["schemas"]
    assert schemas["RequestCreate"]["additionalProperties"] is False
    assert "additionalProperties" not in schemas["RequestView"]


def test_only_health_readiness_and_signing_in_are_open() -> None:
    opened = [
        operation["operationId"]
        for methods in found()["paths"].values()
        for operation in methods.values()
        if operation.get("security") == []
    ]
    assert {name for name in opened if not name.startswith("sign_in_")} == {"health", "ready"}


def test_every_slug_has_a_status_a_title_and_an_exit_code() -> None:
    assert set(TABLE) == set(Slug) == set(EXIT_CODES)
    assert all(400 <= status < 600 and title for status, title in TABLE.values())

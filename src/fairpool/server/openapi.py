"""The OpenAPI 3.1 document, made from the route table, the endpoint table and the wire models."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, JsonValue
from pydantic.json_schema import models_json_schema

from fairpool.server.problems import TABLE
from fairpool.wire.problems import MEDIA_TYPE, Problem
from fairpool.wire.routes import QUERY, ROUTES, Route

if TYPE_CHECKING:
    from fairpool.server.endpoints import Endpoint

Document = dict[str, JsonValue]
Names = Mapping[Any, Mapping[str, JsonValue]]
"""Model to the schema that refers to it."""

_REF = "#/components/schemas/{model}"
_HEADERS = {
    "If-Match": "Only when the thing still has this ETag; else 412.",
    "Idempotency-Key": "The same key returns what the first call with it created.",
    "Last-Event-ID": "Go on after this event.",
}


def document(endpoints: Mapping[str, Endpoint], version: str) -> Document:
    """The whole document."""
    return _document(tuple(sorted(endpoints.items())), version)


@cache
def _document(endpoints: tuple[tuple[str, Endpoint], ...], version: str) -> Document:
    used: dict[type[BaseModel], None] = {Problem: None}
    for _, endpoint in endpoints:
        also = (model for _, model in endpoint.also)
        used.update(dict.fromkeys(model for model in (endpoint.body, endpoint.answer, *also) if model is not None))
    inputs = {endpoint.body for _, endpoint in endpoints}
    modes, schemas = models_json_schema(
        [(model, "validation" if model in inputs else "serialization") for model in used], ref_template=_REF
    )
    names: Names = {model: entry for (model, _), entry in modes.items()}
    paths: dict[str, JsonValue] = {}
    for name, endpoint in endpoints:
        route = ROUTES[name]
        operations = paths.setdefault(route.template, {})
        assert isinstance(operations, dict)
        operations[route.method.lower()] = _operation(name, route, endpoint, names)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Fairpool",
            "version": version,
            "summary": "Fair GPU and compute sharing for AI and ML teams.",
            "description": "Amounts are exact: numbers, or text that reads as one, with at most three fractional "
            "digits. Times are UTC. Failures are problem documents (RFC 9457) whose `type` is one of: "
            + ", ".join(f"`{slug}`" for slug in TABLE)
            + ".",
        },
        "paths": paths,
        "components": {
            "schemas": schemas.get("$defs", {}),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _operation(name: str, route: Route, endpoint: Endpoint, names: Names) -> Document:
    parameters: list[JsonValue] = [
        {"name": part, "in": "path", "required": True, "schema": {"type": "string"}}
        for part in re.findall(r"\{(\w+)\}", route.path)
    ]
    for query in route.query:
        known = QUERY[query]
        schema: Document = {"type": known.kind}
        if known.words:
            schema["enum"] = list(known.words)
        parameters.append({"name": query, "in": "query", "description": known.meaning, "schema": schema})
    for header in endpoint.headers:
        parameters.append(
            {"name": header, "in": "header", "description": _HEADERS[header], "schema": {"type": "string"}}
        )
    found: Document = {
        "operationId": name,
        "summary": endpoint.summary,
        "parameters": parameters,
        "responses": {
            str(endpoint.status): _answer(endpoint, names),
            **{
                str(status): {
                    "description": endpoint.summary,
                    "content": {"application/json": {"schema": dict(names[model])}},
                }
                for status, model in endpoint.also
            },
            "default": {
                "description": "What went wrong.",
                "content": {MEDIA_TYPE: {"schema": dict(names[Problem])}},
            },
        },
    }
    if endpoint.body is not None:
        found["requestBody"] = {
            "required": not endpoint.body_optional,
            "content": {"application/json": {"schema": dict(names[endpoint.body])}},
        }
    if endpoint.is_open:
        found["security"] = []
    return found


def _answer(endpoint: Endpoint, names: Names) -> Document:
    answer: Document = {"description": endpoint.summary}
    if endpoint.answer is not None:
        answer["content"] = {endpoint.media_type: {"schema": dict(names[endpoint.answer])}}
    elif endpoint.status != 204:
        answer["content"] = {endpoint.media_type: {}}
    return answer

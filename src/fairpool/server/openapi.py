"""The OpenAPI 3.1 document, made from the route table, the endpoint table and the wire models."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, JsonValue
from pydantic.json_schema import models_json_schema

from fairpool.server.openapi_problems import problems_of
from fairpool.server.problems import TABLE
from fairpool.wire.problems import MEDIA_TYPE, Problem, Slug
from fairpool.wire.routes import QUERY, ROUTES, WORKSPACE_HEADER, Parameter, Route

if TYPE_CHECKING:
    from fairpool.server.endpoints import Endpoint

Document = dict[str, JsonValue]
Names = Mapping[Any, Mapping[str, JsonValue]]
"""Model to the schema that refers to it."""

_WITHOUT_CONTENT = (204, 302)
_REF = "#/components/schemas/{model}"
_HEADERS: Mapping[str, tuple[str, Document]] = {
    "If-Match": (
        "Only when the thing still has this ETag; else 412.",
        {"type": "string", "pattern": r'^(\*|\s*(W/)?"\d{1,18}"\s*)$'},
    ),
    "Idempotency-Key": (
        "The same key returns what the first call with it created, and does nothing twice.",
        {"type": "string", "minLength": 1, "maxLength": 200},
    ),
    "Last-Event-ID": ("Go on after this event.", {"type": "string", "pattern": r"^\d{1,18}$"}),
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
            "digits. Times are UTC. A token is of one workspace, and each call is about that one; with the "
            f"installation's own token the header `{WORKSPACE_HEADER}` names any (`default` without it). "
            "Failures are problem documents (RFC 9457) whose `type` is one of: "
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
        {"name": part, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for part in re.findall(r"\{(\w+)\}", route.path)
    ]
    for query in route.query:
        known = QUERY[query]
        parameters.append(
            {"name": query, "in": "query", "description": known.meaning, "schema": _schema_of_query(known)}
        )
    for header in endpoint.headers:
        meaning, schema = _HEADERS[header]
        parameters.append({"name": header, "in": "header", "description": meaning, "schema": dict(schema)})
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
            **_problems(route, endpoint, names),
            **{
                str(status): {"description": "A page that says why.", "content": {"text/html": {}}}
                for status in endpoint.pages
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


def _schema_of_query(known: Parameter) -> Document:
    schema: Document = {"type": known.kind, **known.bounds}
    if known.words:
        schema["enum"] = list(known.words)
    return {"type": "array", "items": schema} if known.several else schema


def _problems(route: Route, endpoint: Endpoint, names: Names) -> Document:
    """The problems that the route can answer with, by status."""
    by_status: dict[int, list[Slug]] = {}
    for slug in problems_of(route, endpoint):
        by_status.setdefault(TABLE[slug][0], []).append(slug)
    with_models = {status for status, _ in endpoint.also}
    return {
        str(status): {
            "description": "; ".join(f"`{slug}`: {TABLE[slug][1]}" for slug in slugs) + ".",
            "content": {MEDIA_TYPE: {"schema": dict(names[Problem])}},
        }
        for status, slugs in sorted(by_status.items())
        if status not in with_models
    }


def _answer(endpoint: Endpoint, names: Names) -> Document:
    answer: Document = {"description": endpoint.summary}
    if endpoint.answer is not None:
        answer["content"] = {endpoint.media_type: {"schema": dict(names[endpoint.answer])}}
    elif endpoint.status not in _WITHOUT_CONTENT:
        answer["content"] = {endpoint.media_type: {}}
    return answer

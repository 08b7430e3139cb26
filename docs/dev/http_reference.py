"""Routes, query parameters, problems and bodies of the HTTP API as Markdown."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from fairpool.server.problems import TABLE
from fairpool.server.routes import ENDPOINTS
from fairpool.wire.problems import EXIT_CODES, Problem
from fairpool.wire.routes import QUERY, ROUTES

Schema = Mapping[str, Any]
_REF = "#/{model}"
_RULE = re.compile(r"\s*\(S\d+\w?(?:, S\d+\w?)*\)")


def routes() -> str:
    """Every route with what it does, reads and answers."""
    told = ["| Route | What it does | Query | Body | Answer |", "|---|---|---|---|---|"]
    names = _names()
    for name, route in ROUTES.items():
        endpoint = ENDPOINTS[name]
        body = _link(names, endpoint.body) + (" (optional)" if endpoint.body_optional else "")
        answer = f"{endpoint.status} {_link(names, endpoint.answer)}".strip()
        query = ", ".join(f"`{word}`" for word in route.query)
        told.append(f"| `{route.method} {route.template}` | {_plain(endpoint.summary)} | {query} | {body} | {answer} |")
    return "\n".join(told)


def query() -> str:
    """Every query parameter."""
    told = ["| Parameter | Type | Meaning |", "|---|---|---|"]
    for name, parameter in QUERY.items():
        words = ": " + ", ".join(f"`{word}`" for word in parameter.words) if parameter.words else ""
        told.append(f"| `{name}` | {parameter.kind}{words} | {parameter.meaning} |")
    return "\n".join(told)


def problems() -> str:
    """Every slug with its status, and the exit code of the command line."""
    told = ["| `type` | Status | Title | Exit code of the command line |", "|---|---|---|---|"]
    for slug, (status, title) in TABLE.items():
        told.append(f"| `{slug}` | {status} | {title} | {int(EXIT_CODES[slug])} |")
    return "\n".join(told)


def schemas() -> str:
    """Every body with its fields, in the order of their names."""
    told: list[str] = []
    for name, schema in sorted(_definitions()[1]["$defs"].items()):
        if name.startswith("Page_") or name == "JsonValue":
            continue  # pages are all alike, and told in the words around
        told += ["", f"### {name}", ""]
        if text := _plain(str(schema.get("description", ""))):
            told += [text, ""]
        told += _fields(schema)
    return "\n".join(told)


def _definitions() -> tuple[Mapping[Any, Schema], Schema]:
    bodies = {endpoint.body for endpoint in ENDPOINTS.values() if endpoint.body is not None}
    answers = {endpoint.answer for endpoint in ENDPOINTS.values() if endpoint.answer is not None}
    wanted = sorted(bodies | answers | {Problem}, key=lambda model: model.__name__)
    modes, schema = models_json_schema(
        [(model, "validation" if model in bodies else "serialization") for model in wanted], ref_template=_REF
    )
    return {(model, mode): entry for (model, mode), entry in modes.items()}, schema


def _names() -> dict[type[BaseModel], str]:
    return {model: str(entry["$ref"]).rpartition("/")[2] for (model, _), entry in _definitions()[0].items()}


def _link(names: Mapping[type[BaseModel], str], model: type[BaseModel] | None) -> str:
    if model is None:
        return ""
    item = re.fullmatch(r"Page_(\w+?)_", names[model])
    return f"page of [{item[1]}](#{item[1].lower()})" if item else f"[{names[model]}](#{names[model].lower()})"


def _plain(text: str) -> str:
    """A docstring as Markdown: one line per paragraph, no rule numbers, JSON's word for what is not there."""
    paragraphs = [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]
    return _RULE.sub("", "\n\n".join(paragraphs)).replace("``", "`").replace("None", "null")


def _fields(schema: Schema) -> list[str]:
    if "enum" in schema:
        return ["One of " + ", ".join(f"`{word}`" for word in schema["enum"]) + "."]
    rows = ["| Field | Type | Default |", "|---|---|---|"]
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        value = field.get("default")
        default = "" if value in (None, "") else f"`{json.dumps(value)}`"
        said = "required" if name in required and "default" not in field else default
        rows.append(f"| `{name}` | {_kind(field)} | {said} |")
    return rows


def _kind(schema: Schema) -> str:
    """The type of a field in words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return "any JSON" if name == "JsonValue" else f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        kinds = dict.fromkeys(_kind(part) for part in schema["anyOf"])
        return " or ".join(kinds)
    if "enum" in schema:
        return ", ".join(f"`{word}`" for word in schema["enum"])
    kind = schema.get("type", "any JSON")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array":
        return f"array of {_kind(schema.get('items', {}))}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_kind(schema['additionalProperties'])}"
    return f"{kind}{_bounds(schema)}"


def _bounds(schema: Schema) -> str:
    if schema.get("format") == "date-time":
        return " (time)"
    if "maxLength" in schema:
        return f", at most {schema['maxLength']} characters"
    bounds = [f"{word} {schema[key]}" for key, word in (("minimum", "from"), ("maximum", "to")) if key in schema]
    return " " + " ".join(bounds) if bounds else ""

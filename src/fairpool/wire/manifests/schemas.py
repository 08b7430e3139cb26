"""JSON Schemas of the documents, for editors: made from the very models by which documents are read."""

from __future__ import annotations

import re
from typing import Final

from pydantic import BaseModel, JsonValue

from fairpool.wire.manifests.kinds import COMPONENT_KINDS, KINDS, model_of_parts

Schema = dict[str, JsonValue]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
ANY_KIND: Final = "document"
"""Name of the schema that takes a document of whatever kind, or a list of them."""

_RULE = re.compile(r"\s*\(S\d+\w?(?:, S\d+\w?)*\)")
_MEANING = re.compile(r"^(?P<names>[a-z_]+(?:, [a-z_]+)*): (?P<text>.+)$", re.DOTALL)
_NEXT = re.compile(r"(?<=[.:;])\s+(?=[a-z_]+(?:, [a-z_]+)*: )")
_OWN: Final[Schema] = {"readOnly": True, "description": "Set by the server: it may be here, and has no effect."}


def schema(kind: str) -> Schema:
    """The schema of one kind of document. Raises KeyError for no such kind."""
    known = KINDS[kind]
    made: Schema = known.model.model_json_schema()
    definitions = made.get("$defs", {})
    assert isinstance(definitions, dict)
    for name, inner in definitions.items():
        model = _models(known.body).get(name)
        if isinstance(inner, dict) and model is not None:
            _explain(inner, model)
    _explain(made, known.body)
    _allow_own(made, known.body, known.view, definitions)
    title = f"Fairpool {kind}"
    return {"$schema": DIALECT, "$id": f"urn:fairpool:schema:{kind}", **made, "title": title}


def any_kind() -> Schema:
    """The schema of files that hold any kinds: of a document of whatever kind, and of a list of such documents."""
    definitions: Schema = {}
    branches: list[JsonValue] = []
    for kind in KINDS:
        whole = schema(kind)
        inner = whole.pop("$defs", {})
        assert isinstance(inner, dict)
        definitions |= inner
        definitions[kind] = {key: value for key, value in whole.items() if key not in ("$schema", "$id")}
        said: Schema = {"properties": {"kind": _words(kind)}, "required": ["kind"]}
        branches.append({"if": said, "then": {"$ref": f"#/$defs/{kind}"}})
    words = [word for kind in KINDS for word in _spelled(kind)]
    definitions[ANY_KIND] = {
        "title": "Fairpool document",
        "type": "object",
        "properties": {"kind": {"enum": list(words)}},
        "required": ["kind"],
        "allOf": branches,
    }
    one: Schema = {"$ref": f"#/$defs/{ANY_KIND}"}
    return {
        "$schema": DIALECT,
        "$id": f"urn:fairpool:schema:{ANY_KIND}",
        "title": "Fairpool documents",
        "if": {"type": "array"},
        "then": {"items": one},
        "else": one,
        "$defs": definitions,
    }


def named(name: str) -> Schema:
    """The schema of a kind, or of any. Raises KeyError for no such kind."""
    return any_kind() if name == ANY_KIND else schema(name)


def names() -> tuple[str, ...]:
    """Every name that `named` takes."""
    return (ANY_KIND, *KINDS)


def _spelled(kind: str) -> tuple[str, ...]:
    return (kind, *COMPONENT_KINDS) if kind == "component" else (kind,)


def _words(kind: str) -> Schema:
    return {"enum": list(_spelled(kind))}


def _explain(schema: Schema, model: type[BaseModel]) -> None:
    """Put what the model's docstring says of each field beside the field, where editors show it."""
    text = " ".join(_RULE.sub("", model.__doc__ or "").replace("``", "`").split())
    about, *meanings = _NEXT.split(text)
    match = _MEANING.match(about)
    schema["description"] = "" if match else about
    properties = schema.get("properties", {})
    assert isinstance(properties, dict)
    for meaning in [about, *meanings] if match else meanings:
        found = _MEANING.match(meaning)
        for name in found["names"].split(", ") if found else ():
            field = properties.get(name)
            if found and isinstance(field, dict):
                field["description"] = found["text"]


def _allow_own(schema: Schema, body: type[BaseModel], view: type[BaseModel], definitions: Schema) -> None:
    """What the server shows of an object besides is no mistake in a document; nor is it in one of its parts."""
    properties = schema["properties"]
    assert isinstance(properties, dict)
    for name in view.model_fields:
        properties.setdefault(name, dict(_OWN))
        said, seen = model_of_parts(body, name), model_of_parts(view, name)
        part = definitions.get(said.__name__) if said is not None else None
        if said is not None and seen is not None and isinstance(part, dict):
            _allow_own(part, said, seen, definitions)


def _models(model: type[BaseModel]) -> dict[str, type[BaseModel]]:
    """The models that a body is made of, by name."""
    found: dict[str, type[BaseModel]] = {}
    for field in model.model_fields.values():
        for part in (field.annotation, *getattr(field.annotation, "__args__", ())):
            if isinstance(part, type) and issubclass(part, BaseModel):
                found |= {part.__name__: part, **_models(part)}
    return found

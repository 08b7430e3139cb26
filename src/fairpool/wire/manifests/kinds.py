"""The kinds of documents: for each, the fields that people write, which are those of creating one over HTTP.

A document may also be what the server shows of an object (`-o yaml`): what the server alone sets — id, version, usage,
times — is then accepted and has no effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, Literal, get_args

from pydantic import BaseModel, create_model

from fairpool.wire.people import (
    ServiceAccountCreate,
    ServiceAccountView,
    TeamCreate,
    TeamView,
    UserCreate,
    UserView,
)
from fairpool.wire.policies import PolicyCreate, PolicyView, ProfileCreate, ProfileView
from fairpool.wire.pools import PoolCreate, PoolView
from fairpool.wire.problems import FieldProblem
from fairpool.wire.reading import InvalidBody, nearest, quoted, read, shown
from fairpool.wire.stacks import ComponentCreate, ComponentKind, ComponentView, StackCreate, StackView
from fairpool.wire.vaults import VaultDocument, VaultView
from fairpool.wire.webhooks import WebhookCreate, WebhookView

COMPONENT_KINDS: Final[tuple[str, ...]] = get_args(ComponentKind)


@dataclass(frozen=True)
class DocumentKind:
    """One kind of document.

    body: what people write, as for creating one. view: what the server shows, whose other fields are its own.
    """

    kind: str
    body: type[BaseModel]
    view: type[BaseModel]

    @cached_property
    def model(self) -> type[BaseModel]:
        """The whole document, `kind` included; its JSON schema is what editors check by."""
        title = "".join(word.capitalize() for word in self.kind.split("-")) + "Document"
        fields: dict[str, Any] = {"kind": (Literal[self.kind], ...)}
        if self.kind == "component":  # the word `kind` says what the component is, in views
            fields = {"kind": (Literal["component", *COMPONENT_KINDS], ...), "type": (ComponentKind, "orchestrator")}
        made = create_model(title, __base__=self.body, **fields)
        made.__doc__ = self.body.__doc__
        return made


KINDS: Final[Mapping[str, DocumentKind]] = MappingProxyType(
    {
        known.kind: known
        for known in (
            DocumentKind("component", ComponentCreate, ComponentView),
            DocumentKind("user", UserCreate, UserView),
            DocumentKind("team", TeamCreate, TeamView),
            DocumentKind("service-account", ServiceAccountCreate, ServiceAccountView),
            DocumentKind("pool", PoolCreate, PoolView),
            DocumentKind("profile", ProfileCreate, ProfileView),
            DocumentKind("vault", VaultDocument, VaultView),
            DocumentKind("policy", PolicyCreate, PolicyView),
            DocumentKind("stack", StackCreate, StackView),
            DocumentKind("webhook", WebhookCreate, WebhookView),
        )
    }
)
"""By the word that a document's `kind` says, each after those that it may name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A document whose fields are right.

    name: what names it: of a policy ``pool/subject``. body: as for creating it.
    """

    kind: str
    name: str
    body: BaseModel


def read_document(data: object) -> Document:
    """The document that `data` is. Raises InvalidBody naming every field that is wrong."""
    kind = KINDS[kind_of(data)]
    assert isinstance(data, dict)
    body = dict(_without_own(data, kind.body, kind.view))
    if kind.kind == "component":
        body = _component(data, body)
    else:
        body.pop("kind")
    if kind.kind == "pool":
        body = _pool(data, body)
    if kind.kind == "vault":
        _check_no_secrets(data)
    if kind.kind == "webhook":
        _check_no_signing_secret(data)
    read_body = _read(kind, body)
    return Document(kind=kind.kind, name=name_of(kind.kind, read_body), body=read_body)


def kind_of(data: object) -> str:
    """The kind of a document. Raises InvalidBody where it says none that there is."""
    if not isinstance(data, dict):
        problem = FieldProblem(field="", message="not a document", value=shown(data), possible="fields: kind, name, …")
        raise InvalidBody([problem])
    word = data.get("kind")
    if word in COMPONENT_KINDS:
        return "component"
    if isinstance(word, str) and word in KINDS:
        return word
    possible = ", ".join(KINDS)
    if word is None:
        meant = nearest("kind", [str(key) for key in data])
        hint = f": did you mean 'kind' by {quoted(meant)}?" if meant else ""
        raise InvalidBody([FieldProblem(field="", message=f"'kind' is missing{hint}", possible=possible)])
    meant = nearest(str(word), KINDS)
    message = f"no kind {quoted(str(word))}" + (f": did you mean {meant!r}?" if meant else "")
    raise InvalidBody([FieldProblem(field="kind", message=message, value=shown(word), possible=possible)])


def name_of(kind: str, body: BaseModel) -> str:
    """What names a document of that kind."""
    if kind == "policy":
        assert isinstance(body, PolicyCreate)
        return f"{body.pool}/{subject_of(body.subject)}"
    return str(getattr(body, "name", ""))


def subject_of(text: str) -> str:
    """A subject as it is written in full: ``component:`` may be left off."""
    return text if ":" in text else f"component:{text}"


def _read(kind: DocumentKind, body: dict[str, object]) -> BaseModel:
    try:
        return read(kind.body, body)
    except InvalidBody as error:
        if kind.kind != "component":
            raise
        # What the body calls `kind` is the document's `type`.
        told = [p.model_copy(update={"field": "type"}) if p.field == "kind" else p for p in error.problems]
        raise InvalidBody(told) from None


def _component(data: dict[str, object], body: dict[str, object]) -> dict[str, object]:
    """In a document, `type` says what a component is, or `kind` itself as the server shows it."""
    word = data["kind"]
    body["kind"] = data.get("type", "orchestrator") if word == "component" else word
    body.pop("type", None)
    return body


def _pool(data: dict[str, object], body: dict[str, object]) -> dict[str, object]:
    """Of a pool as the server shows it, the capacity counts its nodes in: what they bring is theirs to say."""
    nodes, capacity = data.get("nodes"), data.get("capacity")
    if "nominal" in data and isinstance(nodes, list) and isinstance(capacity, dict):
        from_nodes: set[object] = set()
        for node in nodes:
            of_node = node.get("capacity") if isinstance(node, dict) else None
            from_nodes.update(of_node if isinstance(of_node, dict) else ())
        body["capacity"] = {key: value for key, value in capacity.items() if key not in from_nodes}
    return body


def _check_no_secrets(data: dict[str, object]) -> None:
    """A file is read by many. What is refused is not repeated."""
    secrets = data.get("secrets")
    told = [
        FieldProblem(
            field=f"secrets.{name}.value",
            message="the value of a secret does not belong into a file",
            possible=f"{name}: {{}}, once 'fairpool vault set' has given the value",
        )
        for name, said in (secrets.items() if isinstance(secrets, dict) else ())
        if isinstance(said, str) or (isinstance(said, dict) and "value" in said)
    ]
    if told:
        raise InvalidBody(told)


def _check_no_signing_secret(data: dict[str, object]) -> None:
    """The server draws the secret of a webhook itself. What is refused is not repeated."""
    if "secret" in data:
        message = "the secret of a webhook does not belong into a file: the server draws it"
        possible = "nothing here; 'fairpool webhook secret NAME' draws a new one and shows it once"
        raise InvalidBody([FieldProblem(field="secret", message=message, possible=possible)])


def _without_own(data: Mapping[str, object], body: type[BaseModel], view: type[BaseModel]) -> dict[str, object]:
    """The data without the fields that the server alone sets; what is unknown stays, to be refused."""
    found: dict[str, object] = {}
    for key, value in data.items():
        if key in view.model_fields and key not in body.model_fields and key != "kind":
            continue
        said, seen = model_of_parts(body, key), model_of_parts(view, key)
        if isinstance(value, list) and said is not None and seen is not None:
            found[key] = [_without_own(part, said, seen) if isinstance(part, dict) else part for part in value]
        else:
            found[key] = value
    return found


def model_of_parts(model: type[BaseModel], name: str) -> type[BaseModel] | None:
    """The model of which a field is a list."""
    field = model.model_fields.get(name)
    inner = get_args(field.annotation) if field is not None else ()
    return inner[0] if inner and isinstance(inner[0], type) and issubclass(inner[0], BaseModel) else None

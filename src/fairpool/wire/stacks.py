"""Components and stacks over HTTP: where steps run, and which rules they meet there."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from fairpool.wire.model import Body, Line, Object, Prose, View

ComponentKind = Literal["orchestrator", "step_operator", "artifact_store"]


class ComponentCreate(Body):
    """A registered orchestrator, step operator or artifact store.

    flavor: what it is made of (``local``, or the import path of a custom class).
    config: what the flavor wants to know.
    """

    name: str
    kind: ComponentKind = "orchestrator"
    flavor: Line = "local"
    config: Object = Field(default_factory=dict)
    description: Prose = ""


class ComponentUpdate(Body):
    """What changes of a component; fields that are left out stay."""

    flavor: Line | None = None
    config: Object | None = None
    description: Prose | None = None


class ComponentView(View):
    """A component as it is now. subject: how policies speak of it."""

    id: str
    name: str
    version: int
    kind: str
    flavor: str
    subject: str = ""
    config: Object = Field(default_factory=dict)
    description: str = ""
    created_at: datetime | None = None
    updated_at: datetime | None = None


class StackCreate(Body):
    """A named choice of components: one orchestrator, and optionally step operators and an artifact store.

    step_operators: steps that name one run there instead of on the orchestrator.
    """

    name: str
    orchestrator: str
    step_operators: list[str] = Field(default_factory=list)
    artifact_store: str | None = None
    description: Prose = ""


class StackUpdate(Body):
    """What changes of a stack; fields that are left out stay."""

    orchestrator: str | None = None
    step_operators: list[str] | None = None
    artifact_store: str | None = None
    description: Prose | None = None


class StackView(View):
    """A stack as it is now. active: what runs use that name no stack."""

    kind: str = "stack"
    id: str
    name: str
    version: int
    orchestrator: str
    step_operators: list[str] = Field(default_factory=list)
    artifact_store: str | None = None
    active: bool = False
    description: str = ""
    created_at: datetime | None = None
    updated_at: datetime | None = None

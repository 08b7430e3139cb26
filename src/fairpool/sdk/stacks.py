"""Stacks: where the steps of a pipeline run, and through that, which rules they meet."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from fairpool.sdk.api import Api
from fairpool.sdk.artifacts import ARTIFACTS_ENV
from fairpool.sdk.connection import setting
from fairpool.sdk.errors import Refused, StackError
from fairpool.sdk.orchestrators.base import Orchestrator
from fairpool.sdk.orchestrators.local import FLAVOR, LocalOrchestrator
from fairpool.sdk.settings import unknown
from fairpool.wire.local_server import data_dir
from fairpool.wire.stacks import ComponentCreate, ComponentKind, ComponentView, StackView

DEFAULT: Final = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """A choice of where steps run: one orchestrator, and step operators for the steps that name one.

    Stacks are usually kept at the server (``fairpool stack create``) and named: ``sweep(stack="prod")``. One made here
    serves the program that made it. artifact_store: a folder or an fsspec URL; None for the usual place.
    """

    name: str = DEFAULT
    orchestrator: Orchestrator = field(default_factory=LocalOrchestrator)
    step_operators: tuple[Orchestrator, ...] = ()
    artifact_store: str | None = None

    def component(self, step_operator: str | None) -> Orchestrator:
        """The step operator of that name, or the orchestrator for None. Raises StackError."""
        if step_operator is None:
            return self.orchestrator
        for operator in self.step_operators:
            if operator.name == step_operator:
                return operator
        names = [operator.name for operator in self.step_operators]
        if not names:
            raise StackError(
                f"stack {self.name!r} has no step operator {step_operator!r}; it has none. "
                f"Create a stack with it: fairpool stack create NAME --orchestrator {self.orchestrator.name} "
                f"--step-operator {step_operator}"
            )
        raise StackError(f"stack {self.name!r}: {unknown('step operator', step_operator, names)}")

    @property
    def artifacts(self) -> str:
        """The folder or URL where inputs, outputs and checkpoints lie."""
        return self.artifact_store or os.environ.get(ARTIFACTS_ENV) or str(data_dir() / "artifacts")


def logs_folder() -> Path:
    """Where the output of steps is kept."""
    return data_dir() / "runs"


def find_stack(api: Api, choice: Stack | str | None) -> Stack:
    """The stack that was chosen: itself, one of the server's by name, or the active one. Raises StackError."""
    if isinstance(choice, Stack):
        _register(api, choice)
        return choice
    name = choice or setting("stack")
    views = api.stacks()
    view = next((found for found in views if (found.active if name is None else name in (found.name, found.id))), None)
    if view is None:
        if name in (None, DEFAULT):
            return Stack()
        names = sorted({found.name for found in views} | {DEFAULT})
        raise StackError(f"{unknown('stack', str(name), names)} (fairpool stack list)")
    return _built(view, {component.name: component for component in api.components()})


def _register(api: Api, stack: Stack) -> None:
    """Tell the server of the components of a stack that a program has made, so that policies can speak of them."""
    known = {component.name for component in api.components()}
    for place, component in enumerate((stack.orchestrator, *stack.step_operators)):
        if component.name in known:
            continue
        kind: ComponentKind = "step_operator" if place else "orchestrator"
        try:
            api.create_component(ComponentCreate(name=component.name, kind=kind, flavor=_flavor(component)))
        except Refused as error:
            if error.code != HTTPStatus.CONFLICT:  # then another program was quicker
                raise


def _flavor(component: Orchestrator) -> str:
    kind = type(component)
    return FLAVOR if kind is LocalOrchestrator else f"{kind.__module__}:{kind.__qualname__}"


def _built(view: StackView, components: Mapping[str, ComponentView]) -> Stack:
    found = {**components, **{component.id: component for component in components.values()}}
    return Stack(
        name=view.name,
        orchestrator=_component(view, view.orchestrator, found),
        step_operators=tuple(_component(view, name, found) for name in view.step_operators),
        artifact_store=_place(view, found),
    )


def _component(view: StackView, name: str, components: Mapping[str, ComponentView]) -> Orchestrator:
    component = components.get(name)
    if component is None:
        if name == FLAVOR:
            return LocalOrchestrator()
        raise StackError(f"stack {view.name!r} names the component {name!r}, which does not exist")
    return orchestrator_of(component.name, component.flavor, component.config)


def _place(view: StackView, components: Mapping[str, ComponentView]) -> str | None:
    if view.artifact_store is None:
        return None
    component = components.get(view.artifact_store)
    place = None if component is None else component.config.get("path") or component.config.get("url")
    if not isinstance(place, str):
        raise StackError(f"artifact store {view.artifact_store!r} of stack {view.name!r} has no path in its config")
    return place


def orchestrator_of(name: str, flavor: str, config: Mapping[str, Any]) -> Orchestrator:
    """The orchestrator or step operator of that flavor. Raises StackError.

    flavor: ``local``, or where a custom one is: ``package.module:Class``.
    """
    if flavor == FLAVOR:
        return LocalOrchestrator(name, config)
    module_name, colon, class_name = flavor.partition(":")
    if not colon:
        raise StackError(
            f"component {name!r} has the flavor {flavor!r}, which this version cannot run steps on; possible: "
            f"{FLAVOR}, or package.module:Class"
        )
    try:
        found = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError) as error:
        raise StackError(f"component {name!r}: cannot import its flavor {flavor!r}: {error}") from error
    if not (isinstance(found, type) and issubclass(found, Orchestrator)):
        raise StackError(f"component {name!r}: {flavor!r} is no Orchestrator (fairpool.sdk.orchestrators.base)")
    return found(name, config)

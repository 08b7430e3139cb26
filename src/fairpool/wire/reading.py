"""From a parsed body to a model, or to every field that is wrong, each with what is possible."""

from __future__ import annotations

import difflib
import types
from collections.abc import Iterable, Sequence
from typing import Annotated, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from fairpool.wire.problems import FieldProblem

Model = TypeVar("Model", bound=BaseModel)

_SHOWN = 60
"""Characters of a wrong value that a message repeats."""


class InvalidBody(ValueError):
    """A body whose fields are wrong. problems: one per field."""

    def __init__(self, problems: Sequence[FieldProblem]) -> None:
        super().__init__("; ".join(f"{problem.field}: {problem.message}" for problem in problems))
        self.problems = tuple(problems)


def read(model: type[Model], data: object) -> Model:
    """`data` as a `model`. Raises InvalidBody naming every field that is wrong."""
    if not isinstance(data, dict):
        raise InvalidBody([FieldProblem(field="", message="not an object", value=shown(data), possible="{…}")])
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise InvalidBody(field_problems(model, error)) from None


def field_problems(model: type[BaseModel], error: ValidationError) -> list[FieldProblem]:
    """The fields that `error` speaks of, in words of the API."""
    found: dict[str, FieldProblem] = {}
    for item in error.errors(include_url=False):
        location = item["loc"]
        problem = (
            _unknown_field(model, location)
            if item["type"] == "extra_forbidden"
            else _wrong_value(location, item["type"], item["msg"], item["input"])
        )
        found.setdefault(problem.field, problem)
    return list(found.values())


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that `word` was probably meant to be, or None."""
    matches = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return matches[0] if matches else None


def shown(value: object) -> str:
    """A value as a message repeats it: short, and without control characters."""
    text = value if isinstance(value, str) else str(value)
    text = "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def _unknown_field(model: type[BaseModel], location: tuple[int | str, ...]) -> FieldProblem:
    word = str(location[-1])
    names = sorted(_fields_at(model, location[:-1]))
    meant = nearest(word, names)
    return FieldProblem(
        field=_path(location),
        message=f"unknown field {shown(word)!r}" + (f": did you mean {meant!r}?" if meant else ""),
        value=shown(word),
        possible=", ".join(names),
    )


def _wrong_value(location: tuple[int | str, ...], kind: str, message: str, value: object) -> FieldProblem:
    if kind == "missing":
        return FieldProblem(field=_path(location), message="missing", possible="a value")
    message = message.removeprefix("Value error, ")
    what, _, possible = message.partition("; possible: ")
    if not possible:
        what, possible = "not possible", what[:1].lower() + what[1:]
        possible = possible.removeprefix("input should be ").removeprefix("value should be ")
    return FieldProblem(
        field=_path(location), message=f"{shown(value)!r}: {what}", value=shown(value), possible=possible
    )


def _path(location: tuple[int | str, ...]) -> str:
    # Pydantic names the members of a union ("function-before…", "int") at the end of a location: no part of the path.
    return ".".join(shown(part) for part in location if not (isinstance(part, str) and part.startswith("function-")))


def _fields_at(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    here = model
    for part in location:
        field = here.model_fields.get(part) if isinstance(part, str) else None
        inner = _model_in(field.annotation) if field is not None else None
        if inner is not None:
            here = inner
    return list(here.model_fields)


def _model_in(annotation: object) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel) and get_origin(annotation) is None:
        return annotation
    if get_origin(annotation) in (list, dict, Union, types.UnionType, Annotated):
        for argument in get_args(annotation):
            inner = _model_in(argument)
            if inner is not None:
                return inner
    return None

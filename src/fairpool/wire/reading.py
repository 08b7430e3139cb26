"""From a parsed body to a model, or to every field that is wrong, each with what is possible."""

from __future__ import annotations

import difflib
import itertools
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Final, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from fairpool.wire.model import NUL, Body
from fairpool.wire.problems import FieldProblem

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

Model = TypeVar("Model", bound=BaseModel)

_PATH_PARTS = 12
"""Parts of a path that a message repeats: what lies deeper is nested on purpose."""

_SHOWN = 60
"""Characters of a wrong value that a message repeats."""

_MAX_WORD: Final = 200
"""Letters of a word that others may be like: comparing takes time with the square of that."""

_MOST_PROBLEMS: Final = 100
"""Wrong fields of one body that are told: more than anybody mends at once."""


HIDDEN: Final = "…"
"""What a message repeats of a value in a body that may hold secrets."""


class InvalidBody(ValueError):
    """A body whose fields are wrong. problems: one per field."""

    def __init__(self, problems: Sequence[FieldProblem]) -> None:
        super().__init__("; ".join(f"{problem.field}: {problem.message}" for problem in problems))
        self.problems = tuple(problems)


def read(model: type[Model], data: object) -> Model:
    """`data` as a `model`. Raises InvalidBody naming every field that is wrong."""
    if not isinstance(data, dict):
        found = HIDDEN if _is_hidden(model) else shown(data)
        raise InvalidBody([FieldProblem(field="", message="not an object", value=found, possible="an object: {…}")])
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise InvalidBody(field_problems(model, error)) from None


def unkept(body: BaseModel) -> list[FieldProblem]:
    """The texts in a body that hold a NUL, which not every database keeps; keys of objects are texts too."""
    problems = list(_unkept(body.model_dump(), ()))
    if _is_hidden(type(body)):
        problems = [problem.model_copy(update={"value": HIDDEN}) for problem in problems]
    return problems


def _unkept(value: object, path: tuple[int | str, ...]) -> Iterator[FieldProblem]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list | tuple) else ()
    for key, part in inner:
        here = (*path, key)
        if NUL in str(key) or (isinstance(part, str) and NUL in part):
            told = "holds the character NUL, which no text may"
            yield FieldProblem(field=_path(here), message=told, value=shown(part), possible="text without it")
        else:
            yield from _unkept(part, here)


def field_problems(model: type[BaseModel], error: ValidationError) -> list[FieldProblem]:
    """The fields that `error` speaks of, in words of the API."""
    found: dict[str, FieldProblem] = {}
    hidden = _is_hidden(model)
    for item in error.errors(include_url=False)[:_MOST_PROBLEMS]:
        location = item["loc"]
        if hidden:
            item["input"] = HIDDEN
        problem = _unknown_field(model, location) if item["type"] == "extra_forbidden" else _wrong_value(item)
        found.setdefault(problem.field, problem)
    return list(found.values())


def _is_hidden(model: type[BaseModel]) -> bool:
    return bool(model.model_config.get("hide_input_in_errors"))


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that `word` was probably meant to be, or None."""
    if len(word) > _MAX_WORD:
        return None
    matches = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return matches[0] if matches else None


def shown(value: object) -> str:
    """A value as a message repeats it: short, and without control characters."""
    if isinstance(value, dict | list):
        plain = "".join(_pieces(value, _SHOWN + 1))
    else:
        plain = value if isinstance(value, str) else _WORDS.get(repr(value)) or str(value)
    text = printable(plain[: _SHOWN + 1])  # each letter is shown as one or more
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def _pieces(value: object, room: int) -> Iterator[str]:
    """``str(value)`` piece by piece, at least its first `room` letters: a body may be large."""
    if not isinstance(value, dict | list):
        yield repr(value[:room] if isinstance(value, str) else value)
        return
    brackets, inner = ("{}", iter(value.items())) if isinstance(value, dict) else ("[]", iter(value))
    yield brackets[0]
    used = 1
    for number, item in enumerate(inner):
        parts = (", ",) if number else ()
        parts = (*parts, f"{item[0][:room]!r}: ") if isinstance(value, dict) else parts
        for part in itertools.chain(parts, _pieces(item[1] if isinstance(value, dict) else item, room - used)):
            yield part
            used += len(part)
            if used >= room:
                return
    yield brackets[1]


def quoted(text: str) -> str:
    """`shown` in quotes. Not `repr`, which would escape once more what is escaped already."""
    return f"'{shown(text)}'"


def printable(text: str) -> str:
    """Text that a terminal can show and UTF-8 can carry: what is neither is escaped."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


def _unknown_field(model: type[BaseModel], location: tuple[int | str, ...]) -> FieldProblem:
    word = str(location[-1])
    here = _model_at(model, location[:-1])
    names = sorted(here.model_fields)
    meant = nearest(word, names)
    told = here.other_words.get(word) if issubclass(here, Body) else None
    hint = told or (f"did you mean {meant!r}?" if meant else "")
    return FieldProblem(
        field=_path(location),
        message=f"unknown field {quoted(word)}" + (f": {hint}" if hint else ""),
        value=shown(word),
        possible=", ".join(names),
    )


def _wrong_value(item: ErrorDetails) -> FieldProblem:
    path, kind, value = _path(item["loc"]), item["type"], item["input"]
    if kind == "missing":
        return FieldProblem(field=path, message="missing", possible="a value")
    message = item["msg"].removeprefix("Value error, ")
    what, _, possible = message.partition("; possible: ")
    context = item.get("ctx", {})
    if kind in _POSSIBLE:
        what, possible = _POSSIBLE[kind][0], _POSSIBLE[kind][1].format(**context)
    elif not possible:
        what, possible = "not possible", (what[:1].lower() + what[1:]).removeprefix("input should be ")
    found = shown(value)
    quote = "'" if isinstance(value, str) else ""
    return FieldProblem(field=path, message=f"{quote}{found}{quote}: {what}", value=found, possible=possible)


_POSSIBLE: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "string_type": ("not text", "text"),
        "bool_type": ("neither true nor false", "true or false"),
        "int_type": ("not a whole number", "a whole number"),
        "dict_type": ("not an object", "an object: {{…}}"),
        "model_type": ("not an object", "an object: {{…}}"),
        "list_type": ("not a list", "a list: […]"),
        "greater_than_equal": ("too small", "{ge} or more"),
        "less_than_equal": ("too large", "at most {le}"),
        "string_too_short": ("too short", "{min_length} or more characters"),
        "string_too_long": ("too long", "at most {max_length} characters"),
        "too_long": ("too many", "at most {max_length}"),
        "literal_error": ("not one of them", "{expected}"),
        "recursion_depth_exceeded": ("nested too deeply", "a flatter object"),
        "enum": ("not one of them", "{expected}"),
    }
)
"""What is wrong and what is possible, in words of JSON instead of Python's, by kind of error."""

_WORDS: Final[Mapping[str, str]] = MappingProxyType({"None": "null", "True": "true", "False": "false"})


def _path(location: tuple[int | str, ...]) -> str:
    # Pydantic names the members of a union ("function-before…", "int") at the end of a location, and says of a key
    # that it is one: no parts of the path.
    parts = [part for part in location if part != "[key]" and not str(part).startswith("function-")]
    return ".".join(shown(part) for part in parts[:_PATH_PARTS]) + (".…" if len(parts) > _PATH_PARTS else "")


def _model_at(model: type[BaseModel], location: tuple[int | str, ...]) -> type[BaseModel]:
    here = model
    for part in location:
        field = here.model_fields.get(part) if isinstance(part, str) else None
        inner = _model_in(field.annotation) if field is not None else None
        if inner is not None:
            here = inner
    return here


def _model_in(annotation: object) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel) and get_origin(annotation) is None:
        return annotation
    if get_origin(annotation) in (list, dict, Union, types.UnionType, Annotated):
        for argument in get_args(annotation):
            inner = _model_in(argument)
            if inner is not None:
                return inner
    return None

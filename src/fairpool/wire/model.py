"""The two kinds of models: what is sent is strict about unknown fields, what is received tolerates newer servers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from math import isfinite
from types import MappingProxyType
from typing import Annotated, ClassVar, Final

from pydantic import (
    VERSION,
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    Strict,
    StringConstraints,
)

_WHEN_USED: Final = tuple(int(part) for part in VERSION.split(".")[:2]) >= (2, 14)
"""Whether a model's checks are worked out when it is first used, and not when its module is loaded. A command uses few
of them, and is done in three quarters of the time. Before 2.14 two threads that were the first could come to grief."""


class Body(BaseModel):
    """What a caller sends. An unknown field is refused: it is a typing error that would otherwise do nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=_WHEN_USED)

    other_words: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Names that people give to a field which is not the nearest by its letters, and what they are told."""


class View(BaseModel):
    """What a server answers. A field that this version does not know is left out, so that old clients go on working."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=_WHEN_USED)


def _one_line(text: str) -> str:
    odd = next((char for char in text if not char.isprintable()), None)
    if odd is not None:
        raise ValueError(f"holds the control character {odd!a}; possible: printable characters on one line")
    return text


Line = Annotated[str, StringConstraints(max_length=200), AfterValidator(_one_line)]
"""A short text that people see in tables and terminals: no control characters can hide in it."""

Key = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_one_line)]
"""An idempotency key: a Line that is not empty."""

Ref = Annotated[str, StringConstraints(max_length=200)]
"""What names something: by name, id or the beginning of one."""

Prose = Annotated[str, StringConstraints(max_length=1000), AfterValidator(_one_line)]
"""As Line, and longer: descriptions, paths."""

NUL: Final = "\0"
"""The one character that not every database keeps. Nobody types it; programs that fail may well report it."""

_UNKEPT: Final = re.compile("[\0\ud800-\udfff]")


def _kept(value: object) -> object:
    return _UNKEPT.sub("\ufffd", value) if isinstance(value, str) else value


Report = Annotated[str, StringConstraints(max_length=10_000), BeforeValidator(_kept)]
"""What a program says of how it went, on any number of lines. It must not be lost for what it holds: a character that
no database or no UTF-8 keeps (NUL, half a character) is told as U+FFFD."""

Labels = dict[Line, Line]
"""Free-form labels."""

MAX_SECONDS: Final = 10**9
"""Thirty years: any length of time beyond that is a mistake."""

MAX_PRIORITY: Final = 2**31 - 1


Whole = Annotated[int, Strict()]
"""A whole number, written as one: neither ``"5"`` nor ``true`` is."""

Count = Annotated[Whole, Field(ge=0, le=2**31 - 1)]
Seconds = Annotated[Whole, Field(ge=0, le=MAX_SECONDS)]
SomeSeconds = Annotated[Whole, Field(ge=1, le=MAX_SECONDS)]
Priority = Annotated[Whole, Field(ge=-MAX_PRIORITY, le=MAX_PRIORITY)]

Flag = Annotated[bool, Strict()]
"""True or false, written as one of them: ``"yes"`` and ``1`` are not."""

_MAX_DEPTH: Final = 50


def _plain(value: object, depth: int = 0) -> object:
    """`value` with floats for decimals, which are exact for amounts only."""
    if depth > _MAX_DEPTH:
        raise ValueError(f"nested too deeply; possible: at most {_MAX_DEPTH} levels")
    match value:
        case dict():
            return {key: _plain(part, depth + 1) for key, part in value.items()}
        case list():
            return [_plain(part, depth + 1) for part in value]
        case Decimal():
            number = float(value)
            if not isfinite(number):
                raise ValueError("holds a number that is too large; possible: numbers up to 1e308")
            return number
    return value


Object = Annotated[dict[str, JsonValue], BeforeValidator(_plain)]
"""Any JSON object, such as the configuration of a component."""

Anything = Annotated[JsonValue, BeforeValidator(_plain)]
"""Any JSON value."""

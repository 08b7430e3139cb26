"""The two kinds of models: what is sent is strict about unknown fields, what is received tolerates newer servers."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Strict, StringConstraints


class Body(BaseModel):
    """What a caller sends. An unknown field is refused: it is a typing error that would otherwise do nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class View(BaseModel):
    """What a server answers. A field that this version does not know is left out, so that old clients go on working."""

    model_config = ConfigDict(extra="ignore", frozen=True)


def _one_line(text: str) -> str:
    odd = next((char for char in text if not char.isprintable()), None)
    if odd is not None:
        raise ValueError(f"holds the control character {odd!a}; possible: printable characters on one line")
    return text


Line = Annotated[str, StringConstraints(max_length=200), AfterValidator(_one_line)]
"""A short text that people see in tables and terminals: no control characters can hide in it."""

Key = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_one_line)]
"""An idempotency key: a Line that is not empty."""

Prose = Annotated[str, StringConstraints(max_length=1000), AfterValidator(_one_line)]
"""As Line, and longer: descriptions, paths."""

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

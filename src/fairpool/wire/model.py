"""The two kinds of models: what is sent is strict about unknown fields, what is received tolerates newer servers."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints


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


Line = Annotated[str, AfterValidator(_one_line), StringConstraints(max_length=200)]
"""A short text that people see in tables and terminals: no control characters can hide in it."""

Prose = Annotated[str, AfterValidator(_one_line), StringConstraints(max_length=1000)]
"""As Line, and longer: descriptions, paths."""

Labels = dict[Line, Line]
"""Free-form labels."""

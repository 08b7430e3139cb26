"""The two kinds of models: what is sent is strict about unknown fields, what is received tolerates newer servers."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Body(BaseModel):
    """What a caller sends. An unknown field is refused: it is a typing error that would otherwise do nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class View(BaseModel):
    """What a server answers. A field that this version does not know is left out, so that old clients go on working."""

    model_config = ConfigDict(extra="ignore", frozen=True)

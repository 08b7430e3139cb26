"""Working out the models that calls are read and answered with, before anybody's first call has to.

A model's checks are worked out when it is first used, so that a command starts fast: a millisecond or two for each. A
server uses nearly all of them, so it does that by itself as soon as it takes calls, on a thread, where a call that
comes meanwhile waits for one model at most.
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel

from fairpool.wire.model import Body, View


def warm() -> None:
    """Work out every model that is loaded and is not worked out yet."""
    for kind in (Body, View):
        for model in _made_of(kind):
            model.model_rebuild()


def _made_of(kind: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """All models of that kind: those that are made of one come after it."""
    for model in kind.__subclasses__():
        yield model
        yield from _made_of(model)

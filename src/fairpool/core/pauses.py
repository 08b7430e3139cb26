"""Long work in small steps: it pauses after each, so that whoever runs it can see to something more urgent."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

Result = TypeVar("Result")

InSteps = Generator[None, None, Result]
"""Work that pauses, and what comes of it."""


def at_once(work: InSteps[Result]) -> Result:
    """Do all of it without a pause."""
    while True:
        try:
            next(work)
        except StopIteration as done:
            result: Result = done.value
            return result

"""Rows that nobody can have written: what a damaged page looks like to whoever reads a row of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from fairpool.app.store_errors import StoreCorrupt
from fairpool.core.errors import CoreError

Given = ParamSpec("Given")
Value = TypeVar("Value")


def readable(read: Callable[Given, Value]) -> Callable[Given, Value]:
    """Have what reads values from rows raise StoreCorrupt where a row holds what this program never wrote."""

    @wraps(read)
    def reading(*args: Given.args, **kwargs: Given.kwargs) -> Value:
        try:
            return read(*args, **kwargs)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError, CoreError) as error:
            raise StoreCorrupt(
                f"the database holds what Fairpool never wrote ({type(error).__name__}: {error}): it is damaged, or "
                "was changed by another program; 'fairpool db check' reads all of it, and 'fairpool db restore' fills "
                "a new one from a backup"
            ) from error

    return reading

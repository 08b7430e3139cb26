"""What only an installation with the server extra can do, loaded when it is asked for."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import click


def load(module: str, name: str) -> Callable[..., Any]:
    """A function of ``fairpool.admin``, which needs the server extra. Raises UsageError where that is missing."""
    try:
        found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        raise click.UsageError(
            f"this needs the server extra ({error.name} is missing): pip install 'fairpool[server]'"
        ) from None
    return found

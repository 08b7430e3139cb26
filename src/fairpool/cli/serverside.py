"""What only an installation with the server extra can do, loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


def load(module: str, name: str) -> Callable[..., Any]:
    """A function of ``fairpool.admin``, which needs the server extra. Raises UsageError where that is missing."""
    try:
        if module == "fairpool.admin.policy_test":
            from fairpool.admin import policy_test as found
        elif module == "fairpool.admin.database":
            from fairpool.admin import database as found  # type: ignore[no-redef]
        else:
            from fairpool.admin import doctor as found  # type: ignore[no-redef]
    except ModuleNotFoundError as error:
        raise click.UsageError(
            f"this needs the server extra ({error.name} is missing): pip install 'fairpool[server]'"
        ) from None
    function: Callable[..., Any] = getattr(found, name)
    return function

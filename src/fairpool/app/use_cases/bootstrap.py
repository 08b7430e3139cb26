"""The first admin of an installation for teams, before whom nobody could make anybody anything."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Final

from fairpool.app.authz import Role
from fairpool.app.records import Kind
from fairpool.app.transaction import Transaction
from fairpool.app.use_cases import tokens, users
from fairpool.app.use_cases.people import subject_of
from fairpool.app.use_cases.tokens import DAY_S, Issued

FIRST_ADMIN: Final = "admin"
LIFE_S: Final = 7 * DAY_S
"""Long enough to make everybody else; the installation's own token remains for whoever may read the server's files."""


def first_admin(tx: Transaction, *, draw: Callable[[int], bytes] = secrets.token_bytes) -> Callable[[], Issued | None]:
    """A user ``admin`` with a token, where there are no users yet; else None."""
    if tx.memory.all(Kind.USER):
        return lambda: None
    users.create(tx, FIRST_ADMIN, role=Role.ADMIN, description="made at the first start")
    return tokens.create(tx, subject_of(Kind.USER, FIRST_ADMIN), "bootstrap", life_s=LIFE_S, draw=draw)

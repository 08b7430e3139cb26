"""Idempotency keys (S36): the same key with the same body gives its sender the same object again.

Each caller has keys of their own: nobody finds out which ones others use, or takes one from them beforehand.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import fields

from fairpool.app.authz import INSTALLATION
from fairpool.app.errors import KeyReused
from fairpool.app.records import Kind
from fairpool.app.transaction import Transaction

_LETTERS = 32  # of the digest that is kept: 128 bits


def fingerprint(body: object) -> str:
    """What tells whether another body came with the same key. The order in which labels were written does not count."""
    told = [
        (name, sorted(value.items()) if isinstance(value, Mapping) else value)
        for name, value in ((each.name, getattr(body, each.name)) for each in fields(body))  # type: ignore[arg-type]
    ]
    return hashlib.sha256(repr(told).encode()).hexdigest()[:_LETTERS]


def digest(body: bytes) -> str:
    """The same of a body as it was sent."""
    return hashlib.sha256(body).hexdigest()[:_LETTERS]


def used_for(tx: Transaction, kind: Kind, key: str, body: object) -> str | None:
    """The id of what this key made before; None for a new one. Raises KeyReused where the body was another."""
    used = tx.key(kind, of_caller(tx, key))
    if used is None:
        return None
    if used.fingerprint != fingerprint(body):
        raise KeyReused(key)
    return used.object


def use_for(tx: Transaction, kind: Kind, key: str, object_id: str, body: object) -> None:
    """From now on this key of the caller's means that object."""
    tx.use_key(kind, of_caller(tx, key), object_id, fingerprint(body))


def of_caller(tx: Transaction, key: str) -> str:
    """The key as it is kept of whoever acts."""
    return kept(tx.actor, key)


def kept(actor: str, key: str) -> str:
    """The key as it is kept. Those of the installation's own token stand as they were sent, as all once did."""
    return key if actor == INSTALLATION else f"{actor} {key}"

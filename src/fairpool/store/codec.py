"""Values of the core as compact JSON text, and back. Pure.

The same few demands, subject sets and placements come again and again: what was read or written last is remembered,
so that a million queued requests share them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from itertools import groupby
from typing import Any

from fairpool.app.records import Document
from fairpool.core.amounts import Amounts
from fairpool.core.ids import Instant, PolicyId, PoolId, RequestId
from fairpool.core.plan import Claim
from fairpool.core.policies import Subject, SubjectKind
from fairpool.core.reasons import Code, Reason
from fairpool.core.requests import Demand, PartPlacement

_REMEMBERED = 4096

_encode = json.JSONEncoder(separators=(",", ":"), sort_keys=True).encode


def dump(value: object) -> str:
    """Compact JSON, keys sorted, so that equal values are equal texts."""
    return _encode(value)


def dump_document(document: Document | Mapping[str, str]) -> str | None:
    """A document as text; None for an empty one."""
    return _encode(document) if document else None


def load_document(text: str | None) -> dict[str, Any]:
    """A document from its text."""
    return json.loads(text) if text else {}


def dump_amounts(amounts: Amounts) -> str:
    """A vector as text: ``{"gpu":1000}``."""
    return _encode(dict(amounts))


def load_amounts(text: str) -> Amounts:
    """A vector from its text."""
    return tuple(sorted(json.loads(text).items()))


@lru_cache(_REMEMBERED)
def dump_demand(demand: Demand) -> str:
    """A demand as text: runs of equal parts, ``[[2,{"gpu":8000}],[1,{"gpu":4000}]]``."""
    return _encode([[len(list(same)), dict(part)] for part, same in groupby(demand.parts)])


@lru_cache(_REMEMBERED)
def load_demand(text: str) -> Demand:
    """A demand from its text."""
    parts: list[Amounts] = []
    for count, part in json.loads(text):
        parts += [tuple(sorted(part.items()))] * count
    return Demand(tuple(parts))


@lru_cache(_REMEMBERED)
def dump_subjects(subjects: tuple[Subject, ...]) -> str:
    """Subjects as text: ``component:k8s team:red`` (names hold no spaces)."""
    return " ".join(str(subject) for subject in subjects)


@lru_cache(_REMEMBERED)
def load_subjects(text: str) -> tuple[Subject, ...]:
    """Subjects from their text."""
    pairs = (word.split(":", 1) for word in text.split())
    return tuple(Subject(SubjectKind(kind), name) for kind, name in pairs)


@lru_cache(_REMEMBERED)
def dump_parts(parts: tuple[PartPlacement, ...]) -> str:
    """Placements as text: ``[["n1",[[0,1000]]]]``."""
    return _encode([[part.node, part.devices] for part in parts])


@lru_cache(_REMEMBERED)
def load_parts(text: str) -> tuple[PartPlacement, ...]:
    """Placements from their text."""
    return tuple(
        PartPlacement(node, tuple((device, share) for device, share in devices)) for node, devices in json.loads(text)
    )


def dump_claim(claim: Claim) -> str:
    """A claim as text, without its request."""
    return _encode([claim.pool, claim.policy, dump_parts(claim.parts)])


def load_claim(request: RequestId, text: str) -> Claim:
    """A claim from its text."""
    pool, policy, parts = json.loads(text)
    return Claim(request=request, pool=pool, policy=policy, parts=load_parts(parts))


_REASON_FIELDS = (
    "pool",
    "policy",
    "key",
    "asked",
    "possible",
    "free",
    "used",
    "reserved",
    "limit",
    "blocker",
    "degraded",
    "name",
    "opens_at",
)


def dump_reasons(reasons: tuple[Reason, ...]) -> str | None:
    """Reasons as text: only what each says."""
    if not reasons:
        return None
    said = ((reason, ((name, getattr(reason, name)) for name in _REASON_FIELDS)) for reason in reasons)
    return _encode(
        [
            {"code": reason.code.value} | {name: value for name, value in fields if _says(value)}
            for reason, fields in said
        ]
    )


def _says(value: object) -> bool:
    return not (value is None or value is False or value == "")  # 0 is a number that says something


def load_reasons(text: str | None) -> tuple[Reason, ...]:
    """Reasons from their text."""
    return tuple(_reason(fields) for fields in json.loads(text)) if text else ()


def _reason(fields: dict[str, Any]) -> Reason:
    return Reason(
        code=Code(fields["code"]),
        pool=None if fields.get("pool") is None else PoolId(fields["pool"]),
        policy=None if fields.get("policy") is None else PolicyId(fields["policy"]),
        key=fields.get("key", ""),
        asked=fields.get("asked"),
        possible=fields.get("possible"),
        free=fields.get("free"),
        used=fields.get("used"),
        reserved=fields.get("reserved"),
        limit=fields.get("limit"),
        blocker=None if fields.get("blocker") is None else RequestId(fields["blocker"]),
        degraded=fields.get("degraded", False),
        name=fields.get("name", ""),
        opens_at=None if fields.get("opens_at") is None else Instant(fields["opens_at"]),
    )

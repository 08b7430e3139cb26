"""Webhooks: receivers that are told what becomes of requests. Declared here, told by the server that leads.

The secret that signs what they are told is kept sealed, and shown once: when it is drawn.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, Literal

from fairpool.app.memory import Memory
from fairpool.app.ports import Sealer
from fairpool.app.records import Declared, Document, Kind, WebhookCursor, cursors_of
from fairpool.app.transaction import Transaction
from fairpool.app.use_cases.declaring import changed, check_free, check_version, created
from fairpool.app.use_cases.people import check_team, described, note_of
from fairpool.core.errors import InvalidInput
from fairpool.core.ids import check_name
from fairpool.core.requests import Status

WebhookRecord = Declared[Document]
Answer = Callable[[], WebhookRecord]

WAITING: Final = "request.waiting"
"""The event that no change makes: a request waits longer than the webhook says."""

EVENTS: Final[Mapping[str, Status]] = MappingProxyType(
    {
        "request.queued": Status.QUEUED,
        "request.granted": Status.ALLOCATED,
        "request.preempting": Status.PREEMPTING,
        "request.preempted": Status.PREEMPTED,
        "request.released": Status.RELEASED,
        "request.cancelled": Status.CANCELLED,
        "request.expired": Status.EXPIRED,
        "request.rejected": Status.REJECTED,
    }
)
"""What a webhook can be told besides, and the status that a request then has."""

MAX_WEBHOOKS: Final = 100
"""In a workspace: each is told by a task and over connections of its own."""

_SECRET_BYTES: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookChange:
    """What is said of a webhook; None leaves as it is. waiting_longer_than_s: 0 for none. pool, team: "" for any."""

    url: str | None = None
    events: tuple[str, ...] | None = None
    waiting_longer_than_s: int | None = None
    pool: str | None = None
    team: str | None = None
    enabled: bool | None = None
    description: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """A webhook as whoever delivers needs it. secret: sealed."""

    id: str
    name: str
    url: str = field(repr=False)
    events: frozenset[str]
    waiting_longer_than_s: int
    pool: str
    team: str
    enabled: bool
    secret: str = field(repr=False)


def webhook_of(record: WebhookRecord) -> Webhook:
    """The webhook that a document describes."""
    spec = record.spec
    events, waiting = spec.get("events"), spec.get("waiting_longer_than_s")
    return Webhook(
        id=record.id,
        name=record.name,
        url=str(spec.get("url", "")),
        events=frozenset(str(event) for event in events) if isinstance(events, list) else frozenset(),
        waiting_longer_than_s=waiting if isinstance(waiting, int) else 0,
        pool=str(spec.get("pool", "")),
        team=str(spec.get("team", "")),
        enabled=bool(spec.get("enabled", True)),
        secret=str(spec.get("secret", "")),
    )


def new_secret() -> str:
    """A secret in the form of Standard Webhooks."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode("ascii")


def create(
    tx: Transaction, name: str, change: WebhookChange, *, secret: str, sealer: Sealer, dry_run: bool = False
) -> Answer:
    """A new webhook; it is told what happens from now on. Raises Exists, InvalidInput, NoVaultKey."""
    check_free(tx, Kind.WEBHOOK, check_name(name, what="webhook name"))
    if len(tx.memory.all(Kind.WEBHOOK)) >= MAX_WEBHOOKS:
        raise InvalidInput(f"there are {MAX_WEBHOOKS} webhooks already", field="name", value=name)
    spec = _checked(tx.memory, {**_said(change), "secret": sealer.seal(secret)}, {})
    note = note_of(change.description or "")
    if dry_run:
        trial: WebhookRecord = Declared(
            kind=Kind.WEBHOOK, id="", name=name, spec=spec, created_at=tx.now, updated_at=tx.now, note=note
        )
        return lambda: trial
    webhook_id = tx.ids.new(Kind.WEBHOOK)
    record = created(tx, Kind.WEBHOOK, webhook_id, name, spec, note=note, shown=shown(spec))
    for cursor in cursors_of(webhook_id):
        tx.put_cursor(WebhookCursor(name=cursor, seq=tx.memory.history_seq))
    return lambda: record


def update(
    tx: Transaction, ref: str, change: WebhookChange, *, version: int | None = None, dry_run: bool = False
) -> Answer:
    """A webhook changes. Enabling one that was given up begins again where it stopped. Raises InvalidInput."""
    old = tx.memory.document(Kind.WEBHOOK, ref)
    check_version(old, version)
    spec = _checked(tx.memory, {**old.spec, **_said(change)}, old.spec)
    note = described(old.note, change.description)
    if dry_run:
        return lambda: replace(old, spec=spec, note=note)
    record = changed(tx, old, spec, note=note, before=shown(old.spec), after=shown(spec))
    if change.enabled or change.url is not None:
        known = tx.reader.cursors.all()
        for name in cursors_of(old.id):
            if name in known:
                tx.put_cursor(WebhookCursor(name=name, seq=known[name].seq))
    return lambda: record


def draw_secret(tx: Transaction, ref: str, *, secret: str, sealer: Sealer, version: int | None = None) -> Answer:
    """A webhook signs with another secret from now on. Raises NoVaultKey."""
    old = tx.memory.document(Kind.WEBHOOK, ref)
    check_version(old, version)
    spec: Document = {**old.spec, "secret": sealer.seal(secret)}
    record = replace(old, spec=spec, version=old.version + 1, updated_at=tx.now)
    tx.put(record)
    tx.note(Kind.WEBHOOK, old.id, "secret drawn anew", name=old.name)
    return lambda: record


def delete(tx: Transaction, ref: str, *, version: int | None = None, dry_run: bool = False) -> Answer:
    """A webhook goes; it is told nothing more."""
    old = tx.memory.document(Kind.WEBHOOK, ref)
    check_version(old, version)
    if not dry_run:
        tx.drop(Kind.WEBHOOK, old.id)
        tx.note(Kind.WEBHOOK, old.id, "deleted", name=old.name, before=shown(old.spec))
    return lambda: old


def follow(tx: Transaction, field: Literal["pool", "team"], name: str, new: str) -> None:
    """Webhooks that are told only of a pool or a team follow its new name."""
    for declared in tx.memory.all(Kind.WEBHOOK):
        old = tx.memory.document(Kind.WEBHOOK, declared.id)
        if old.spec.get(field) == name:
            changed(tx, old, {**old.spec, field: new}, before={field: name}, after={field: new})


def go_with_team(tx: Transaction, name: str) -> None:
    """Webhooks that are told only of a team go with it: its name may be another's later, who is none of theirs."""
    for declared in tx.memory.all(Kind.WEBHOOK):
        if tx.memory.document(Kind.WEBHOOK, declared.id).spec.get("team") == name:
            delete(tx, declared.id)


def is_pool_missing(memory: Memory, webhook: Webhook) -> bool:
    """Whether the pool that the webhook is told of was deleted. It stays: what ran or waited there is still to be told,
    and a pool that is made again by that name is the same to whoever listens."""
    return bool(webhook.pool) and memory.named(Kind.POOL, webhook.pool) is None


def told(tx: Transaction, cursors: Iterable[WebhookCursor]) -> Callable[[], None]:
    """Receivers have been told further, or could not be; those of webhooks that are gone are passed over."""
    for cursor in cursors:
        webhook = cursor.name.partition(":")[0]
        if tx.memory.get(Kind.WEBHOOK, webhook) is not None:
            tx.put_cursor(cursor)
    return lambda: None


def check_can_be_opened(tx: Transaction, sealer: Sealer) -> None:
    """Raise CannotOpen where a webhook's secret cannot be sealed anew."""
    for declared in tx.memory.all(Kind.WEBHOOK):
        sealer.open(str(tx.memory.document(Kind.WEBHOOK, declared.id).spec["secret"]))


def reseal(tx: Transaction, sealer: Sealer) -> int:
    """Seal every webhook's secret with the newest key; how many. Raises NoVaultKey, CannotOpen."""
    records = [tx.memory.document(Kind.WEBHOOK, declared.id) for declared in tx.memory.all(Kind.WEBHOOK)]
    anew = [(old, {**old.spec, "secret": sealer.seal_anew(str(old.spec["secret"]))}) for old in records]
    for old, spec in anew:  # all of them could be opened
        tx.put(replace(old, spec=spec, version=old.version + 1, updated_at=tx.now))
        tx.note(Kind.WEBHOOK, old.id, "sealed with the newest key", name=old.name)
    return len(anew)


def shown(spec: Document) -> Document:
    """What the history may show: no secret, and of the address no more than whose it is, since paths can be secrets."""
    scheme, _, rest = str(spec.get("url", "")).partition("://")
    host = rest.partition("/")[0].partition("?")[0]
    return {**{key: value for key, value in spec.items() if key != "secret"}, "url": f"{scheme}://{host}/…"}


def _said(change: WebhookChange) -> Document:
    given: Document = {
        "url": change.url,
        "events": None if change.events is None else sorted(set(change.events)),
        "waiting_longer_than_s": change.waiting_longer_than_s,
        "pool": change.pool,
        "team": change.team,
        "enabled": change.enabled,
    }
    return {name: value for name, value in given.items() if value is not None}


def _checked(memory: Memory, spec: Document, old: Document) -> Document:
    events, waiting_s = spec.get("events"), spec.get("waiting_longer_than_s") or 0
    possible = ", ".join((*EVENTS, WAITING))
    if not isinstance(events, list) or not events:
        raise InvalidInput("a webhook is told at least one event", field="events", possible=possible)
    for event in events:
        if event not in EVENTS and event != WAITING:
            raise InvalidInput("there is no such event", field="events", value=str(event), possible=possible)
    if (WAITING in events) != bool(waiting_s):
        raise InvalidInput(
            f"{WAITING} and waiting_longer_than_s belong together",
            field="waiting_longer_than_s",
            value=str(waiting_s),
            possible=f"seconds, 1 or more, with the event {WAITING}; 0 without it",
        )
    pool, team = str(spec.get("pool") or ""), str(spec.get("team") or "")
    if team and team != old.get("team"):
        check_team(memory, team, field="team")
    if pool and pool != old.get("pool"):  # one that was deleted meanwhile may stay
        pool = memory.pool(pool).name
    named: Document = {"pool": pool}
    return {"enabled": True, "team": "", "waiting_longer_than_s": 0, **spec, **named}

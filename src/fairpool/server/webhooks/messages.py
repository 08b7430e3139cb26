"""What receivers are told, and how it is signed (Standard Webhooks). Pure: the same entry gives the same message."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from fairpool.app.records import HistoryEntry, RequestRecord
from fairpool.app.use_cases.webhooks import EVENTS, WAITING, Webhook
from fairpool.core.ids import SECOND, Instant
from fairpool.core.policies import SubjectKind
from fairpool.server.outgoing import maybe_moment, moment, vector
from fairpool.wire.webhooks import RequestNews, WebhookMessage

TEST: Final = "webhook.test"
"""The event of ``fairpool webhook test``."""

_EVENT_OF: Final[Mapping[str, str]] = {status.value: event for event, status in EVENTS.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A call to a receiver. id: stays the same through all tries, so that a receiver knows what it has taken."""

    id: str
    body: bytes = field(repr=False)


def event_of(entry: HistoryEntry) -> str:
    """The event that a change of a request is; "" for none."""
    return _EVENT_OF.get(entry.change.what, "")


def concerns(webhook: Webhook, record: RequestRecord, pools_of_profile: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether the webhook wants to hear of this request.

    One that was never granted concerns the pools that it, or its profile, asks for; all where it names none.
    """
    team = f"{SubjectKind.TEAM.value}:{webhook.team}"
    if webhook.team and team not in map(str, record.request.subjects):
        return False
    if not webhook.pool:
        return True
    if record.state.grant is not None:
        return record.state.grant.pool_name == webhook.pool
    asked = (record.request.pool,) if record.request.pool else pools_of_profile.get(record.request.profile, ())
    return not asked or webhook.pool in asked


def message_of(
    webhook: Webhook, entry: HistoryEntry, record: RequestRecord, *, event: str, workspace: str, at: Instant
) -> Message:
    """What the receiver is told. at: when it happened; of somebody who waits, when the time was over."""
    change, grant = entry.change, record.state.grant
    granted_at = grant.granted_at if grant is not None else None
    waited_until = at if granted_at is None else granted_at
    news = RequestNews(
        workspace=workspace,
        event=entry.seq,
        request=record.id,
        name=record.submission.name,
        status=change.what,
        cause=f"has waited longer than {webhook.waiting_longer_than_s} s" if event == WAITING else change.cause,
        actor=change.actor,
        run=record.submission.run or None,
        subjects=[str(subject) for subject in record.request.subjects],
        demand=vector(record.request.demand.total),
        pool=(grant.pool_name if grant is not None else record.request.pool) or None,
        policy=(grant.subject if grant is not None else "") or None,
        profile=record.request.profile or None,
        submitted_at=moment(record.submission.created_at),
        granted_at=maybe_moment(granted_at),
        waited_s=max(0, waited_until - record.submission.created_at) / SECOND,
    )
    told = WebhookMessage(type=event, timestamp=moment(at), data=news)
    suffix = "-waiting" if event == WAITING else ""
    return Message(id=f"msg_{webhook.id}_{entry.seq}{suffix}", body=told.model_dump_json(exclude_none=True).encode())


def test_message(message_id: str, at: Instant) -> Message:
    """What a receiver is told to try it out."""
    told = WebhookMessage(type=TEST, timestamp=moment(at))
    return Message(id=message_id, body=told.model_dump_json(exclude_none=True).encode())


def signature(secret: str, message: Message, sent_at_s: int) -> str:
    """The ``webhook-signature`` of a message. secret: ``whsec_…``."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{message.id}.{sent_at_s}.".encode() + message.body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode("ascii")

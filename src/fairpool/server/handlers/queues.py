"""Queues."""

from __future__ import annotations

from starlette.responses import Response

from fairpool.app.authz import Reach, Right
from fairpool.app.memory import Memory
from fairpool.app.records import RequestQuery
from fairpool.app.sentences import names_of
from fairpool.app.use_cases import queues
from fairpool.app.use_cases.profiles import defaults_in
from fairpool.app.use_cases.queues import Line, Place, Queue
from fairpool.core.ids import Instant, RequestId
from fairpool.core.policies import Subject
from fairpool.core.requests import Status
from fairpool.server import incoming, lookups
from fairpool.server.calls import Call
from fairpool.server.deciding import asked
from fairpool.server.endpoints import Endpoint, present
from fairpool.server.explaining import check_view
from fairpool.server.handlers.profiles import defaults_view
from fairpool.server.outgoing import maybe_moment, moment, vector
from fairpool.server.presenting import reason_view
from fairpool.wire.pages import Page
from fairpool.wire.queues import LineView, QueueDescription, QueuePoolView, QueueView

MAX_LINES = 20
"""Requests whose place is told: as many as a person reads. Each costs a look at who stands beside it."""


def _view(memory: Memory, queue: Queue) -> QueueView:
    return QueueView(
        name=queue.name,
        subject=str(queue.subject),
        profile=queue.profile.name,
        demand=vector(queue.profile.spec.demand),
        defaults=defaults_view(defaults_in(queue.profile.note)),
        pools=[_pool(memory, place) for place in queue.places],
        pending=queue.count.pending,
        running=queue.count.running,
        waiting_since=maybe_moment(queue.count.oldest),
        members=list(queue.members),
    )


def _pool(memory: Memory, place: Place) -> QueuePoolView:
    policy = place.policy
    return QueuePoolView(
        pool=place.pool,
        policy=policy.id,
        priority=policy.priority,
        reserved=vector(policy.reserved),
        limit=vector(policy.limit),
        used=vector(place.used),
        dedicated=policy.dedicated,
        components=list(place.components),
        reason=None if place.never is None else reason_view(place.never, names_of(memory)),
    )


def _line(line: Line) -> LineView:
    record = line.record
    return LineView(
        request=record.id,
        name=record.submission.name,
        queued_at=moment(record.request.queued_at),
        positions=dict(line.positions),
    )


async def _list(call: Call) -> Response:
    reach, profile, text = call.reach, call.text("profile"), call.text("subject")
    subject = None if text is None else incoming.at("subject", Subject.parse, text)

    def ask(memory: Memory, now: Instant) -> Page[QueueView]:
        found = queues.all_for(memory, reach)
        found = [queue for queue in found if profile is None or profile in (queue.profile.name, queue.profile.id)]
        found = [queue for queue in found if subject is None or queue.subject == subject]
        page = lookups.page_of(found, call)
        return Page[QueueView](
            items=[_view(memory, queue) for queue in page.items], next_cursor=lookups.next_cursor(page)
        )

    return present(await asked(call, ask))


async def _get(call: Call) -> Response:
    reach, owner, profile = call.reach, call.path["owner"], call.path["profile"]
    subject = incoming.at("owner", queues.owner_of, owner)
    query = RequestQuery(statuses=frozenset({Status.QUEUED}), subject=str(_whose(reach, subject)), profile=profile)
    page = await lookups.reading(call, lambda reader: reader.requests.page(query, limit=MAX_LINES, oldest_first=True))
    theirs = [record.id for record in page.items if subject in record.request.subjects]

    def ask(memory: Memory, now: Instant) -> QueueDescription:
        return _description(memory, now, queues.find(memory, reach, owner, profile), theirs, call.reach)

    return present(await asked(call, ask))


def _whose(reach: Reach, subject: Subject) -> Subject:
    """Whose requests are shown with their places: the caller's own; to who runs things, everybody's in the queue."""
    own = reach.principal.subject
    return subject if own is None or reach.right is Right.ALL else own


def _description(
    memory: Memory, now: Instant, queue: Queue, requests: list[RequestId], reach: Reach
) -> QueueDescription:
    following = queues.next_in(memory, now, queue)
    checked = None if following is None else check_view(following, reach)
    return QueueDescription(
        **_view(memory, queue).model_dump(),
        next=None if checked is None else checked.verdict,
        summary="" if checked is None else checked.explanation.summary,
        requests=[_line(line) for line in queues.lines(memory, requests)],
    )


ENDPOINTS = {
    "queue_list": Endpoint(handler=_list, summary="List the queues that the caller sees.", answer=Page[QueueView]),
    "queue_get": Endpoint(
        handler=_get,
        summary="A queue, what would become of its next request, and where the caller's own stand.",
        answer=QueueDescription,
    ),
}

"""Requests: submit, cancel, release, renew, look at."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fairpool.app.authz import EVERYTHING, OWNER, Principal, Reach
from fairpool.app.errors import Ambiguous, AppError, Conflict, NotFound, QueueFull
from fairpool.app.forecaster import Foreseen
from fairpool.app.leases import DEFAULT_LEASE_S
from fairpool.app.memory import Memory
from fairpool.app.ports import Reader
from fairpool.app.records import Document, Kind, Lease, RequestQuery, RequestRecord, State, Submission
from fairpool.app.rights import right_of
from fairpool.app.sentences import spans_of
from fairpool.app.transaction import Transaction
from fairpool.app.use_cases.asking import made_as
from fairpool.app.use_cases.components import LOCAL, check_component
from fairpool.app.use_cases.demands import with_step_slot
from fairpool.app.use_cases.keys import use_for, used_for
from fairpool.app.use_cases.profiles import defaults_in
from fairpool.core import events as ev
from fairpool.core import explain as core_explain
from fairpool.core.errors import CoreError, IllegalTransition
from fairpool.core.ids import SECOND, Instant, RequestId
from fairpool.core.policies import Subject, SubjectKind
from fairpool.core.requests import Demand, Request, Status

Answer = Callable[[], RequestRecord]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What is asked for, as it arrived.

    demand: None where the profile says it, `node_count` times. pool, profile: by name, id or prefix. subjects: as whom
    (S13), besides who asks; the local orchestrator where nobody is named. team: as which of the asker's teams.
    preemptible: None where nothing is said: as the profile has it, else true (S4). retry_of: the preempted request that
    this one repeats (S24).
    """

    demand: Demand | None
    node_count: int = 1
    subjects: tuple[Subject, ...] = ()
    team: str = ""
    pool: str = ""
    profile: str = ""
    preemptible: bool | None = None
    priority: int = 0
    max_runtime_s: int | None = None
    wait_timeout_s: int | None = None
    lease_s: int = DEFAULT_LEASE_S
    retry_of: str = ""
    name: str = ""
    run: str = ""
    step: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    idempotency_key: str = ""
    details: Document = field(default_factory=dict)


def submit(tx: Transaction, ask: Ask, *, caller: Principal = OWNER, most_queued: int = 0) -> Answer:
    """A request joins the queue; the answer tells what became of it in the same round.

    most_queued: how many a caller may have waiting, but for the installation's own token; 0 for any number.
    Raises NotFound (pool, profile, component, retried request), KeyReused, QueueFull, Conflict, InvalidInput,
    NotAllowed.
    """
    if ask.idempotency_key:
        made = used_for(tx, Kind.REQUEST, ask.idempotency_key, ask)
        if made is not None:
            return lambda: get(tx.memory, tx.reader, made)
    queued = tx.memory.queued_by.get(tx.actor, 0)
    if most_queued and caller.subject is not None and queued >= most_queued:
        raise QueueFull(tx.actor, queued=queued, most=most_queued)
    given, ask = ask, with_defaults(tx.memory, ask)
    request = build(tx.memory, tx.reader, ask, RequestId(tx.ids.new(Kind.REQUEST)), tx.now, caller)
    tx.apply(ev.Submitted(request=request))
    if ask.idempotency_key:
        use_for(tx, Kind.REQUEST, ask.idempotency_key, request.id, given)
    tx.insert(
        RequestRecord(
            request=request,
            submission=Submission(
                created_at=tx.now,
                created_by=tx.actor,
                name=ask.name,
                run=ask.run,
                step=ask.step,
                retry_of=ask.retry_of,
                idempotency_key=ask.idempotency_key,
                labels=ask.labels,
                details=ask.details,
            ),
            state=State(status=Status.QUEUED),
            lease=Lease(until=Instant(tx.now + ask.lease_s * SECOND), length_s=ask.lease_s),
        )
    )
    return lambda: _known(tx.memory, request.id)


def submit_many(
    tx: Transaction,
    asks: Sequence[Ask | AppError | CoreError],
    *,
    caller: Principal = OWNER,
    most_queued: int = 0,
) -> Callable[[], list[RequestRecord | AppError | CoreError]]:
    """Many at once; each succeeds or fails for itself. Errors among `asks` are those found while reading them."""
    answers: list[Answer | AppError | CoreError] = []
    for ask in asks:
        if isinstance(ask, Ask):
            try:
                answers.append(submit(tx, ask, caller=caller, most_queued=most_queued))
            except (AppError, CoreError) as error:
                answers.append(error)
        else:
            answers.append(ask)
    return lambda: [answer if isinstance(answer, AppError | CoreError) else answer() for answer in answers]


def with_defaults(memory: Memory, ask: Ask) -> Ask:
    """What is asked for, with what the profile that it names says where it is silent itself. Raises NotFound."""
    if not ask.profile:
        return ask
    profile = memory.profile(ask.profile)
    defaults = defaults_in(profile.note)
    return replace(
        ask,
        demand=ask.demand if ask.demand is not None else Demand.of(profile.spec.demand, ask.node_count),
        preemptible=defaults.preemptible if ask.preemptible is None else ask.preemptible,
        max_runtime_s=defaults.max_runtime_s if ask.max_runtime_s is None else ask.max_runtime_s,
        labels={**defaults.labels, **ask.labels},
    )


def build(
    memory: Memory, reader: Reader, ask: Ask, request: RequestId, now: Instant, caller: Principal = OWNER
) -> Request:
    """The core's request: names resolved, the step slot added (S1), the place of a retry kept (S24)."""
    profile = memory.profile(ask.profile) if ask.profile else None
    pool = memory.pool(ask.pool) if ask.pool else None
    subjects = made_as(memory, caller, ask.subjects or (Subject(SubjectKind.COMPONENT, LOCAL),), ask.team)
    for subject in subjects:
        check_component(memory, subject)
    assert ask.demand is not None, "said, or taken from the profile, whose absence the reading of the body refuses"
    queued_at = _place_of_retried(memory, reader, ask, subjects, caller) if ask.retry_of else memory.next_arrival(now)
    return Request(
        id=request,
        subjects=subjects,
        demand=with_step_slot(ask.demand),
        queued_at=queued_at,
        preemptible=ask.preemptible is not False,
        priority=ask.priority,
        profile=profile.name if profile is not None else "",
        pool=pool.name if pool is not None else "",
        max_runtime_s=ask.max_runtime_s,
        wait_timeout_s=reckoned_wait_timeout_s(ask.wait_timeout_s, queued_at, now),
    )


def reckoned_wait_timeout_s(own: int | None, queued_at: Instant, now: Instant) -> int | None:
    """How long a request that arrives now may wait in the core's reckoning, which for a retry begins when the first
    attempt was queued. own: what it is willing to wait from its own arrival."""
    return None if own is None else own + _since_s(queued_at, now)


def _since_s(queued_at: Instant, now: Instant) -> int:
    """By how much longer a retry may wait in the core's reckoning."""
    return -((queued_at - now) // SECOND)


def own_wait_timeout_s(record: RequestRecord) -> int | None:
    """How long the request is willing to wait, from its own arrival."""
    timeout_s = record.request.wait_timeout_s
    return None if timeout_s is None else timeout_s - _since_s(record.request.queued_at, record.submission.created_at)


def _place_of_retried(
    memory: Memory, reader: Reader, ask: Ask, subjects: tuple[Subject, ...], caller: Principal
) -> Instant:
    old, reach = (
        get(memory, reader, ask.retry_of),
        Reach(principal=caller, right=right_of("request_create", caller.role)),
    )
    if not is_within(old, reach):
        raise NotFound("request", ask.retry_of)
    if old.submission.created_by == caller.actor and caller.subject is not None:
        # Its maker may have joined or left teams meanwhile; what it runs on stays.
        same = _components(old.request.subjects) == _components(subjects)
    else:
        same = old.request.subjects == subjects
    if old.status is not Status.PREEMPTED:
        raise Conflict(f"request {old.id} is {old.status}: only a preempted one can be repeated with its place kept")
    if not same:
        raise Conflict(f"request {old.id} was made as {', '.join(map(str, old.request.subjects))}: a retry is, too")
    taken = memory.retries.get(old.id)
    if taken is None:
        earlier = reader.requests.page(RequestQuery(retry_of=old.id), limit=1).items
        taken = earlier[0].id if earlier else None
    if taken is not None:
        raise Conflict(f"request {old.id} was repeated already, as {taken}")
    return old.request.queued_at


def _components(subjects: tuple[Subject, ...]) -> tuple[Subject, ...]:
    return tuple(subject for subject in subjects if subject.kind is SubjectKind.COMPONENT)


def cancel(tx: Transaction, ref: str, *, reason: str = "", reach: Reach = EVERYTHING) -> Answer:
    """A request is withdrawn, or what it holds is let go of. Twice is the same as once. Raises NotAllowed."""
    return _finish(tx, ref, Status.CANCELLED, reason or "cancelled", reach)


def release(tx: Transaction, ref: str, *, reason: str = "", reach: Reach = EVERYTHING) -> Answer:
    """The owner lets go; an operator may do it by force. Twice is the same as once. Raises NotAllowed."""
    return _finish(tx, ref, Status.RELEASED, reason or "released", reach)


def is_within(record: RequestRecord, reach: Reach) -> bool:
    """Whether the caller may do with the request what the route is for."""
    return reach.covers(record.submission.created_by, record.request.subjects)


def check_within(record: RequestRecord, reach: Reach) -> None:
    """Raise NotAllowed where the caller may not."""
    reach.check(f"request {record.id}", record.submission.created_by, record.request.subjects)


def _finish(tx: Transaction, ref: str, how: Status, cause: str, reach: Reach) -> Answer:
    record = get(tx.memory, tx.reader, ref, reach)
    check_within(record, reach)
    if record.id not in tx.memory.live:
        # What was being evicted ends as preempted however it lets go: asking again finds it so.
        if record.status in (how, Status.PREEMPTED):
            return lambda: record
        raise IllegalTransition(record.id, record.status.value, how.value)
    evicted = record.status is Status.PREEMPTING
    tx.apply(ev.Ended(request=record.id, how=how))
    tx.end(record.id, Status.PREEMPTED if evicted else how, cause=cause, ended_by=tx.actor)
    return lambda: _known(tx.memory, record.id)


def renew(
    tx: Transaction, requests: Sequence[str], *, length_s: int | None = None, reach: Reach = EVERYTHING
) -> Callable[[], tuple[list[RequestRecord], list[str]]]:
    """Renew leases (S35); answers with what the owners must know, and which requests do not exist. Those of others
    do not, for the caller."""
    found: list[RequestRecord] = []
    finals: list[str] = []
    for request in requests:
        record = tx.memory.live.get(RequestId(request))
        if record is None or not is_within(record, reach):
            finals.append(request)
            continue
        lease = tx.memory.leases.renew(record.id, tx.now, length_s)
        if lease is not None:
            record = tx.memory.live[record.id] = replace(record, lease=lease)
        found.append(record)
    known = tx.reader.requests.get(finals) if finals else {}
    ended = {request: record for request, record in known.items() if is_within(record, reach)}
    found.extend(ended.values())
    return lambda: (
        [tx.memory.record(record.id) or record for record in found],
        [request for request in finals if RequestId(request) not in ended],
    )


def get(memory: Memory, reader: Reader, ref: str, reach: Reach = EVERYTHING) -> RequestRecord:
    """The request that an id or a unique prefix of one means. Raises NotFound, Ambiguous.

    Of those that are out of reach only live ones are there, and only by their whole id.
    """
    record = memory.record(RequestId(ref))
    return record if record is not None and _is_there(record, ref, reach) else find(reader, ref, reach)


def find(reader: Reader, ref: str, reach: Reach = EVERYTHING) -> RequestRecord:
    """As `get`, of what is committed; from any thread."""
    found = [record for record in matching(reader, ref) if _is_there(record, ref, reach)]
    if len(found) > 1:
        raise Ambiguous("request", ref, candidates=[record.id for record in found])
    if not found:
        raise NotFound("request", ref)
    return found[0]


def matching(reader: Reader, ref: str) -> list[RequestRecord]:
    """The request of that id, else the first few whose ids begin so, by id."""
    records = reader.requests.get(reader.requests.match(ref))
    return [records[request] for request in sorted(records)]


def _is_there(record: RequestRecord, ref: str, reach: Reach) -> bool:
    return is_within(record, reach) or (not record.status.is_final and record.id == ref)


def _known(memory: Memory, request: RequestId) -> RequestRecord:
    record = memory.record(request)
    assert record is not None, "a request of this round is live or has just ended"
    return record


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """An explanation with the records of those that it mentions. nameless: which of them are not to be named.
    as_of: the moment of which its estimate speaks."""

    explanation: core_explain.Explanation
    record: RequestRecord | None
    mentioned: Mapping[RequestId, RequestRecord]
    pool_names: Mapping[str, str]
    policy_subjects: Mapping[str, str]
    policy_spans: Mapping[str, tuple[str, ...]]
    nameless: frozenset[RequestId] = frozenset()
    as_of: Instant | None = None


def explain(memory: Memory, now: Instant, record: RequestRecord) -> Explained:
    """Why a live request is where it is (S37); of a final one, what is remembered of its end."""
    if record.id in memory.live:
        explanation = core_explain.explain(memory.world, record.id, now)
    else:
        explanation = core_explain.Explanation(
            request=record.request, status=record.status, reasons=record.state.reasons
        )
    return explained_with(memory, explanation, record)


def check(memory: Memory, reader: Reader, now: Instant, ask: Ask, caller: Principal = OWNER) -> Explained:
    """Whether a request would run, and why not, without submitting it."""
    request = build(memory, reader, with_defaults(memory, ask), RequestId("check"), now, caller)
    return explained_with(memory, core_explain.check(memory.world, request, now), None)


def foretold(explained: Explained, found: Foreseen | None) -> Explained:
    """The same with when the request starts, where it waits and somebody has looked ahead."""
    if found is None or explained.explanation.status is not Status.QUEUED:
        return explained
    return replace(
        explained,
        explanation=core_explain.foretold(explained.explanation, found.estimate),
        mentioned={**found.records, **explained.mentioned},
        as_of=found.as_of,
    )


def explained_with(memory: Memory, explanation: core_explain.Explanation, record: RequestRecord | None) -> Explained:
    """An explanation with the names and records that it takes to read it."""
    ids = {holder.request for view in explanation.candidates for holder in view.holders}
    ids |= {reason.blocker for reason in explanation.reasons if reason.blocker is not None}
    if explanation.eviction is not None:
        ids |= set(explanation.eviction.victims)
    return Explained(
        explanation=explanation,
        record=record,
        mentioned={request: memory.live[request] for request in ids if request in memory.live},
        pool_names={pool.id: pool.name for pool in memory.all(Kind.POOL)},
        policy_subjects={policy.id: memory.subject_of(policy.id) for policy in memory.all(Kind.POLICY)},
        policy_spans=spans_of(memory),
    )

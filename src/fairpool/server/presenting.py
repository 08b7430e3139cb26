"""Pools, policies, requests and explanations as callers read them. On the scheduler's thread, where the world is."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from decimal import Decimal

from fairpool.app import queries, schedules, sentences
from fairpool.app.memory import Memory
from fairpool.app.queries import NodeStatus, PolicyStatus
from fairpool.app.records import Declared, Kind, RequestRecord
from fairpool.app.sentences import Names, names_of
from fairpool.app.shortages import shortages_of
from fairpool.app.use_cases import vaults
from fairpool.core.accounts import PolicyBooks
from fairpool.core.ids import Instant, PolicyId, PoolId, RequestId
from fairpool.core.policies import Policy
from fairpool.core.pools import Pool, healthy_capacity, nominal_capacity
from fairpool.core.reasons import Reason
from fairpool.core.requests import Allocation
from fairpool.server import outgoing
from fairpool.server.bodies import body_of_window
from fairpool.server.outgoing import moment, units, vector
from fairpool.wire.policies import InForceView, PolicyView, WindowView
from fairpool.wire.pools import NodeView, PoolView
from fairpool.wire.requests import ReasonView, RequestView


def pool_view(memory: Memory, now: Instant, record: Declared[Pool], *, whole: bool = True) -> PoolView:
    """A pool with its usage; one that is only tried out as declared. whole: with its policies too."""
    bare = PoolView(
        id=record.id,
        name=record.name,
        version=record.version,
        state=record.spec.state.value,
        capacity=vector(healthy_capacity(record.spec)),
        nominal=vector(nominal_capacity(record.spec)),
        nodes=[_node(NodeStatus(node=node, used=(), requests=())) for node in record.spec.nodes],
        ordering=record.spec.ordering.value,
        backfill=record.spec.backfill,
        placement=record.spec.placement.value,
        max_bypass_s=record.spec.max_bypass_s,
        components=sorted(record.spec.components),
        description=str(record.note.get("description", "")),
        created_at=moment(record.created_at),
        updated_at=moment(record.updated_at),
    )
    known = memory.get(Kind.POOL, record.id)
    if known is None:
        return bare
    status = queries.pool_status(memory, now, record.id)
    if known is not record:
        short = shortages_of(status, record.spec)
        return bare.model_copy(update={"warnings": [sentences.shortage(each) for each in short]})
    return bare.model_copy(
        update={
            "state": status.state,
            "capacity": _sorted(status.capacity),
            "nominal": _sorted(status.nominal),
            "used": _sorted(status.used),
            "free": _sorted({key: max(0, value) for key, value in status.free.items()}),
            "reserved": _sorted(status.reserved),
            "borrowed": _sorted(status.borrowed),
            "queued": status.queued,
            "active": status.active,
            "nodes": [_node(node) for node in status.nodes],
            "warnings": [sentences.shortage(each) for each in shortages_of(status, record.spec)],
            "policies": [_policy(policy, now) for policy in status.policies] if whole else [],
        }
    )


def policy_view(memory: Memory, now: Instant, record: Declared[Policy]) -> PolicyView:
    """A policy with what its requests use. One that is only tried out is shown as declared."""
    if memory.get(Kind.POLICY, record.id) is record:
        return _policy(queries.policy_status(memory, now, record.id), now)
    nothing = PolicyStatus(
        declared=record,
        pool_name=memory.pool_name(record.spec.pool),
        also=tuple(map(memory.pool_name, record.spec.also)),
        used=(),
        in_share=(),
        borrowed=(),
        queued=0,
        active=0,
    )
    return _policy(nothing, now)


def _policy(status: PolicyStatus, now: Instant) -> PolicyView:
    record, policy = status.declared, status.declared.spec
    windows = schedules.windows_in(record.note)
    return PolicyView(
        id=record.id,
        version=record.version,
        pool=status.pool_name,
        pool_id=policy.pool,
        also=list(status.also),
        subject=str(policy.subject),
        priority=policy.priority,
        reserved=vector(policy.reserved),
        limit=vector(policy.limit),
        weight=units(policy.weight),
        dedicated=policy.dedicated,
        grace_s=policy.grace_s,
        min_runtime_s=policy.min_runtime_s,
        profiles=list(policy.profiles) if policy.profiles is not None else None,
        schedule=[WindowView.model_validate(body_of_window(window).model_dump()) for window in windows],
        now=_in_force(record, now) if windows else None,
        next_change_at=outgoing.maybe_moment(schedules.next_edge(windows, now)),
        used=vector(status.used),
        in_share=vector(status.in_share),
        borrowed=vector(status.borrowed),
        queued=status.queued,
        active=status.active,
        created_at=moment(record.created_at),
        updated_at=moment(record.updated_at),
    )


def _in_force(record: Declared[Policy], now: Instant) -> InForceView:
    policy = schedules.in_force(record, now)
    return InForceView(
        window=schedules.open_in(record.note),
        priority=policy.priority,
        reserved=vector(policy.reserved),
        limit=vector(policy.limit),
        weight=units(policy.weight),
        grace_s=policy.grace_s,
    )


def _node(status: NodeStatus) -> NodeView:
    node = status.node
    return NodeView(
        name=node.name,
        capacity=vector(node.capacity),
        used=vector(status.used),
        state=node.state.value,
        gpu_type=node.gpu_type,
        labels=dict(node.labels),
        requests=list(status.requests),
    )


def _sorted(amounts: Mapping[str, int]) -> dict[str, int | Decimal]:
    return {key: units(value) for key, value in sorted(amounts.items())}


# ---- requests --------------------------------------------------------------------------------------------------------


def request_view(memory: Memory, now: Instant, record: RequestRecord) -> RequestView:
    """A request, with whether what it holds is in share (S20)."""
    return request_views(memory, [record])[0]


def request_views(memory: Memory, records: Collection[RequestRecord]) -> list[RequestView]:
    """Many requests; each policy's shares are judged once."""
    judged: dict[tuple[PoolId, PolicyId], frozenset[RequestId]] = {}
    names = names_of(memory) if any(record.state.reasons for record in records) else None
    return [
        outgoing.request(
            record,
            in_share=_in_share(memory, record.id, judged),
            vault=_vault(memory, record),
            reasons=[reason_view(reason, names) for reason in record.state.reasons] if names is not None else [],
        )
        for record in records
    ]


def _vault(memory: Memory, record: RequestRecord) -> str | None:
    vault = vaults.of_request(memory, record)
    return vault.name if vault is not None else None


def _in_share(
    memory: Memory, request: RequestId, judged: dict[tuple[PoolId, PolicyId], frozenset[RequestId]]
) -> bool | None:
    held = memory.world.allocations.get(request)
    if held is None or held.pool is None or held.policy is None:
        return None
    books = memory.world.books[held.pool].policies[held.policy]
    certain = _certainly(books, held)
    if certain is not None:
        return certain
    where = (held.pool, held.policy)
    if where not in judged:
        judged[where] = frozenset(other.request.id for other in books.account.borrowing())
    return request not in judged[where]


def _certainly(books: PolicyBooks, held: Allocation) -> bool | None:
    """What can be said without going through all that the policy holds, which would cost too much at each submit."""
    reserved = books.reserved
    if any(key in books.bounded and value > reserved.get(key, 0) for key, value in held.request.demand.total):
        return False
    return True if books.account.is_inside_reservation_now() else None


def reason_view(reason: Reason, names: Names) -> ReasonView:
    """A reason with its sentence."""
    return ReasonView(
        code=reason.code.value,
        message=sentences.reason(reason, names),
        pool=names.pool(reason.pool) if reason.pool is not None else None,
        policy=names.policy(reason.policy) if reason.policy is not None else None,
        key=reason.key or None,
        asked=_maybe(reason.asked),
        possible=_maybe(reason.possible),
        free=_maybe(reason.free),
        used=_maybe(reason.used),
        reserved=_maybe(reason.reserved),
        limit=_maybe(reason.limit),
        blocker=reason.blocker,
        degraded=reason.degraded,
        opens_at=outgoing.maybe_moment(reason.opens_at),
    )


def reason_views(reasons: Iterable[Reason], names: Names) -> list[ReasonView]:
    """Reasons with their sentences."""
    return [reason_view(reason, names) for reason in reasons]


def _maybe(thousandths: int | None) -> int | Decimal | None:
    return None if thousandths is None else units(max(0, thousandths))

"""Requests as they were: who waited and who held what at a moment. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from fairpool.app.records import AnyDeclared, Grant, Kind, RequestRecord, State
from fairpool.core.ids import Instant, PolicyId, PoolId, RequestId
from fairpool.core.policies import Policy
from fairpool.core.requests import Status


class Rules:
    """The pools and policies of then, for grants that were let go of them later."""

    def __init__(self, declared: Iterable[AnyDeclared]) -> None:
        self._pools: dict[str, AnyDeclared] = {}
        self._policies: dict[tuple[str, str], PolicyId] = {}
        for one in declared:
            if one.kind is Kind.POOL:
                self._pools[one.name] = one
            elif isinstance(one.spec, Policy):
                for pool in one.spec.pools:
                    self._policies[pool, str(one.spec.subject)] = one.spec.id
        self._ids = {one.id for one in self._pools.values()}

    def grant(self, grant: Grant) -> Grant:
        """The grant as it was then. One whose pool was deleted while it ran has lost its pool since; one whose pool was
        gone already had lost it then."""
        if grant.pool is not None:
            return grant if grant.pool in self._ids else replace(grant, pool=None, policy=None)
        pool = self._pools.get(grant.pool_name)
        if pool is None or pool.created_at > grant.granted_at:
            return grant
        policy = self._policies.get((pool.id, grant.subject))
        return grant if policy is None else replace(grant, pool=PoolId(pool.id), policy=policy)


def work_at(
    records: Iterable[RequestRecord], rules: Rules, told_at: Mapping[RequestId, Instant], at: Instant
) -> dict[RequestId, RequestRecord]:
    """The requests that were live at that moment, as they were then.

    told_at: when each request that was ever told to let go was told so. What was being kept for whom is not known.
    """
    found = ((record.id, _then(record, rules, told_at.get(record.id), at)) for record in records)
    return {request: record for request, record in found if record is not None}


def _then(record: RequestRecord, rules: Rules, told_at: Instant | None, at: Instant) -> RequestRecord | None:
    state = record.state
    if record.submission.created_at > at or (state.ended_at is not None and state.ended_at <= at):
        return None
    grant = state.grant
    if grant is None or grant.granted_at > at:
        return replace(record, state=State(status=Status.QUEUED), lease=None)
    leaving = grant.eviction is not None and told_at is not None and told_at <= at
    grant = rules.grant(grant if leaving else replace(grant, eviction=None))
    status = Status.PREEMPTING if leaving else Status.ALLOCATED
    return replace(record, state=State(status=status, grant=grant), lease=None)

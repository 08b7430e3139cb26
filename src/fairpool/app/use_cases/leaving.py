"""What becomes of requests and policies when somebody leaves a team, or when who they speak of goes or is renamed.

What runs goes on. What waits goes on by the ways that are left to it, and where none is left it is cancelled.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fairpool.app.memory import Memory
from fairpool.app.records import Kind, RequestRecord
from fairpool.app.transaction import Transaction
from fairpool.app.use_cases import policies, requests
from fairpool.core.ids import RequestId
from fairpool.core.policies import Policy, Subject
from fairpool.core.requests import Status
from fairpool.core.waiting import Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """Requests that wait, and that hold something."""

    queued: tuple[RequestId, ...]
    active: tuple[RequestId, ...]


def made_by(memory: Memory, subject: Subject) -> Live:
    """The live requests that somebody made."""
    return _live(record for record in memory.live.values() if record.submission.created_by == str(subject))


def made_as(memory: Memory, subject: Subject) -> Live:
    """The live requests that are made as that subject."""
    return _live(record for record in memory.live.values() if subject in record.request.subjects)


def _live(records: Iterable[RequestRecord]) -> Live:
    sides: tuple[list[RequestId], list[RequestId]] = ([], [])
    for record in records:
        sides[record.status is not Status.QUEUED].append(record.id)
    return Live(queued=tuple(sorted(sides[0])), active=tuple(sorted(sides[1])))


def stranded(memory: Memory, queued: Iterable[RequestId], without: Subject) -> tuple[RequestId, ...]:
    """Those of these requests that could go nowhere if they were not made as that subject."""
    return tuple(request for request in queued if not _has_way(memory, request, without))


def _has_way(memory: Memory, request: RequestId, without: Subject) -> bool:
    asked = memory.live[request].request
    rest = _others(asked.subjects, without)
    route = memory.world.routes.find(Origin(rest, asked.profile, asked.pool), asked.demand, asked.preemptible)
    return bool(rest and route.candidates)


def _others(subjects: tuple[Subject, ...], without: Subject) -> tuple[Subject, ...]:
    return tuple(subject for subject in subjects if subject != without)


def go_without(tx: Transaction, queued: Iterable[RequestId], without: Subject, reason: str) -> None:
    """Queued requests that have no way but as that subject are cancelled."""
    withdraw(tx, stranded(tx.memory, queued, without), reason)


def withdraw(tx: Transaction, queued: Iterable[RequestId], reason: str) -> None:
    """Queued requests are cancelled."""
    for request in queued:
        requests.cancel(tx, request, reason=reason)


def leave_team(tx: Transaction, team: Subject, leaver: Subject) -> None:
    """Somebody is in a team no more: what they have queued goes on without it."""
    made = made_by(tx.memory, leaver)
    queued = [request for request in made.queued if team in tx.memory.live[request].request.subjects]
    go_without(tx, queued, team, f"{leaver.name} has left team {team.name}")


def policies_of(memory: Memory, subject: Subject) -> tuple[str, ...]:
    """Names of the policies that speak of that subject."""
    return tuple(
        declared.name
        for declared in memory.all(Kind.POLICY)
        if isinstance(declared.spec, Policy) and declared.spec.subject == subject
    )


def drop_policies(tx: Transaction, subject: Subject) -> None:
    """The policies that speak of that subject go."""
    for declared in tx.memory.all(Kind.POLICY):
        if isinstance(declared.spec, Policy) and declared.spec.subject == subject:
            policies.detach(tx, declared.id)

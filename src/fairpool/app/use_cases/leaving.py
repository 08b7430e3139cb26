"""What becomes of requests and policies when somebody leaves a team, or when who they speak of goes or is renamed.

What runs goes on. What waits goes on by the ways that are left to it, and where none is left it is cancelled.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from fairpool.app import schedules
from fairpool.app.memory import Memory
from fairpool.app.records import AnyDeclared, Kind, RequestRecord
from fairpool.app.transaction import Transaction
from fairpool.app.use_cases import policies, requests
from fairpool.app.use_cases.declaring import changed
from fairpool.core import events as ev
from fairpool.core.ids import RequestId
from fairpool.core.policies import Policy, Subject
from fairpool.core.requests import Request, Status
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
    """Queued requests are not made as that subject any more. The next decision cancels those that lost every right."""
    redirected: list[Request] = []
    for request in queued:
        asked = tx.memory.live[request].request
        rest = _others(asked.subjects, without)
        if rest:
            redirected.append(replace(asked, subjects=rest))
        else:
            requests.cancel(tx, request, reason=reason)
    _redirect(tx, [], redirected)


def rename(tx: Transaction, old: Subject, new: Subject) -> None:
    """Policies that speak of the subject, and live requests that are made as it, follow its new name."""
    speaking = [tx.memory.policy(policy.id) for policy in _speaking_of(tx.memory, old)]
    renamed = {policy.id: replace(policy.spec, subject=new) for policy in speaking}
    made = made_as(tx.memory, old)
    asked = [tx.memory.live[request].request for request in (*made.queued, *made.active)]
    redirected = [
        replace(each, subjects=tuple(dict.fromkeys(new if subject == old else subject for subject in each.subjects)))
        for each in asked
    ]
    in_force = [schedules.in_force(replace(policy, spec=renamed[policy.id]), tx.now) for policy in speaking]
    _redirect(tx, [ev.PolicySet(policy=policy) for policy in in_force], redirected)
    for policy in speaking:
        name = policy.name.removesuffix(str(old)) + str(new)
        before, after = {"subject": str(old)}, {"subject": str(new)}
        changed(tx, policy, renamed[policy.id], name=name, before=before, after=after)


def _redirect(tx: Transaction, rules: Sequence[ev.RuleEvent], redirected: Sequence[Request]) -> None:
    events = (*rules, *(ev.Redirected(request=request) for request in redirected))
    if events:
        tx.apply(ev.Together(events=events))
    for request in redirected:
        tx.redirect(request)


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
    return tuple(declared.name for declared in _speaking_of(memory, subject))


def drop_policies(tx: Transaction, subject: Subject) -> None:
    """The policies that speak of that subject go."""
    for declared in _speaking_of(tx.memory, subject):
        policies.detach(tx, declared.id)


def _speaking_of(memory: Memory, subject: Subject) -> list[AnyDeclared]:
    declared = memory.all(Kind.POLICY)
    return [each for each in declared if isinstance(each.spec, Policy) and each.spec.subject == subject]

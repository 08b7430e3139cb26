"""Queues: what a subject sees of a profile. Worked out from policies and profiles each time, never stored.

A policy makes a queue for each profile that it offers, in each of its pools that the profile names. Two policies of one
subject on different pools make one queue over both. A queue begins and ends with the policy and the profile, and
nothing is left behind when either goes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from fairpool.app import sentences
from fairpool.app.authz import Reach, Right
from fairpool.app.errors import NotFound
from fairpool.app.memory import Memory
from fairpool.app.queue_counts import QueueCount
from fairpool.app.records import Declared, Kind, RequestRecord
from fairpool.app.use_cases.declaring import nearest
from fairpool.app.use_cases.demands import demand_of
from fairpool.app.use_cases.profiles import defaults_in
from fairpool.app.use_cases.requests import Explained, explained_with
from fairpool.core import explain as core_explain
from fairpool.core.amounts import Amounts, of
from fairpool.core.books import PoolBooks
from fairpool.core.feasibility import impossible
from fairpool.core.ids import Instant, PoolId, RequestId
from fairpool.core.policies import Policy, Profile, Subject, SubjectKind
from fairpool.core.reasons import Code, Reason
from fairpool.core.requests import Request

_NOT_OFFERED = frozenset({Code.EXCEEDS_POLICY_LIMIT, Code.PROFILE_NOT_OFFERED})
"""Codes that say that a policy does not offer a profile. The queue stands whatever else makes it impossible."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One pool of a queue, and the policy through which it gives.

    used: what the policy's requests hold. never: why nothing can ever be had there, where that is so. components: the
    only ones whose work the pool takes; empty for all.
    """

    pool: str
    policy: Policy
    used: Amounts
    never: Reason | None
    components: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A subject's queue for one profile, its pools in the order in which they are tried.

    members: who may use it, by name; those of a team whose members nobody wrote down are not known.
    """

    subject: Subject
    profile: Declared[Profile]
    places: tuple[Place, ...]
    count: QueueCount
    members: tuple[str, ...]

    @property
    def name(self) -> str:
        """``genai/half-gpu``; of others than teams with the kind, so that names never collide."""
        return f"{owner_name(self.subject)}/{self.profile.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A queued request with its place in the order of each pool where it waits, by the pool's name."""

    record: RequestRecord
    positions: tuple[tuple[str, int], ...]


def owner_name(subject: Subject) -> str:
    """Whose queue it is, as its name begins."""
    return subject.name if subject.kind is SubjectKind.TEAM else str(subject)


def owner_of(text: str) -> Subject:
    """Whose queue a name that begins so is. Raises InvalidInput, InvalidName."""
    return Subject.parse(text if ":" in text else f"{SubjectKind.TEAM.value}:{text}")


def sees(reach: Reach, subject: Subject) -> bool:
    """Whether somebody sees the queues of a subject. Whoever runs something on a component may use those of it."""
    return reach.covers("", [subject]) or (reach.right is Right.OWN and subject.kind is SubjectKind.COMPONENT)


def all_for(memory: Memory, reach: Reach) -> list[Queue]:
    """The queues that somebody sees, by name."""
    profiles = [cast("Declared[Profile]", declared) for declared in memory.all(Kind.PROFILE)]
    subjects = {cast("Declared[Policy]", policy).spec.subject for policy in memory.all(Kind.POLICY)}
    seen = (subject for subject in subjects if sees(reach, subject))
    found = (queue for subject in seen for profile in profiles if (queue := _queue(memory, subject, profile)))
    return sorted(found, key=lambda queue: queue.name)


def find(memory: Memory, reach: Reach, owner: str, profile: str) -> Queue:
    """One queue. Raises NotFound, which says why there is none; InvalidName."""
    subject, name = owner_of(owner), f"{owner}/{profile}"
    mine = all_for(memory, reach) if sees(reach, subject) else []
    found = [queue for queue in mine if queue.subject == subject and profile in (queue.profile.name, queue.profile.id)]
    if found:
        return found[0]
    known = nearest(name, [queue.name for queue in all_for(memory, reach)])
    raise NotFound("queue", name, candidates=known, why=_why_not(memory, reach, subject, profile))


def next_in(memory: Memory, now: Instant, queue: Queue) -> Explained | None:
    """What would become of the next request that says nothing but the profile; None where no pool takes work that names
    no component."""
    if all(place.components for place in queue.places):
        return None
    profile, defaults = queue.profile.spec, defaults_in(queue.profile.note)
    request = Request(
        id=RequestId("next"),
        subjects=(queue.subject,),
        demand=demand_of(profile),
        queued_at=Instant(now),
        preemptible=defaults.preemptible is not False,
        profile=profile.name,
        max_runtime_s=defaults.max_runtime_s,
    )
    return explained_with(memory, core_explain.check(memory.world, request, now), None)


def lines(memory: Memory, requests: list[RequestId]) -> list[Line]:
    """Where these stand, those that wait no more left out; the first in line first."""
    found = []
    for request in requests:
        record = memory.live.get(request)
        if record is None or record.state.grant is not None:
            continue
        places = core_explain.positions(memory.world, request)
        named = sorted((memory.pool_name(pool), place) for pool, place in places.items())
        found.append(Line(record=record, positions=tuple(named)))
    return sorted(found, key=lambda line: (min((place for _, place in line.positions), default=0), line.record.id))


def _queue(memory: Memory, subject: Subject, profile: Declared[Profile]) -> Queue | None:
    places = [
        Place(
            pool=books.pool.name,
            policy=policy,
            used=of({key: value for key, value in books.policies[policy.id].here.items() if value}),
            never=never,
            components=tuple(sorted(books.pool.components)),
        )
        for policy, books in _pairs(memory, subject, profile.spec)
        if (never := _never(books, policy, profile.spec)) is None or never.code not in _NOT_OFFERED
    ]
    if not places:
        return None
    return Queue(
        subject=subject,
        profile=profile,
        places=tuple(places),
        count=memory.queues.of(subject, profile.name),
        members=members_of(memory, subject),
    )


def _pairs(memory: Memory, subject: Subject, profile: Profile) -> Iterator[tuple[Policy, PoolBooks]]:
    """The subject's policies with the pools that the profile names, in the profile's order."""
    for name in profile.pools:
        declared = memory.named(Kind.POOL, name)
        books = memory.world.books.get(PoolId(declared.id)) if declared is not None else None
        if books is None:
            continue
        for mine in books.policies.values():
            if not mine.retired and mine.policy.subject == subject:
                yield mine.policy, books


def _never(books: PoolBooks, policy: Policy, profile: Profile) -> Reason | None:
    return impossible(books, books.policies[policy.id], demand_of(profile), True, profile.name)


def _why_not(memory: Memory, reach: Reach, subject: Subject, name: str) -> str:
    """Why there is no such queue, in a sentence; of what is not the caller's nothing."""
    if not sees(reach, subject):
        return ""
    declared, nowhere = memory.named(Kind.PROFILE, name), f"no policy of {subject} offers such a profile"
    if declared is None:
        return nowhere if reach.owner is not None else f"no profile {name!r}"
    profile = cast("Declared[Profile]", declared).spec
    reasons = [_never(books, policy, profile) for policy, books in _pairs(memory, subject, profile)]
    told = [sentences.reason(reason, sentences.names_of(memory)) for reason in reasons if reason is not None]
    pools = ", ".join(profile.pools)
    if not told and reach.owner is not None:
        return nowhere
    return "; ".join(told) or f"{subject} has no policy on {pools}, which is where profile {name!r} runs"


def members_of(memory: Memory, subject: Subject) -> tuple[str, ...]:
    """Who may ask as this subject, by name."""
    if subject.kind is not SubjectKind.TEAM:
        return (subject.name,)
    team = memory.named(Kind.TEAM, subject.name)
    spec = team.spec if team is not None and isinstance(team.spec, dict) else {}
    members = spec.get("members")
    return tuple(sorted(str(member) for member in members)) if isinstance(members, list | tuple) else ()

"""What is told of others' requests: what explains one's own wait, and nothing else. Pure.

Of a request of another team a member learns the team, what it asks for and since when; its status, priority, pool and
whether it can be interrupted. Names, commands, labels, environment, runs, steps and people stay with those whose they
are. Every answer that could hold any of that passes here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from fairpool.app.authz import Reach
from fairpool.app.records import RequestRecord
from fairpool.app.use_cases.requests import Explained, is_within
from fairpool.core.policies import Subject, SubjectKind
from fairpool.wire.pools import PoolView
from fairpool.wire.requests import AllocationView, EvictionView, RequestView

SOMEBODY = "somebody else"
"""In place of a person or a service account that is none of the caller's business."""

_SHARED = (SubjectKind.TEAM, SubjectKind.COMPONENT)


def subject(text: str, reach: Reach) -> str:
    """A subject by name where it is a team, a component or the caller's own; else that it is somebody."""
    return text if not text or may_name(Subject.parse(text), reach) else SOMEBODY


def may_name(named: Subject, reach: Reach) -> bool:
    """Whether the caller may read that subject's name."""
    return reach.owner is None or named.kind in _SHARED or reach.principal.is_one_of(named)


def subjects(by_policy: Mapping[str, str], reach: Reach) -> dict[str, str]:
    """Whose each policy is, as far as the caller may know."""
    return {policy: subject(text, reach) for policy, text in by_policy.items()}


def request(view: RequestView, record: RequestRecord, reach: Reach) -> RequestView:
    """A request as the caller may see it."""
    return view if is_within(record, reach) else foreign(view)


def foreign(view: RequestView) -> RequestView:
    """A request of others: field by field, so that one that is new is told to nobody before somebody decides so."""
    return RequestView(
        id=view.id,
        version=view.version,
        status=view.status,
        demand=view.demand,
        parts=view.parts,
        subjects=_teams(view.subjects),
        pool=view.pool,
        preemptible=view.preemptible,
        priority=view.priority,
        lease_s=0,
        created_at=view.queued_at,
        queued_at=view.queued_at,
        allocation=None if view.allocation is None else _allocation(view.allocation),
        eviction=None if view.eviction is None else _eviction(view.eviction),
        foreign=True,
    )


def _teams(texts: Iterable[str]) -> list[str]:
    return [text for text in texts if text.startswith(f"{SubjectKind.TEAM.value}:")]


def _policy_of(text: str | None) -> str | None:
    return text if text is not None and Subject.parse(text).kind in _SHARED else None


def _allocation(view: AllocationView) -> AllocationView:
    return AllocationView(
        pool=view.pool,
        pool_id=view.pool_id,
        policy=view.policy,
        subject=_policy_of(view.subject),
        granted_at=view.granted_at,
        in_share=view.in_share,
    )


def _eviction(view: EvictionView) -> EvictionView:
    return EvictionView(
        because=view.because, deadline_at=view.deadline_at, pool=view.pool, policy=_policy_of(view.policy)
    )


def explained(whole: Explained, reach: Reach) -> Explained:
    """What an explanation may draw on: of the requests that it mentions the names of the caller's own only."""
    if reach.owner is None:
        return whole
    return replace(
        whole,
        nameless=frozenset(name for name, record in whole.mentioned.items() if not is_within(record, reach)),
        policy_subjects=subjects(whole.policy_subjects, reach),
    )


def pool(view: PoolView, reach: Reach) -> PoolView:
    """A pool without the policies of other people and services."""
    if reach.owner is None:
        return view
    policies = [policy for policy in view.policies if may_name(Subject.parse(policy.subject), reach)]
    return view.model_copy(update={"policies": policies})

"""Explanations as callers read them (S37)."""

from __future__ import annotations

from fairpool.app import sentences
from fairpool.app.authz import Reach
from fairpool.app.records import Grant, RequestRecord
from fairpool.app.sentences import Names
from fairpool.app.use_cases.requests import Explained
from fairpool.core.explain import CandidateView as Candidate
from fairpool.core.explain import Explanation as Facts
from fairpool.core.explain import Holder
from fairpool.core.requests import Status
from fairpool.server import outgoing, redaction
from fairpool.server.estimating import estimate_view
from fairpool.server.outgoing import moment, vector
from fairpool.server.presenting import reason_views
from fairpool.wire.explanations import CandidateView, CheckResult, Explanation, HolderView
from fairpool.wire.requests import AllocationView, EvictionView
from fairpool.wire.values import RequestStatus, Verdict


def explanation_view(whole: Explained, reach: Reach) -> Explanation:
    """Why a request is where it is, as far as the caller may know."""
    explained = redaction.explained(whole, reach)
    facts = explained.explanation
    names = Names(explained.pool_names, explained.policy_subjects, explained.policy_spans)
    waits_for_eviction = facts.eviction is not None and facts.status is Status.QUEUED
    evicting: list[str] = list(facts.eviction.victims) if facts.eviction is not None and waits_for_eviction else []
    return Explanation(
        request=facts.request.id,
        status=RequestStatus(facts.status.value),
        summary=sentences.summary(facts, names),
        candidates=[_candidate(view, explained, names) for view in facts.candidates],
        reasons=reason_views((*facts.reasons, *facts.refused), names),
        allocation=_allocation(facts, explained.record, names),
        eviction=_eviction(facts, explained.record, names),
        evicting=evicting,
        estimate=estimate_view(explained),
    )


def check_view(explained: Explained, reach: Reach) -> CheckResult:
    """Whether a request that is only checked would run."""
    verdicts = {Status.ALLOCATED: Verdict.NOW, Status.REJECTED: Verdict.NEVER}
    verdict = verdicts.get(explained.explanation.status, Verdict.LATER)
    return CheckResult(verdict=verdict, explanation=explanation_view(explained, reach))


def _candidate(view: Candidate, explained: Explained, names: Names) -> CandidateView:
    return CandidateView(
        pool=names.pool(view.pool),
        policy=view.policy,
        subject=names.policy(view.policy),
        position=view.position,
        ahead=view.position - 1,
        entitled=view.entitled,
        reasons=reason_views(view.reasons, names),
        holders=[_holder(holder, explained, names) for holder in view.holders],
        help=sentences.helps(view, explained.explanation, names),
    )


def _holder(holder: Holder, explained: Explained, names: Names) -> HolderView:
    record = explained.mentioned.get(holder.request)
    return HolderView(
        request=holder.request,
        name=record.submission.name if record is not None and record.id not in explained.nameless else "",
        subject=names.policy(holder.policy) if holder.policy is not None else None,
        holds=vector(holder.amounts),
        in_share=not holder.borrowed,
        status=RequestStatus(record.status.value) if record is not None else RequestStatus.ALLOCATED,
        since=moment(holder.since),
        ends_at=outgoing.maybe_moment(holder.ends_at),
    )


def _allocation(facts: Facts, record: RequestRecord | None, names: Names) -> AllocationView | None:
    if record is not None:
        grant = record.state.grant
        return None if grant is None else outgoing.allocation(grant, record.request, in_share=None)
    held = facts.allocation
    if held is None:
        return None
    pool = names.pool(held.pool) if held.pool is not None else ""
    subject = names.policy(held.policy) if held.policy is not None else ""
    return outgoing.allocation(Grant.of(held, pool_name=pool, subject=subject), facts.request, in_share=None)


def _eviction(facts: Facts, record: RequestRecord | None, names: Names) -> EvictionView | None:
    if record is not None and record.state.grant is not None:
        return outgoing.eviction(record.state.grant)
    if facts.eviction is None:
        return None
    # Of one that waits: the eviction under way for it.
    return EvictionView(
        cause=facts.request.id, because=facts.eviction.because.value, deadline_at=moment(facts.eviction.deadline_at)
    )

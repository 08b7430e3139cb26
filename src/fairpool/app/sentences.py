"""Reasons and explanations in sentences, for people. The one place where they are made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from fairpool.app.memory import Memory
from fairpool.app.records import Kind
from fairpool.app.warnings import Shortage
from fairpool.core.amounts import WHOLE, show
from fairpool.core.explain import CandidateView, Explanation
from fairpool.core.ids import SECOND, Instant
from fairpool.core.reasons import Code, Reason
from fairpool.core.requests import Status


class Names:
    """How ids are called."""

    def __init__(
        self, pools: Mapping[str, str], policies: Mapping[str, str], spans: Mapping[str, tuple[str, ...]] | None = None
    ) -> None:
        self._pools = pools
        self._policies = policies
        self._spans = spans or {}  # by policy, the names of its pools, of those that have more than one

    def pool(self, pool: str | None) -> str:
        """A pool's name."""
        return self._pools.get(pool or "", pool or "any pool")

    def policy(self, policy: str | None) -> str:
        """Whose policy it is."""
        return self._policies.get(policy or "", policy or "no policy")

    def where(self, fact: Reason) -> str:
        """Over which pools the policy's numbers count: the pool that is spoken of, or all of them together."""
        span = self._spans.get(fact.policy or "")
        if span is None:
            return f"pool {self.pool(fact.pool)}"
        return f"pools {', '.join(span[:-1])} and {span[-1]} together"


def names_of(memory: Memory) -> Names:
    """How pools and policies are called."""
    pools = {pool.id: pool.name for pool in memory.all(Kind.POOL)}
    policies = memory.all(Kind.POLICY)
    return Names(pools, {policy.id: memory.subject_of(policy.id) for policy in policies}, spans_of(memory))


def spans_of(memory: Memory) -> dict[str, tuple[str, ...]]:
    """The names of the pools of each policy that has more than one."""
    specs = memory.world.policies.values()
    return {spec.id: tuple(memory.pool_name(pool) for pool in spec.pools) for spec in specs if spec.also}


def shortage(fact: Shortage) -> str:
    """That a pool has too little as a sentence without a full stop."""
    there, key = show(fact.capacity), fact.key
    if fact.used:
        return (
            f"pool {fact.pool} has {there} {key}, and {show(fact.used)} in use: it grants no {key} until that fits; "
            "nobody is evicted for it"
        )
    if fact.reserved:
        return (
            f"pool {fact.pool} has {there} {key} on what is ready, and {show(fact.reserved)} reserved: "
            "who is entitled waits for the rest"
        )
    return f"pool {fact.pool} has less on what is ready than is reserved over it and other pools together"


def reason(fact: Reason, names: Names) -> str:  # noqa: C901 (one arm per code of a closed set)
    """One reason as a sentence without a full stop."""
    pool, who, key = names.pool(fact.pool), names.policy(fact.policy), fact.key
    asked, possible = _amount(fact.asked), _amount(fact.possible)
    free, used = _amount(fact.free), _amount(fact.used)
    degraded = " (some of its nodes are not ready)" if fact.degraded else ""
    match fact.code:
        case Code.KEY_NOT_IN_POOL:
            return f"pool {pool} has no {key}"
        case Code.EXCEEDS_POOL_CAPACITY:
            return f"{asked} {key} is asked for, pool {pool} has {possible} in all"
        case Code.EXCEEDS_POLICY_LIMIT:
            return f"{asked} {key} is asked for, the limit of {who} on {names.where(fact)} is {possible}"
        case Code.EXCEEDS_RESERVATION:
            return (
                f"{asked} {key} that must not be interrupted is asked for, "
                f"{who} has {possible} reserved on {names.where(fact)}"
            )
        case Code.NO_NODE_FITS:
            return f"one part needs {asked} {key}, no node of pool {pool} could hold it (the largest has {possible})"
        case Code.PROFILE_NOT_OFFERED:
            return f"the policy of {who} on pool {pool} does not offer this profile"
        case Code.NO_POLICY:
            return "no policy lets this request use any pool that would do"
        case Code.POOL_FULL:
            return f"pool {pool} has {free} {key} free of {possible}{degraded}, {asked} asked for"
        case Code.POOL_OVER_CAPACITY:
            return f"pool {pool} uses {used} {key} of {possible}{degraded}: it is over capacity and grants none"
        case Code.LIMIT_IN_USE:
            return (
                f"{who} uses {used} of its limit of {_amount(fact.limit)} {key} on {names.where(fact)}, "
                f"{asked} more asked for"
            )
        case Code.RESERVATION_IN_USE:
            return (
                f"work of {who} that must not be interrupted uses {used} of the {_amount(fact.reserved)} {key} "
                f"reserved on {names.where(fact)}, {asked} more asked for"
            )
        case Code.WAITS_FOR_WINDOW:
            return _waits_for_window(fact, names)
        case Code.FRAGMENTED:
            return f"pool {pool} has {free} {key} free, but scattered: not where {asked} fits together"
        case Code.HELD_FOR_OLDER:
            return f"what is free in pool {pool} is held for request {fact.blocker}, which has waited longest"
        case Code.DEDICATED_TO_OTHERS:
            return f"what is free of {key} in pool {pool} is dedicated to others ({free} is not), {asked} asked for"
        case Code.WAITING_FOR_EVICTION:
            if fact.asked is None:
                return f"others are letting go in pool {pool} to make room"
            return f"what is free of {key} in pool {pool} is kept for request {fact.blocker}"
        case Code.POOL_DRAINING:
            return f"pool {pool} is being drained and grants nothing"
        case Code.WAIT_TIMEOUT:
            return "it has waited as long as it was willing to"
        case Code.POLICY_GONE:
            return f"the policy of {fact.name} on pool {pool} is no more"
        case Code.POLICY_OF_OTHERS:
            return f"it waited as {fact.name}, and that policy on pool {pool} no longer speaks of it"
        case Code.PROFILE_GONE:
            return f"profile {fact.name} is no more"
        case Code.PROFILE_WITHDRAWN:
            return f"profile {fact.name} is no longer offered on pool {pool} by the policy of {who}"
        case Code.POOL_OUT_OF_REACH:
            return f"pool {fact.name} no longer takes work of the component that it runs on"
        case Code.POOL_GONE:
            return f"pool {fact.name} is no more"


def reasons(facts: Iterable[Reason], names: Names) -> str:
    """What several reasons say, each sentence once: two candidates in one pool may fail for the same."""
    return "; ".join(dict.fromkeys(reason(fact, names) for fact in facts))


def _waits_for_window(fact: Reason, names: Names) -> str:
    what = "reserves" if fact.limit is None else "allows"
    now = _amount(fact.reserved if fact.limit is None else fact.limit)
    later = "without a limit" if fact.possible is None else f"up to {_amount(fact.possible)}"
    until = f", next change {_moment(fact.opens_at)}" if fact.opens_at is not None else ""
    policy = f"the policy of {names.policy(fact.policy)} on {names.where(fact)}"
    asked = f"{_amount(fact.asked)} {fact.key}"
    return f"{policy} {what} {now} {fact.key} at this time and {later} at others{until}; {asked} asked for"


def _moment(at: Instant) -> str:
    return datetime.fromtimestamp(at // SECOND, tz=UTC).strftime("%Y-%m-%d %H:%M UTC")


def summary(explanation: Explanation, names: Names) -> str:
    """The whole explanation in one sentence."""
    held = explanation.allocation
    if explanation.status is Status.QUEUED:
        if explanation.eviction is not None:
            count = len(explanation.eviction.victims)
            return f"waits while {count} {'request lets' if count == 1 else 'requests let'} go to make room for it"
        if not explanation.candidates:
            return "waits for the next decision"
        best = min(explanation.candidates, key=lambda view: view.position)
        told = reasons(best.reasons, names)
        return f"waits, {ordinal(best.position)} in line for pool {names.pool(best.pool)}: {told}"
    if explanation.status is Status.REJECTED:
        return "can never run: " + reasons(explanation.reasons, names)
    if explanation.status is Status.CANCELLED and explanation.reasons:
        return "has lost its right to wait: " + reasons(explanation.reasons, names)
    if explanation.status is Status.PREEMPTING and explanation.eviction is not None:
        return f"has been told to let go ({explanation.eviction.because.value})"
    if held is not None and held.pool is not None:
        return f"holds its resources in pool {names.pool(held.pool)} through the policy of {names.policy(held.policy)}"
    if held is not None:
        return "runs ungoverned: no policy speaks of the component that it runs on"
    return f"is {explanation.status.value}"


def helps(view: CandidateView, explanation: Explanation, names: Names) -> list[str]:
    """What would let the request start in that candidate."""
    codes = {fact.code for fact in view.reasons}
    told = []
    if Code.LIMIT_IN_USE in codes:
        told.append(f"other work of {names.policy(view.policy)} ends, or its limit is raised")
    if Code.RESERVATION_IN_USE in codes:
        told.append(f"firm work of {names.policy(view.policy)} ends, or more is reserved for it")
    for key, amount in view.missing:
        is_ = "is" if amount <= WHOLE else "are"
        told.append(f"{show(amount)} more {key} {is_} free in pool {names.pool(view.pool)}")
    if Code.WAITS_FOR_WINDOW in codes:
        told.append(f"the time comes at which the policy of {names.policy(view.policy)} allows more")
    if Code.FRAGMENTED in codes:
        told.append(f"units that lie together are free in pool {names.pool(view.pool)}, or smaller parts are asked for")
    if explanation.starts_if_preemptible:
        told.append("it may be interrupted: with preemptible set it would start now")
    return told


def ordinal(number: int) -> str:
    """``1st``, ``2nd``, ``11th``."""
    if 10 <= number % 100 <= 20:
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"


def _amount(thousandths: int | None) -> str:
    return "?" if thousandths is None else show(thousandths)

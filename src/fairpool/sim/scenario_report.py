"""Comparing what a scenario expects with what is, and telling the difference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fairpool.core import amounts
from fairpool.core.explain import Explanation, explain
from fairpool.core.ids import SECOND, PoolId
from fairpool.core.pools import healthy_capacity
from fairpool.core.reasons import Reason
from fairpool.core.requests import Status
from fairpool.sim.scenario_run import Run, Story
from fairpool.sim.scenario_values import ExpectAllocated, Expectation, ExpectOnlyAllocated, ExpectRequest, ExpectUsage


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An expectation that does not hold.

    step: counted from 1; 0 for what is checked at the end. explanation: why things are as they are, line by line.
    """

    scenario: str
    file: str
    line: int
    step: int
    at_s: float
    what: str
    expected: str
    found: str
    explanation: tuple[str, ...] = ()

    def lines(self) -> tuple[str, ...]:
        """The failure as people read it."""
        where = f"step {self.step}, " if self.step else ""
        return (
            f"FAILED {self.file}:{self.line}: {self.scenario} ({where}at {self.at_s:g} s)",
            f"  {self.what}" if self.what else "  at all times",
            f"    expected: {self.expected}",
            f"    found:    {self.found}",
            *(f"    {line}" for line in self.explanation),
        )


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not as expected."""

    what: str
    expected: str
    found: str
    request: str = ""


def differences(run: Run, expectation: Expectation) -> Iterator[Difference]:
    """Everything about one expectation that does not hold now."""
    match expectation:
        case ExpectOnlyAllocated():
            held = {name for name, story in run.stories.items() if story.status is Status.ALLOCATED}
            if held != expectation.requests:
                odd = sorted(held ^ expectation.requests)
                yield Difference("only_allocated", _names(expectation.requests), _names(held), odd[0])
        case ExpectAllocated():
            count = sum(run.stories[name].status is Status.ALLOCATED for name in expectation.requests)
            if count != expectation.count:
                yield Difference(f"allocated of {expectation.name}", str(expectation.count), str(count))
        case ExpectUsage():
            pool = PoolId(expectation.pool)
            used = run.world.usage(pool) if pool in run.world.pools else {}
            for key, value in expectation.usage:
                if used.get(key, 0) != value:
                    what = f"usage of {key} in {expectation.pool}"
                    yield Difference(what, amounts.show(value), amounts.show(used.get(key, 0)))
        case ExpectRequest():
            story = run.stories[expectation.request]
            for aspect, expected, found in _aspects(run, story, expectation):
                if expected != found:
                    yield Difference(f"{expectation.request}: {aspect}", expected, found, expectation.request)


def _aspects(run: Run, story: Story, wanted: ExpectRequest) -> Iterator[tuple[str, str, str]]:
    """What is asked about a request: (aspect, expected, found)."""
    if wanted.status is not None:
        yield "status", wanted.status, story.status
    yield from _place_aspects(run, story, wanted)
    eviction = story.eviction
    if wanted.evicted_for is not None:
        cause = run.names.get(eviction.cause, "") if eviction is not None and eviction.cause is not None else ""
        yield "for", wanted.evicted_for, cause or "nobody"
    if wanted.because is not None:
        yield "because", wanted.because, eviction.because if eviction is not None else "nothing"
    if wanted.reasons is not None:
        yield "reasons", _names(wanted.reasons), _names({reason.code for reason in reasons_of(run, story)})


def _place_aspects(run: Run, story: Story, wanted: ExpectRequest) -> Iterator[tuple[str, str, str]]:
    held = story.allocation
    parts = held.parts if held is not None else ()
    if wanted.pool is not None:
        yield "pool", wanted.pool, str(held.pool) if held is not None and held.pool is not None else "none"
    if wanted.policy is not None:
        through = held.policy if held is not None else None
        policy = run.world.policies.get(through) if through is not None else None
        known_as = through.partition("/")[2] if through is not None else "none"  # of one that was dropped
        yield "policy", str(wanted.policy), str(policy.subject) if policy is not None else known_as
    if wanted.node is not None:
        yield "node", wanted.node, _names({part.node for part in parts}) or "none"
    if wanted.nodes is not None:
        yield "nodes", _names(wanted.nodes), _names(part.node for part in parts)
    if wanted.devices is not None:
        yield (
            "devices",
            str(wanted.devices),
            str(len({(part.node, index) for part in parts for index, _ in part.devices})),
        )


def reasons_of(run: Run, story: Story) -> tuple[Reason, ...]:
    """Why a request was rejected or the rules cancelled it, or why it waits; () for any other."""
    if story.status is Status.QUEUED:
        return explain(run.world, story.id, run.now).reasons
    return story.reasons


def _names(values: object) -> str:
    return ", ".join(sorted(str(value) for value in values))  # type: ignore[attr-defined]


# ---- explaining -----------------------------------------------------------------------------------------------------


def explanation(run: Run, request: str) -> tuple[str, ...]:
    """Why a request is where it is, and how full the pools are."""
    lines = [*_about(run, request)] if request in run.stories else []
    for pool in run.world.pools.values():
        used = run.world.usage(pool.id)
        keys = sorted({*used, *(key for key, _ in healthy_capacity(pool))})
        shown = (f"{key} {amounts.show(used.get(key, 0))} of {amounts.show(amounts.get(healthy_capacity(pool), key))}"
                 for key in keys)  # fmt: skip
        lines.append(f"pool {pool.name}: {', '.join(shown) or 'empty'} in use")
    return tuple(run.named(line) for line in lines)


def _about(run: Run, request: str) -> Iterator[str]:
    story = run.stories[request]
    if story.eviction is not None:
        left_s = (story.eviction.deadline_at - run.now) / SECOND
        when = f", {left_s:g} s left" if story.status is Status.PREEMPTING else ""
        yield f"{request} had to let go for {story.eviction.cause or 'the operator'} ({story.eviction.because}{when})"
    if story.status is Status.QUEUED:
        yield from _about_waiting(request, explain(run.world, story.id, run.now))
    elif story.reasons:
        yield from (f"{request} was {story.status}: {tell(reason)}" for reason in story.reasons)
    elif story.allocation is not None:
        held = story.allocation
        since = f"at {held.granted_at / SECOND:g} s"
        yield f"{request} was granted in {held.pool or 'no pool'} through {held.policy or 'no policy'} {since}"


def _about_waiting(request: str, why: Explanation) -> Iterator[str]:
    for view in why.candidates:
        right = "entitled" if view.entitled else "borrowing"
        yield f"{request} is number {view.position} in {view.pool}, {right}"
        yield from (f"  {tell(reason)}" for reason in view.reasons)
    yield from (f"  impossible: {tell(reason)}" for reason in why.refused)
    if why.eviction is not None:
        yield f"  {', '.join(why.eviction.victims)} must let go for it ({why.eviction.because})"


def tell(reason: Reason) -> str:
    """A reason with its numbers, in one line."""
    numbers = {
        "asked": reason.asked,
        "possible": reason.possible,
        "free": reason.free,
        "used": reason.used,
        "reserved": reason.reserved,
        "limit": reason.limit,
    }
    told = [f"{name} {amounts.show(value)}" for name, value in numbers.items() if value is not None]
    where = f" in {reason.pool}" if reason.pool else ""
    who = [f"for {reason.blocker}"] if reason.blocker else [reason.name] if reason.name else []
    key = f" {reason.key}" if reason.key else ""
    detail = ", ".join([*told, *who])
    return f"{reason.code}{where}:{key} {detail}".rstrip(": ") if detail or key else f"{reason.code}{where}"

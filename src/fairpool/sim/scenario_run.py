"""Playing a scenario: virtual time from 0, the real core, and a clean audit after every step."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from fairpool.core import events as ev
from fairpool.core.audit import audit
from fairpool.core.errors import IllegalTransition, InvalidInput, UnknownObject
from fairpool.core.ids import SECOND, Instant, PoolId, RequestId
from fairpool.core.plan import Plan
from fairpool.core.planner import decide, plan
from fairpool.core.pools import Pool, PoolState
from fairpool.core.reasons import Reason
from fairpool.core.requests import Allocation, Eviction, Request, Status
from fairpool.core.world import World
from fairpool.sim.scenario_reading import ScenarioFileError
from fairpool.sim.scenario_values import (
    Deed,
    DrainPool,
    DropPolicy,
    DropPool,
    DropProfile,
    End,
    EvictBorrowers,
    GivePolicy,
    Redirect,
    RuleAction,
    Scenario,
    SetCapacity,
    SetNode,
    SetPolicy,
    SetProfile,
    Step,
    Submit,
)

MAX_ROUNDS = 20  # of planning after one step: a decision is complete at once, so that a second round changes nothing


START = Instant(0)


class Broken(Exception):
    """Something that must always hold did not: what, and what was found instead."""

    def __init__(self, expected: str, found: str, request: str = "") -> None:
        super().__init__(f"{expected}: {found}")
        self.expected = expected
        self.found = found
        self.request = request


@dataclass(slots=True)
class Story:
    """What is known of one request, under the name that the file gives it."""

    id: RequestId
    first_queued_at: Instant
    status: Status = Status.QUEUED
    reasons: tuple[Reason, ...] = ()  # why it was rejected, or cancelled by the rules
    allocation: Allocation | None = None  # what it holds, or held last
    eviction: Eviction | None = None  # that it lets go, or had to


@dataclass(slots=True)
class Run:
    """One scenario under way."""

    scenario: Scenario
    world: World = field(default_factory=World)
    now: Instant = START
    stories: dict[str, Story] = field(default_factory=dict)
    names: dict[RequestId, str] = field(default_factory=dict)
    latest: Plan = field(default_factory=lambda: Plan(at=START))

    def set_up(self) -> None:
        """Let the rules of the scenario come into force."""
        for event in self.scenario.setup:
            self.world.apply(event, self.now)
        self._settle()

    def play(self, step: Step) -> None:
        """Move the time, let the step's deeds happen at once, and plan. Raises Broken, or ScenarioFileError where the
        deeds contradict the rules that are in force by then."""
        target = self.now + step.advance if step.at is None else step.at
        if target < self.now:
            raise ScenarioFileError(
                f"lies before the time of the step before ({self.now / SECOND:g} s)",
                file=self.scenario.file,
                line=step.line,
                key=f"steps[{step.number - 1}].at",
            )
        self._pass_time_until(Instant(target))
        for deed in step.deeds:
            self._let_happen(deed)
        self._settle()

    def finish(self) -> None:
        """The check at every scenario's end: planning again changes nothing, after a restart neither."""
        for world, when in ((self.world, "again"), (self.world.copy(), "again after a restart")):
            more = plan(world, self.now)
            if not more.is_empty:
                raise Broken(f"planning {when} changes nothing (S33)", _summary(more, self.names))

    # ---- time and planning ------------------------------------------------------------------------------------------

    def _pass_time_until(self, target: Instant) -> None:
        """Stop wherever time alone changes something: grace periods, waits and minimum run times that end."""
        while self.latest.wake_at is not None and self.latest.wake_at < target:
            if self.latest.wake_at <= self.now:
                raise Broken("the planner wants to be woken later than now", f"wake_at {self.latest.wake_at}")
            self.now = self.latest.wake_at
            self._settle()
        self.now = target

    def _settle(self) -> None:
        for _ in range(MAX_ROUNDS):
            self.latest = decide(self.world, self.now)
            self._record(self.latest)
            if self.latest.is_empty:
                break
        else:
            raise Broken(f"{MAX_ROUNDS} rounds of planning come to rest (S33)", _summary(self.latest, self.names))
        violations = audit(self.world, self.now)
        if violations:
            found = "; ".join(f"{violation.invariant}: {violation.text}" for violation in violations)
            raise Broken("the audit finds nothing", self.named(found))

    def _record(self, made: Plan) -> None:
        for finish in made.finishes:
            self.story_of(finish.request).status = finish.status
        for reject in made.rejects:
            story = self.story_of(reject.request)
            story.status, story.reasons = Status.REJECTED, reject.reasons
        for cancel in made.cancels:
            story = self.story_of(cancel.request)
            story.status, story.reasons = Status.CANCELLED, cancel.reasons
        for grant in made.grants:
            story = self.story_of(grant.request)
            story.status, story.allocation = Status.ALLOCATED, grant.allocation
        for evict in made.evictions:
            story = self.story_of(evict.request)
            story.status = Status.PREEMPTING
            story.eviction = Eviction(cause=evict.cause, because=evict.because, deadline_at=evict.deadline_at)

    def story_of(self, request: RequestId) -> Story:
        """The story of a request by the core's id for it."""
        return self.stories[self.names[request]]

    def named(self, text: str) -> str:
        """A text of the core with its ids replaced by the names that the file gives."""
        for request, name in self.names.items():
            text = text.replace(request, name)
        return text

    # ---- deeds ------------------------------------------------------------------------------------------------------

    def _let_happen(self, deed: Deed) -> None:
        action = deed.action
        try:
            if isinstance(action, Submit):
                self._submit(action.request, deed)
            elif isinstance(action, End):
                self._end(action)
            else:
                self.world.apply(self._rule_event(action), self.now)
        except InvalidInput as error:
            key = f"{deed.key}.{error.field}" if error.field else deed.key
            raise ScenarioFileError(error.message, file=self.scenario.file, line=deed.line, key=key) from None
        except (UnknownObject, IllegalTransition) as error:
            told = self.named(str(error))
            raise ScenarioFileError(told, file=self.scenario.file, line=deed.line, key=deed.key) from None

    def _submit(self, asked: Request, deed: Deed) -> None:
        before = self.stories.get(asked.id)
        if before is not None and before.status is not Status.PREEMPTED:
            raise ScenarioFileError(
                f"request {asked.id!r} was submitted before and is {before.status}: only a preempted one queues again",
                file=self.scenario.file,
                line=deed.line,
                key=f"{deed.key}.id",
            )
        # Ids that sort by arrival: the last criterion of every order is the id (S23). A retry keeps its place (S24).
        identity = RequestId(f"{before.id}+" if before is not None else f"{len(self.names):06d}-{asked.id}")
        first = before.first_queued_at if before is not None else self.now
        self.names[identity] = asked.id
        self.stories[asked.id] = Story(id=identity, first_queued_at=first)
        self.world.apply(ev.Submitted(request=replace(asked, id=identity, queued_at=first)), self.now)

    def _end(self, action: End) -> None:
        story = self.stories[action.request]
        if story.status is Status.PREEMPTED and action.how is Status.RELEASED:
            return  # its owner lets go of what the deadline has taken: late, and no harm done
        if story.status.is_final:
            raise Broken(f"{action.request} can be {action.how}", f"it is {story.status}", action.request)
        try:
            changes = self.world.apply(ev.Ended(request=story.id, how=action.how), self.now)
        except IllegalTransition:
            raise Broken(f"{action.request} can be {action.how}", f"it is {story.status}", action.request) from None
        story.status = changes[-1].after

    def _rule_event(self, action: RuleAction) -> ev.Event:
        match action:
            case SetPolicy():
                return ev.PolicySet(policy=action.policy)
            case DropPolicy():
                return ev.PolicyDropped(policy=action.policy)
            case GivePolicy():
                return ev.PolicySet(policy=replace(self.world.policies[action.policy], subject=action.to))
            case SetProfile():
                return ev.ProfileSet(profile=action.profile)
            case DropProfile():
                return ev.ProfileDropped(name=action.name)
            case Redirect():
                return ev.Redirected(request=self._redirected(action))
            case EvictBorrowers():
                return ev.BorrowersEvicted(pool=PoolId(action.pool))
            case DropPool():
                return ev.PoolDropped(pool=PoolId(action.pool))
            case _:
                pool = self.world.pools.get(PoolId(action.pool))
                if pool is None:
                    raise UnknownObject("pool", action.pool)
                return ev.PoolSet(pool=_changed(pool, action))

    def _redirected(self, action: Redirect) -> Request:
        request = self.world.request(self.stories[action.request].id)
        return replace(
            request,
            subjects=request.subjects if action.subjects is None else action.subjects,
            profile=request.profile if action.profile is None else action.profile,
            pool=request.pool if action.pool is None else action.pool,
        )


def _changed(pool: Pool, action: SetCapacity | SetNode | DrainPool) -> Pool:
    match action:
        case SetCapacity():
            capacity = {**dict(pool.capacity), **dict(action.capacity)}
            return replace(pool, capacity=tuple(sorted((key, value) for key, value in capacity.items() if value)))
        case SetNode():
            nodes = tuple(
                replace(node, state=action.state) if node.name == action.name else node for node in pool.nodes
            )
            return replace(pool, nodes=nodes)
        case DrainPool():
            return replace(pool, state=PoolState.DRAINING)


def _summary(made: Plan, names: dict[RequestId, str]) -> str:
    """What a plan would change, in short."""
    parts = {
        "ends": [finish.request for finish in made.finishes],
        "rejects": [reject.request for reject in made.rejects],
        "cancels": [cancel.request for cancel in made.cancels],
        "grants": [grant.request for grant in made.grants],
        "evicts": [evict.request for evict in made.evictions],
        "keeps room for": [claim.request for claim in made.claims],
        "keeps no room for": list(made.unclaims),
    }
    told = (f"{what} {', '.join(names.get(one, one) for one in who)}" for what, who in parts.items() if who)
    return f"it {'; '.join(told)}"

"""One round's changes: what commands and the decision say, in memory at once and in the batch to be committed."""

from __future__ import annotations

from dataclasses import replace

from fairpool.app.memory import Memory
from fairpool.app.ports import IdSource, Reader
from fairpool.app.records import (
    AnyDeclared,
    Batch,
    Change,
    Document,
    Grant,
    KeyUse,
    Kind,
    Lease,
    RequestRecord,
    RunRecord,
    State,
    StepRecord,
    TokenRecord,
    WebhookCursor,
)
from fairpool.core.events import Event
from fairpool.core.ids import SECOND, Instant, RequestId
from fairpool.core.plan import Evict, Plan
from fairpool.core.reasons import Reason
from fairpool.core.requests import Eviction, Request, Status
from fairpool.core.world import World

SCHEDULER = "scheduler"


class Transaction:
    """Changes of one round. Everything here changes memory; nothing is true until the batch is committed."""

    def __init__(self, memory: Memory, ids: IdSource, reader: Reader, now: Instant) -> None:
        self.memory = memory
        self.ids = ids
        self.reader = reader
        self.now = now
        self.actor = SCHEDULER  # who is acting, and from where: set for each command
        self.source = ""
        self.writes = 0  # how much was changed: tells whether a command that failed had begun
        self._put: dict[tuple[Kind, str], AnyDeclared] = {}
        self._drop: dict[tuple[Kind, str], None] = {}
        self._inserted: dict[RequestId, RequestRecord] = {}
        self._updated: dict[RequestId, State] = {}
        self._runs: dict[str, RunRecord] = {}
        self._steps: dict[str, StepRecord] = {}
        self._keys: dict[tuple[Kind, str], KeyUse] = {}
        self._redirected: dict[RequestId, Request] = {}
        self._tokens: dict[str, TokenRecord] = {}
        self._changes: list[Change] = []
        self._cursors: dict[str, WebhookCursor] = {}
        self._sequence = memory.world.sequence
        memory.ended.clear()

    @property
    def world(self) -> World:
        """The core's world."""
        return self.memory.world

    def apply(self, event: Event) -> None:
        """Let something happen in the world. Raises what the core raises, and has then changed nothing."""
        self.world.apply(event, self.now)
        self.writes += 1

    def note(
        self,
        kind: Kind,
        object_id: str,
        what: str,
        *,
        name: str = "",
        cause: str = "",
        before: Document | None = None,
        after: Document | None = None,
        run: str = "",
    ) -> None:
        """Write a line of history."""
        self.writes += 1
        self._changes.append(
            Change(
                at=self.now,
                kind=kind,
                object=object_id,
                what=what,
                name=name,
                actor=self.actor,
                source=self.source,
                cause=cause,
                before=before or {},
                after=after or {},
                run=run,
            )
        )

    # ---- declared objects, runs, steps, keys ------------------------------------------------------------------------

    def put(self, declared: AnyDeclared) -> None:
        """An object appears or takes the place of the one with its id."""
        self.writes += 1
        self.memory.put(declared)
        self._put[declared.kind, declared.id] = declared

    def drop(self, kind: Kind, object_id: str) -> None:
        """An object goes."""
        self.writes += 1
        self.memory.drop(kind, object_id)
        self._put.pop((kind, object_id), None)
        self._drop[kind, object_id] = None

    def report_run(self, run: RunRecord) -> None:
        """A run appears or changes."""
        self.writes += 1
        self._runs[run.id] = run

    def report_step(self, step: StepRecord) -> None:
        """A step appears or changes."""
        self.writes += 1
        self._steps[step.id] = step

    def put_cursor(self, cursor: WebhookCursor) -> None:
        """A webhook's receiver has been told further, or could not be."""
        self.writes += 1
        self._cursors[cursor.name] = cursor

    def put_token(self, token: TokenRecord) -> None:
        """A token appears, or takes the place of the one with its id."""
        self.writes += 1
        self._tokens[token.id] = token

    def tokens(self, owner: str = "") -> list[TokenRecord]:
        """The workspace's tokens as this round has changed them already."""
        known = {token.id: token for token in self.reader.tokens.all(owner)} | self._tokens
        return [token for token in known.values() if owner in ("", token.owner)]

    def token(self, token_id: str) -> TokenRecord | None:
        """A token as this round has changed it already."""
        return self._tokens.get(token_id) or self.reader.tokens.get(token_id)

    def run_in_progress(self, run: str) -> RunRecord | None:
        """A run as this round has changed it already."""
        return self._runs.get(run)

    def step_in_progress(self, step: str) -> StepRecord | None:
        """A step as this round has changed it already."""
        return self._steps.get(step)

    def use_key(self, kind: Kind, key: str, object_id: str, fingerprint: str) -> None:
        """Remember what an idempotency key was used for."""
        self._keys[kind, key] = KeyUse(key=key, kind=kind, object=object_id, fingerprint=fingerprint, at=self.now)

    def key(self, kind: Kind, key: str) -> KeyUse | None:
        """What an idempotency key was used for, in this round or before."""
        return self._keys.get((kind, key)) or self.reader.requests.key(kind, key)

    # ---- requests ---------------------------------------------------------------------------------------------------

    def insert(self, record: RequestRecord) -> None:
        """A request arrives, and is queued in the world."""
        self.memory.arrive(record)
        self._inserted[record.id] = record
        said = record.submission
        self.note(Kind.REQUEST, record.id, "queued", name=said.name, cause="submitted", run=said.run)

    def redirect(self, request: Request) -> None:
        """A queued request is from now on made as others, or for another profile or pool; the world knows already."""
        self.writes += 1
        self.memory.redirect(request)
        self._redirected[request.id] = request

    def end(self, request: RequestId, status: Status, *, cause: str, ended_by: str) -> None:
        """A request has become final; the world knows already."""
        record = self.memory.leave(request)
        old = record.state
        state = replace(old, status=status, version=old.version + 1, claim=None, ended_at=self.now, ended_by=ended_by)
        self.memory.ended[request] = self._set(record, state)
        self._tell(record, status, cause)

    def restate(self, request: RequestId, state: State, *, cause: str, after: Document | None = None) -> None:
        """A request that lives on is in another status."""
        record = self.memory.live[request]
        changed = record.state.status is not state.status
        self.memory.live[request] = self._set(record, replace(state, version=record.state.version + 1))
        if changed:
            self._tell(record, state.status, cause, after)

    def _set(self, record: RequestRecord, state: State) -> RequestRecord:
        self.writes += 1
        record = replace(record, state=state)
        if record.id in self._inserted:
            self._inserted[record.id] = record
        else:
            self._updated[record.id] = state
        return record

    def _tell(self, record: RequestRecord, status: Status, cause: str, after: Document | None = None) -> None:
        said = record.submission
        self.note(Kind.REQUEST, record.id, status.value, name=said.name, cause=cause, after=after, run=said.run)

    # ---- the decision -----------------------------------------------------------------------------------------------

    def carry_out(self, plan: Plan) -> None:
        """Write down what the world has done already."""
        self.actor = SCHEDULER
        for finish in plan.finishes:
            self.end(finish.request, finish.status, cause="grace period over", ended_by=SCHEDULER)
        for reject in plan.rejects:
            self._ended_for(reject.request, Status.REJECTED, reject.reasons)
        for cancel in plan.cancels:
            self._ended_for(cancel.request, Status.CANCELLED, cancel.reasons)
        for grant in plan.grants:
            self._granted(grant.request)
        for evict in plan.evictions:
            self._evicted(evict)
        for claim in plan.claims:
            state = self.memory.live[claim.request].state
            self.restate(claim.request, replace(state, claim=claim), cause="")
        for request in plan.unclaims:
            waiting = self.memory.live.get(request)
            if waiting is not None and waiting.state.claim is not None:
                self.restate(request, replace(waiting.state, claim=None), cause="")

    def _ended_for(self, request: RequestId, status: Status, reasons: tuple[Reason, ...]) -> None:
        record = self.memory.live[request]
        self.memory.live[request] = replace(record, state=replace(record.state, reasons=reasons))
        codes = ", ".join(sorted({reason.code.value for reason in reasons}))
        self.end(request, status, cause=codes, ended_by=SCHEDULER)

    def _granted(self, request: RequestId) -> None:
        held = self.world.allocations[request]
        memory = self.memory
        memory.runtimes.granted(held.request, held.granted_at)
        memory.start(request)
        grant = Grant.of(held, pool_name=memory.pool_name(held.pool), subject=memory.subject_of(held.policy))
        state = replace(
            memory.live[request].state, status=Status.ALLOCATED, grant=replace(grant, eviction=None), claim=None
        )
        if grant.pool is None:
            cause = "ungoverned: no policy speaks of its component"
        else:
            cause = f"pool {grant.pool_name}, policy of {grant.subject}"
        self.restate(request, state, cause=cause)

    def _evicted(self, evict: Evict) -> None:
        state = self.memory.live[evict.request].state
        assert state.grant is not None
        eviction = Eviction(cause=evict.cause, because=evict.because, deadline_at=evict.deadline_at)
        what = f"{evict.because.value} for request {evict.cause}" if evict.cause else f"{evict.because.value}: operator"
        after: Document = {"deadline_at_s": evict.deadline_at // SECOND}
        grant = replace(state.grant, eviction=eviction)
        self.restate(evict.request, replace(state, status=Status.PREEMPTING, grant=grant), cause=what, after=after)

    def batch(self, renewed: tuple[tuple[RequestId, Lease], ...]) -> Batch:
        """Everything that this round changed."""
        sequence = self.world.sequence
        return Batch(
            put=tuple(self._put.values()),
            drop=tuple(self._drop),
            inserted=tuple(self._inserted.values()),
            updated=tuple(self._updated.items()),
            renewed=tuple(pair for pair in renewed if pair[0] in self.memory.live),
            redirected=tuple(self._redirected.values()),
            tokens=tuple(self._tokens.values()),
            runs=tuple(self._runs.values()),
            steps=tuple(self._steps.values()),
            keys=tuple(self._keys.values()),
            changes=tuple(self._changes),
            cursors=tuple(self._cursors.values()),
            sequence=None if sequence == self._sequence else sequence,
        )

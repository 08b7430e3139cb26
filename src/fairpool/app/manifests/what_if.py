"""Trying rules out: on a copy of everything that the scheduler knows, with what it would then decide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count

from fairpool.app.manifests.carrying_out import Uses, carry_out
from fairpool.app.manifests.values import Affected, Changes, Effect, Key, Scope
from fairpool.app.memory import Memory
from fairpool.app.ports import Reader, Stored
from fairpool.app.records import DECLARED, Kind, RequestRecord
from fairpool.app.sentences import Names, reasons, shortage
from fairpool.app.shortages import shortages
from fairpool.app.transaction import Transaction
from fairpool.core.ids import Instant, RequestId
from fairpool.core.planner import decide
from fairpool.core.requests import Status

MAX_DECISIONS = 100
"""Decisions until a copy is at rest; only grace periods of zero seconds need more than two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What came of trying. along: objects that went, came or changed though no document says so. warnings: what pools
    have too little of then and had enough of before, in words."""

    effects: tuple[Effect, ...]
    along: tuple[tuple[Kind, str, str], ...]
    warnings: tuple[str, ...] = ()


class _TrialIds:
    """Ids that nobody has drawn, and that end with the copy."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def new(self, kind: Kind) -> str:
        """See `ports.IdSource`."""
        return f"~{kind.value}-{next(self._numbers):06d}"


def frozen(memory: Memory) -> Stored:
    """All that is known, as values that no later round changes."""
    return Stored(
        snapshot=memory.world.snapshot(),
        live=dict(memory.live),
        declared=tuple(declared for kind in DECLARED for declared in memory.all(kind)),
        history_seq=memory.history_seq,
    )


def attempt(
    stored: Stored, reader: Reader, now: Instant, changes: Changes, scope: Scope, uses: Mapping[Kind, Uses]
) -> Trial:
    """What the changes would do to work that waits or runs. Raises Refusals where they cannot be made."""
    memory = Memory(stored, now)
    ids = _TrialIds()
    settle(Transaction(memory, ids, reader, now), now)  # what is due anyway is not their doing
    before, objects = dict(memory.live), _objects(memory)
    names, short = _names(memory), set(shortages(memory, now))
    tx = Transaction(memory, ids, reader, now)
    carry_out(tx, changes, scope, uses)
    warnings = tuple(shortage(each) for each in shortages(memory, now) if each not in short)
    settle(tx, now)
    said = {change.key for change in changes.pending}
    names = _names(memory, names)
    causes = {RequestId(change.object): change.cause for change in tx.batch(()).changes if change.kind is Kind.REQUEST}
    return Trial(
        effects=tuple(_effects(before, memory, Names(*names), causes)),
        along=tuple(_along(objects, _objects(memory), said)),
        warnings=warnings,
    )


def settle(tx: Transaction, now: Instant) -> None:
    """Decide until nothing more follows at this moment."""
    for _ in range(MAX_DECISIONS):
        plan = decide(tx.world, now)
        tx.carry_out(plan)
        if plan.wake_at is None or plan.wake_at > now:
            return


def _objects(memory: Memory) -> dict[Key, int]:
    return {(kind, declared.name): declared.version for kind in DECLARED for declared in memory.all(kind)}


def _along(before: Mapping[Key, int], after: Mapping[Key, int], said: set[Key]) -> Iterator[tuple[Kind, str, str]]:
    for key in sorted({*before, *after} - said):
        if before.get(key) != after.get(key):
            what = "delete" if key not in after else "create" if key not in before else "change"
            yield *key, what


_Called = tuple[dict[str, str], dict[str, str]]
"""Names of pools and subjects of policies, by id."""


def _names(memory: Memory, older: _Called = ({}, {})) -> _Called:
    """How things are called now and, of those that are gone, were called."""
    pools, policies = older
    return (
        {**pools, **{pool.id: pool.name for pool in memory.all(Kind.POOL)}},
        {**policies, **{policy.id: memory.subject_of(policy.id) for policy in memory.all(Kind.POLICY)}},
    )


# ---- what happens to work --------------------------------------------------------------------------------------------


_OUTCOMES: Mapping[Status, str] = {
    Status.ALLOCATED: "starts",
    Status.PREEMPTING: "evicted",
    Status.PREEMPTED: "evicted",
    Status.REJECTED: "rejected",
    Status.CANCELLED: "cancelled",
    Status.EXPIRED: "expired",
}
ORDER = ("evicted", "rejected", "cancelled", "expired", "unaccounted", "starts")
"""What people want to read first."""


def _effects(
    before: Mapping[RequestId, RequestRecord], memory: Memory, names: Names, causes: Mapping[RequestId, str]
) -> Iterator[Effect]:
    found: dict[str, list[Affected]] = {}
    for request, old in before.items():
        new = memory.record(request)
        if new is None or new.state == old.state:
            continue
        outcome = _outcome(old, new)
        if outcome:
            found.setdefault(outcome, []).append(_affected(new, memory, names, causes.get(request, "")))
    for outcome in ORDER:
        if outcome in found:
            yield Effect(outcome=outcome, requests=tuple(found[outcome]))


def _outcome(old: RequestRecord, new: RequestRecord) -> str:
    if old.status is not new.status:
        return _OUTCOMES.get(new.status, "")
    was, now = old.state.grant, new.state.grant
    if was is not None and now is not None and was.pool is not None and now.pool is None:
        return "unaccounted"
    return ""


def _affected(record: RequestRecord, memory: Memory, names: Names, cause: str) -> Affected:
    grant = record.state.grant
    subject = grant.subject if grant is not None else ""
    return Affected(
        request=record.id,
        name=record.submission.name,
        subject=subject or ", ".join(str(subject) for subject in record.request.subjects),
        pool=grant.pool_name if grant is not None else record.request.pool,
        why=_why(record, memory, names, cause),
        demand=record.request.demand.total,
    )


def _why(record: RequestRecord, memory: Memory, names: Names, cause: str) -> str:
    state = record.state
    if state.status in (Status.REJECTED, Status.CANCELLED) and state.reasons:
        return reasons(state.reasons, names)
    eviction = state.grant.eviction if state.grant is not None else None
    if eviction is not None and eviction.cause is not None:
        claimant = memory.record(eviction.cause)
        name = claimant.submission.name if claimant is not None else ""
        return f"{eviction.because.value} for request {name or eviction.cause}"
    if eviction is not None:
        return eviction.because.value
    return "" if state.status is Status.ALLOCATED else cause

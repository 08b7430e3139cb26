"""Policies: attach, change, detach."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from fairpool.app import schedules
from fairpool.app.errors import Exists
from fairpool.app.memory import Memory
from fairpool.app.records import Declared, Document, Json, Kind
from fairpool.app.schedules import Scheduled, Windows
from fairpool.app.transaction import Transaction
from fairpool.app.use_cases import offers
from fairpool.app.use_cases.components import check_component
from fairpool.app.use_cases.declaring import changed, check_known, check_version, created, deleted
from fairpool.app.use_cases.windows import check_ahead
from fairpool.core import events as ev
from fairpool.core.amounts import Amounts, plain, plain_vector
from fairpool.core.errors import InvalidInput, InvalidRules
from fairpool.core.ids import PolicyId, PoolId
from fairpool.core.policies import Policy, Subject

PolicyRecord = Declared[Policy]
Answer = Callable[[], PolicyRecord]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyChange:
    """What changes of a policy; None leaves as it is. `all_profiles` offers all again.

    subject: whose it is from now on; who was meant before loses the right that it gave. also: all of the further pools
    over which it counts, by name, id or prefix. schedule: all of its windows.
    """

    subject: Subject | None = None
    also: tuple[str, ...] | None = None
    priority: int | None = None
    reserved: Amounts | None = None
    limit: tuple[tuple[str, int], ...] | None = None
    weight: int | None = None
    dedicated: bool | None = None
    grace_s: int | None = None
    min_runtime_s: int | None = None
    profiles: tuple[str, ...] | None = None
    all_profiles: bool = False
    schedule: Windows | None = None


_FIELDS = ("subject", "priority", "reserved", "limit", "weight", "dedicated", "grace_s", "min_runtime_s", "profiles")


def attach(
    tx: Transaction,
    pool: str,
    policy: Policy,
    *,
    also: Sequence[str] = (),
    schedule: Windows = (),
    dry_run: bool = False,
) -> Answer:
    """A policy on the pool that `pool` means, and on those of `also`, over which it then counts together; its id and
    pools are set here.

    Raises NotFound (pool, component, profile), Exists (one per subject and pool, S13), InvalidRules (S11).
    """
    target = tx.memory.pool(pool)
    name = f"{target.name}/{policy.subject}"
    further = _further(tx.memory, target.spec.id, also)
    policy = replace(policy, id=PolicyId(tx.ids.new(Kind.POLICY)), pool=target.spec.id, also=further)
    _check_subject(tx.memory, policy)
    check_known(tx.memory, Kind.PROFILE, policy.profiles or ())
    _check(tx, Scheduled(policy=policy, windows=schedule))
    note = schedules.note_with({}, schedule, schedules.open_at(schedule, tx.now))
    trial = Declared(
        kind=Kind.POLICY, id=policy.id, name=name, spec=policy, created_at=tx.now, updated_at=tx.now, note=note
    )
    if dry_run:
        return lambda: trial
    tx.apply(ev.PolicySet(policy=schedules.in_force(trial, tx.now)))
    record = created(tx, Kind.POLICY, policy.id, name, policy, note=note, shown=shown(policy, note))
    return lambda: record


def update(
    tx: Transaction, ref: str, change: PolicyChange, *, version: int | None = None, dry_run: bool = False
) -> Answer:
    """A policy changes. Raises NotFound, Ambiguous, Stale, Exists, InvalidRules."""
    old = tx.memory.policy(ref)
    check_version(old, version)
    pick = {name: value for name in _FIELDS if (value := getattr(change, name)) is not None}
    policy = replace(old.spec, **pick)
    if change.also is not None:
        policy = replace(policy, also=_further(tx.memory, policy.pool, change.also))
    if change.all_profiles:
        policy = replace(policy, profiles=None)
    name = f"{tx.memory.pool_name(policy.pool)}/{policy.subject}"
    if (policy.subject, policy.pools) != (old.spec.subject, old.spec.pools):
        _check_subject(tx.memory, policy)
    check_known(tx.memory, Kind.PROFILE, change.profiles or ())
    windows = schedules.windows_in(old.note) if change.schedule is None else change.schedule
    _check(tx, Scheduled(policy=policy, windows=windows))
    note = schedules.note_with(old.note, windows, schedules.open_at(windows, tx.now))
    trial = replace(old, spec=policy, name=name, note=note)
    if dry_run:
        return lambda: trial
    tx.apply(ev.PolicySet(policy=schedules.in_force(trial, tx.now)))
    before, after = shown(old.spec, old.note), shown(policy, note)
    record = changed(tx, old, policy, name=name, note=note, before=before, after=after)
    return lambda: record


def _further(memory: Memory, pool: PoolId, refs: Sequence[str]) -> tuple[PoolId, ...]:
    """The further pools of a policy. Raises NotFound, Ambiguous, InvalidRules where one is named twice."""
    named = [pool]
    for ref in refs:
        found = memory.pool(ref)
        if found.spec.id in named:
            raise InvalidRules(
                f"pool {found.name!r} is named twice", field="also", value=ref, possible="each pool once"
            )
        named.append(found.spec.id)
    return tuple(named[1:])


def _check_subject(memory: Memory, policy: Policy) -> None:
    check_component(memory, policy.subject)
    for pool in policy.pools:
        if any(other.spec.subject == policy.subject for other in memory.policies_of(pool) if other.id != policy.id):
            name = f"{memory.pool_name(pool)}/{policy.subject}"
            raise Exists("policy", name, hint="one per subject and pool; 'fairpool policy update' changes it")


def _check(tx: Transaction, scheduled: Scheduled) -> None:
    """Whether this can be a policy, at every moment of its schedule."""
    schedules.check_windows(scheduled.windows)
    for place, window in enumerate(scheduled.windows):
        try:
            window.over(scheduled.policy)
        except InvalidInput as error:
            raise error.at(f"{schedules.SCHEDULE}.{place}") from None
    limits = [version.limit for version in scheduled.versions]
    offers.check_offers(tx.memory, scheduled.policy, limits)
    check_ahead(tx.memory, tx.now, [scheduled])


def detach(tx: Transaction, ref: str, *, version: int | None = None, dry_run: bool = False) -> Answer:
    """A policy goes: what runs through it goes on; requests that lose their last right with it are cancelled (S17)."""
    old = tx.memory.policy(ref)
    check_version(old, version)
    if not dry_run:
        tx.apply(ev.PolicyDropped(policy=old.spec.id))
        deleted(tx, old, shown=shown(old.spec, old.note))
    return lambda: old


def shown(policy: Policy, note: Document) -> dict[str, Json]:
    """A policy as the history shows it."""
    windows: list[Json] = [schedules.plain_window(window) for window in schedules.windows_in(note)]
    return {
        "pool_ids": list(policy.pools),
        "subject": str(policy.subject),
        "priority": policy.priority,
        "reserved": plain_vector(policy.reserved),
        "limit": plain_vector(policy.limit),
        "weight": plain(policy.weight),
        "dedicated": policy.dedicated,
        "grace_s": policy.grace_s,
        "min_runtime_s": policy.min_runtime_s,
        "profiles": list(policy.profiles) if policy.profiles is not None else None,
        **({"schedule": windows} if windows else {}),
    }

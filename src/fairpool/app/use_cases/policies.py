"""Policies: attach, change, detach."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from fairpool.app.errors import Exists
from fairpool.app.records import Declared, Json, Kind
from fairpool.app.transaction import Transaction
from fairpool.app.use_cases import offers
from fairpool.app.use_cases.components import check_component
from fairpool.app.use_cases.declaring import changed, check_known, check_version, created
from fairpool.core import events as ev
from fairpool.core.amounts import Amounts, plain, plain_vector
from fairpool.core.ids import PolicyId
from fairpool.core.policies import Policy
from fairpool.core.rule_checks import check_changes

PolicyRecord = Declared[Policy]
Answer = Callable[[], PolicyRecord]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyChange:
    """What changes of a policy; None leaves as it is. `all_profiles` offers all again."""

    priority: int | None = None
    reserved: Amounts | None = None
    limit: tuple[tuple[str, int], ...] | None = None
    weight: int | None = None
    dedicated: bool | None = None
    grace_s: int | None = None
    min_runtime_s: int | None = None
    profiles: tuple[str, ...] | None = None
    all_profiles: bool = False


def attach(tx: Transaction, pool: str, policy: Policy, *, dry_run: bool = False) -> Answer:
    """A policy on the pool that `pool` means; its id and pool are set here.

    Raises NotFound (pool, component, profile), Exists (one per subject and pool, S13), InvalidRules (S11).
    """
    target = tx.memory.pool(pool)
    check_component(tx.memory, policy.subject)
    check_known(tx.memory, Kind.PROFILE, policy.profiles or ())
    name = f"{target.name}/{policy.subject}"
    if any(other.spec.subject == policy.subject for other in tx.memory.policies_of(target.spec.id)):
        raise Exists("policy", name, hint="one per subject and pool; 'fairpool policy update' changes it")
    policy = replace(policy, id=PolicyId(tx.ids.new(Kind.POLICY)), pool=target.spec.id)
    offers.check_offers(tx.memory, policy, [policy.limit])
    check_changes(tx.world, [ev.PolicySet(policy=policy)])
    if dry_run:
        trial = Declared(kind=Kind.POLICY, id=policy.id, name=name, spec=policy, created_at=tx.now, updated_at=tx.now)
        return lambda: trial
    tx.apply(ev.PolicySet(policy=policy))
    record = created(tx, Kind.POLICY, policy.id, name, policy, note={}, shown=shown(policy))
    return lambda: record


def update(
    tx: Transaction, ref: str, change: PolicyChange, *, version: int | None = None, dry_run: bool = False
) -> Answer:
    """A policy changes. Raises NotFound, Ambiguous, Stale, InvalidRules."""
    old = tx.memory.policy(ref)
    check_version(old, version)
    pick = {
        name: value
        for name in ("priority", "reserved", "limit", "weight", "dedicated", "grace_s", "min_runtime_s", "profiles")
        if (value := getattr(change, name)) is not None
    }
    check_known(tx.memory, Kind.PROFILE, change.profiles or ())
    policy = replace(old.spec, **pick)
    if change.all_profiles:
        policy = replace(policy, profiles=None)
    offers.check_offers(tx.memory, policy, [policy.limit])
    check_changes(tx.world, [ev.PolicySet(policy=policy)])
    if dry_run:
        return lambda: replace(old, spec=policy)
    tx.apply(ev.PolicySet(policy=policy))
    record = changed(tx, old, policy, before=shown(old.spec), after=shown(policy))
    return lambda: record


def detach(tx: Transaction, ref: str, *, version: int | None = None, dry_run: bool = False) -> Answer:
    """A policy goes: what runs through it goes on; requests that lose their last candidate are rejected (S17)."""
    old = tx.memory.policy(ref)
    check_version(old, version)
    if not dry_run:
        tx.apply(ev.PolicyDropped(policy=old.spec.id))
        tx.drop(Kind.POLICY, old.id)
        tx.note(Kind.POLICY, old.id, "deleted", name=old.name, before=shown(old.spec))
    return lambda: old


def shown(policy: Policy) -> dict[str, Json]:
    """A policy as the history shows it."""
    return {
        "subject": str(policy.subject),
        "priority": policy.priority,
        "reserved": plain_vector(policy.reserved),
        "limit": plain_vector(policy.limit),
        "weight": plain(policy.weight),
        "dedicated": policy.dedicated,
        "grace_s": policy.grace_s,
        "min_runtime_s": policy.min_runtime_s,
        "profiles": list(policy.profiles) if policy.profiles is not None else None,
    }

"""Rules as a store would give them back, for a world that begins with nothing but them."""

from __future__ import annotations

from collections.abc import Iterable

from fairpool.app.ports import Stored
from fairpool.app.records import AnyDeclared, Declared, Document, Kind
from fairpool.core.ids import Instant
from fairpool.core.policies import Policy, Profile
from fairpool.core.pools import Pool
from fairpool.core.world import Snapshot

_BEGINNING = Instant(0)


def rulebook(
    pools: Iterable[Pool],
    policies: Iterable[Policy] = (),
    profiles: Iterable[Profile] = (),
    *,
    require_policy: bool = False,
) -> Stored:
    """Pools, policies and profiles in force, with names for ids, and nobody waiting."""
    pools, policies, profiles = tuple(pools), tuple(policies), tuple(profiles)
    declared: list[AnyDeclared] = [_declared(Kind.POOL, pool.id, pool.name, pool) for pool in pools]
    names = {pool.id: pool.name for pool in pools}
    for policy in policies:
        declared.append(_declared(Kind.POLICY, policy.id, f"{names[policy.pool]}/{policy.subject}", policy))
    declared.extend(_declared(Kind.PROFILE, profile.id, profile.name, profile) for profile in profiles)
    snapshot = Snapshot(pools=pools, policies=policies, profiles=profiles, require_policy=require_policy)
    return Stored(snapshot=snapshot, live={}, declared=tuple(declared), history_seq=0)


def without_work(stored: Stored) -> Stored:
    """The same rules with nobody waiting or running."""
    snapshot = stored.snapshot
    rules = Snapshot(
        pools=snapshot.pools,
        policies=snapshot.policies,
        profiles=snapshot.profiles,
        require_policy=snapshot.require_policy,
    )
    return Stored(snapshot=rules, live={}, declared=stored.declared, history_seq=stored.history_seq)


def _declared(kind: Kind, object_id: str, name: str, spec: Pool | Policy | Profile | Document) -> AnyDeclared:
    return Declared(kind=kind, id=object_id, name=name, spec=spec, created_at=_BEGINNING, updated_at=_BEGINNING)

"""Profiles: named demands with pools in order of preference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from fairpool.app.records import Declared, Document, Json, Kind
from fairpool.app.transaction import Transaction
from fairpool.app.use_cases.declaring import changed, check_free, check_version, created
from fairpool.core import events as ev
from fairpool.core.amounts import Amounts, plain_vector
from fairpool.core.errors import InvalidInput, InvalidRules
from fairpool.core.ids import ProfileId
from fairpool.core.policies import Profile
from fairpool.core.requests import Demand

ProfileRecord = Declared[Profile]
Answer = Callable[[], ProfileRecord]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileChange:
    """What changes of a profile; None leaves as it is."""

    demand: Amounts | None = None
    pools: tuple[str, ...] | None = None
    description: str | None = None


def create(tx: Transaction, profile: Profile, *, description: str = "", dry_run: bool = False) -> Answer:
    """A new profile; its id is drawn here, its pools are given by name, id or prefix. Raises Exists, NotFound."""
    check_free(tx, Kind.PROFILE, profile.name)
    profile = _checked(tx, replace(profile, id=ProfileId(tx.ids.new(Kind.PROFILE))))
    note: Document = {"description": description} if description else {}
    if dry_run:
        trial = Declared(
            kind=Kind.PROFILE,
            id=profile.id,
            name=profile.name,
            spec=profile,
            created_at=tx.now,
            updated_at=tx.now,
            note=note,
        )
        return lambda: trial
    tx.apply(ev.ProfileSet(profile=profile))
    record = created(tx, Kind.PROFILE, profile.id, profile.name, profile, note=note, shown=shown(profile))
    return lambda: record


def update(
    tx: Transaction, ref: str, change: ProfileChange, *, version: int | None = None, dry_run: bool = False
) -> Answer:
    """A profile changes."""
    old = tx.memory.profile(ref)
    check_version(old, version)
    profile = _checked(
        tx,
        replace(
            old.spec,
            demand=old.spec.demand if change.demand is None else change.demand,
            pools=old.spec.pools if change.pools is None else change.pools,
        ),
    )
    note = old.note if change.description is None else {**old.note, "description": change.description}
    if dry_run:
        return lambda: replace(old, spec=profile, note=note)
    tx.apply(ev.ProfileSet(profile=profile))
    record = changed(tx, old, profile, note=note, before=shown(old.spec), after=shown(profile))
    return lambda: record


def delete(tx: Transaction, ref: str, *, version: int | None = None, dry_run: bool = False) -> Answer:
    """A profile goes; queued requests that ask for it are rejected."""
    old = tx.memory.profile(ref)
    check_version(old, version)
    if not dry_run:
        tx.apply(ev.ProfileDropped(name=old.name))
        tx.drop(Kind.PROFILE, old.id)
        tx.note(Kind.PROFILE, old.id, "deleted", name=old.name, before=shown(old.spec))
    return lambda: old


def rename_pool(tx: Transaction, name: str, names: Sequence[str]) -> None:
    """Profiles that name this pool name these in its place."""
    for declared in tx.memory.all(Kind.PROFILE):
        old = tx.memory.profile(declared.id)
        if name in old.spec.pools:
            pools = tuple(new for known in old.spec.pools for new in (names if known == name else (known,)))
            profile = replace(old.spec, pools=pools)
            tx.apply(ev.ProfileSet(profile=profile))
            changed(tx, old, profile, before=shown(old.spec), after=shown(profile))


def _checked(tx: Transaction, profile: Profile) -> Profile:
    try:
        Demand.of(profile.demand)  # refuses what no device could hold
    except InvalidInput as error:
        raise error.at("demand") from None
    if not profile.demand:
        raise InvalidRules("a profile asks for something", field="demand", possible='such as {"gpu": 1}')
    if not profile.pools:
        raise InvalidRules("a profile names at least one pool", field="pools", possible="names of pools, best first")
    names = tuple(dict.fromkeys(tx.memory.pool(ref).name for ref in profile.pools))
    return replace(profile, pools=names)


def shown(profile: Profile) -> dict[str, Json]:
    """A profile as the history shows it."""
    return {"demand": plain_vector(profile.demand), "pools": list(profile.pools)}

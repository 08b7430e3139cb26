"""Profiles: named demands with pools in order of preference, and defaults for requests that name them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from fairpool.app import schedules
from fairpool.app.records import Declared, Document, Json, Kind
from fairpool.app.transaction import Transaction
from fairpool.app.use_cases import offers
from fairpool.app.use_cases.declaring import changed, check_free, check_version, created, deleted
from fairpool.core import events as ev
from fairpool.core.amounts import Amounts, plain_vector
from fairpool.core.errors import InvalidInput, InvalidRules
from fairpool.core.ids import ProfileId
from fairpool.core.policies import Profile
from fairpool.core.requests import Demand

ProfileRecord = Declared[Profile]
Answer = Callable[[], ProfileRecord]


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """What a request that names the profile gets where it says nothing itself. They matter at submit only.

    preemptible, max_runtime_s: None for none. labels: those that the request does not carry under the same key.
    """

    preemptible: bool | None = None
    max_runtime_s: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileChange:
    """What changes of a profile; None leaves as it is. defaults: taken as a whole."""

    name: str | None = None
    demand: Amounts | None = None
    pools: tuple[str, ...] | None = None
    defaults: Defaults | None = None
    description: str | None = None


def create(
    tx: Transaction, profile: Profile, *, defaults: Defaults | None = None, description: str = "", dry_run: bool = False
) -> Answer:
    """A new profile; its id is drawn here, its pools are given by name, id or prefix. Raises Exists, NotFound."""
    check_free(tx, Kind.PROFILE, profile.name)
    profile = _checked(tx, replace(profile, id=ProfileId(tx.ids.new(Kind.PROFILE))))
    note = _note({}, defaults, description or None)
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
    record = created(tx, Kind.PROFILE, profile.id, profile.name, profile, note=note, shown=shown(profile, note))
    return lambda: record


def update(
    tx: Transaction, ref: str, change: ProfileChange, *, version: int | None = None, dry_run: bool = False
) -> Answer:
    """A profile changes. A new name is followed by the policies that name it and by live requests, which keep their
    places. Raises Exists, and InvalidRules where a policy that names it could not offer it any more."""
    old = tx.memory.profile(ref)
    check_version(old, version)
    name = old.name if change.name is None else change.name
    if name != old.name:
        check_free(tx, Kind.PROFILE, name)
    profile = _checked(
        tx,
        replace(
            old.spec,
            name=name,
            demand=old.spec.demand if change.demand is None else change.demand,
            pools=old.spec.pools if change.pools is None else change.pools,
        ),
    )
    offers.check_offerers(tx.memory, profile, known_as=old.name)
    note = _note(old.note, change.defaults, change.description)
    if dry_run:
        return lambda: replace(old, name=name, spec=profile, note=note)
    if name == old.name:
        tx.apply(ev.ProfileSet(profile=profile))
    else:
        _rename(tx, old.name, profile)
    before, after = shown(old.spec, old.note), shown(profile, note)
    if name != old.name:
        before, after = {"name": old.name, **before}, {"name": name, **after}
    record = changed(tx, old, profile, name=name, note=note, before=before, after=after)
    return lambda: record


def _rename(tx: Transaction, old: str, profile: Profile) -> None:
    """In one step, so that nobody loses a place or a right."""
    offering = offers.policies_naming(tx.memory, old)
    renamed = {
        policy.id: replace(
            policy.spec,
            profiles=tuple(profile.name if name == old else name for name in policy.spec.profiles or ()),
        )
        for policy in offering
    }
    in_force = [schedules.in_force(replace(policy, spec=renamed[policy.id]), tx.now) for policy in offering]
    asking = [record.request for record in tx.memory.live.values() if record.request.profile == old]
    redirected = [replace(request, profile=profile.name) for request in asking]
    tx.apply(
        ev.Together(
            events=(
                ev.ProfileSet(profile=profile),
                ev.ProfileDropped(name=old),
                *(ev.PolicySet(policy=policy) for policy in in_force),
                *(ev.Redirected(request=request) for request in redirected),
            )
        )
    )
    for request in redirected:
        tx.redirect(request)
    for policy in offering:
        before: Document = {"profiles": list(policy.spec.profiles or ())}
        after: Document = {"profiles": list(renamed[policy.id].profiles or ())}
        changed(tx, policy, renamed[policy.id], before=before, after=after)


def delete(tx: Transaction, ref: str, *, version: int | None = None, dry_run: bool = False) -> Answer:
    """A profile goes; queued requests that ask for it lose their right and are cancelled."""
    old = tx.memory.profile(ref)
    check_version(old, version)
    if not dry_run:
        tx.apply(ev.ProfileDropped(name=old.name))
        deleted(tx, old, shown=shown(old.spec, old.note))
    return lambda: old


def defaults_in(note: Document) -> Defaults:
    """The defaults that a profile's note holds."""
    said = note.get("defaults")
    if not isinstance(said, Mapping):
        return Defaults()
    preemptible, max_runtime_s, labels = said.get("preemptible"), said.get("max_runtime_s"), said.get("labels")
    return Defaults(
        preemptible=preemptible if isinstance(preemptible, bool) else None,
        max_runtime_s=max_runtime_s if isinstance(max_runtime_s, int) else None,
        labels={key: str(value) for key, value in labels.items()} if isinstance(labels, Mapping) else {},
    )


def _note(old: Document, defaults: Defaults | None, description: str | None) -> Document:
    note = dict(old)
    if description is not None:
        note["description"] = description
    if defaults is not None:
        note["defaults"] = _plain(defaults)
    return {key: value for key, value in note.items() if value}


def _plain(defaults: Defaults) -> dict[str, Json]:
    said: dict[str, Json] = {"preemptible": defaults.preemptible, "max_runtime_s": defaults.max_runtime_s}
    found: dict[str, Json] = {key: value for key, value in said.items() if value is not None}
    if defaults.labels:
        found["labels"] = dict(defaults.labels)
    return found


def follow_pool(tx: Transaction, old: ProfileRecord, profile: Profile) -> None:
    """A profile names a pool by its new name; the world knows already."""
    changed(tx, old, profile, before=shown(old.spec, old.note), after=shown(profile, old.note))


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


def shown(profile: Profile, note: Document) -> dict[str, Json]:
    """A profile as the history shows it."""
    return {
        "demand": plain_vector(profile.demand),
        "pools": list(profile.pools),
        "defaults": _plain(defaults_in(note)),
    }

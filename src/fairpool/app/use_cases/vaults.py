"""Vaults: what an administrator gives the steps of a team: variables, secrets, container image, storage URL.

Each is a default, which a step may set otherwise, or locked, which it may not. Secrets are kept sealed and are opened
only for a step that runs; nothing else that leaves here holds a value: no history, no error, no view.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from fairpool.app.authz import EVERYTHING, OWNER, Principal, Reach, Right, Role
from fairpool.app.errors import CannotOpen, Conflict, Exists, NotAllowed, NoVaultKey
from fairpool.app.memory import Memory
from fairpool.app.ports import Sealer
from fairpool.app.records import Declared, Document, Json, Kind, RequestRecord
from fairpool.app.transaction import Transaction
from fairpool.app.use_cases.declaring import changed, check_version, created, deleted
from fairpool.app.use_cases.people import check_team, described, note_of
from fairpool.app.use_cases.requests import get as get_request
from fairpool.core.errors import InvalidInput, InvalidRules
from fairpool.core.ids import check_name
from fairpool.core.policies import SubjectKind

VaultRecord = Declared[Document]
Answer = Callable[[], VaultRecord]

IMAGE, STORAGE_URL = "FAIRPOOL_IMAGE", "FAIRPOOL_STORAGE_URL"
"""As which variables a step sees the image and the storage URL of its vault."""

MAX_NAMES = 500
MAX_VALUE_BYTES = 64 * 2**10
"""More than any token or certificate; a process's whole environment has room for some dozens of them."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_KEPT = re.compile(r"FAIRPOOL_.*|(CUDA|NVIDIA|HIP|ROCR|GPU)_?\w*(VISIBLE_DEVICES|DEVICE_ORDINAL)\w*", re.IGNORECASE)
"""Variables by which a step learns what it was granted: no vault may say otherwise."""

SINGLE = {"image": IMAGE, "storage_url": STORAGE_URL}


class Keyless:
    """A sealer without a key: it keeps no secrets. See `ports.Sealer`."""

    def seal(self, text: str) -> str:
        """See `ports.Sealer`."""
        raise NoVaultKey

    def open(self, sealed: str) -> str:
        """See `ports.Sealer`."""
        raise CannotOpen

    def seal_anew(self, sealed: str) -> str:
        """See `ports.Sealer`."""
        raise NoVaultKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A value as it is given. value: of a secret None where the one that is kept already stays."""

    value: str | None = field(repr=False)
    locked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultChange:
    """What changes of a vault: names that are given change, None takes one away, the others stay.

    image, storage_url: under their own names in `single`. whole: names that are not given go.
    """

    environment: Mapping[str, Setting | None] = field(default_factory=dict)
    secrets: Mapping[str, Setting | None] = field(default_factory=dict)
    single: Mapping[str, Setting | None] = field(default_factory=dict)
    description: str | None = None
    whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A variable of a step's environment. locked: the step may not set it otherwise."""

    value: str = field(repr=False)
    locked: bool = False
    secret: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What the vault gives to one granted request; vault: whose it is, "" where there is none."""

    request: str
    vault: str = ""
    variables: Mapping[str, Variable] = field(default_factory=dict)


def create(tx: Transaction, team: str, change: VaultChange, sealer: Sealer, *, dry_run: bool = False) -> Answer:
    """A team's vault; a team has one. Raises Exists, InvalidInput (there is no such team), InvalidRules, NoVaultKey."""
    name = check_name(team, what="team name")
    check_team(tx.memory, name, field="name")
    if tx.memory.named(Kind.VAULT, name) is not None:
        raise Exists("vault", name, hint="'fairpool vault set' changes it")
    vault_id = tx.ids.new(Kind.VAULT)
    empty: VaultRecord = Declared(
        kind=Kind.VAULT, id=vault_id, name=name, spec={}, created_at=tx.now, updated_at=tx.now
    )
    spec = _applied(empty, replace(change, whole=True), sealer)
    note = note_of(change.description or "")
    if dry_run:
        return lambda: replace(empty, spec=spec, note=note)
    record = created(tx, Kind.VAULT, vault_id, name, spec, note=note, shown=shown(spec))
    return lambda: record


def update(
    tx: Transaction,
    ref: str,
    change: VaultChange,
    sealer: Sealer,
    *,
    version: int | None = None,
    dry_run: bool = False,
) -> Answer:
    """A vault changes. Raises NotFound, Stale, InvalidRules, NoVaultKey."""
    old = tx.memory.document(Kind.VAULT, ref)
    check_version(old, version)
    spec = _applied(old, change, sealer)
    note = described(old.note, change.description)
    if dry_run:
        return lambda: replace(old, spec=spec, note=note)
    before, after = shown(old.spec), shown(spec)
    renewed = [name for name, kept in _part(spec, "secrets").items() if _part(old.spec, "secrets").get(name) != kept]
    if renewed and before == after:
        after = {**after, "new values": list(renewed)}  # a secret that is replaced is a change though nothing shows
    record = changed(tx, old, spec, note=note, before=before, after=after)
    return lambda: record


def delete(tx: Transaction, ref: str, *, version: int | None = None, dry_run: bool = False) -> Answer:
    """A vault goes with everything in it; steps that run keep what they were given."""
    old = tx.memory.document(Kind.VAULT, ref)
    check_version(old, version)
    if not dry_run:
        deleted(tx, old, shown=shown(old.spec))
    return lambda: old


def rotate(tx: Transaction, sealer: Sealer) -> Callable[[], tuple[int, int]]:
    """Seal every secret anew with the newest key; how many vaults and secrets. Raises NoVaultKey, CannotOpen."""
    sealed = [
        (old, {name: {**kept, "sealed": sealer.seal_anew(str(kept["sealed"]))} for name, kept in secrets.items()})
        for old in (tx.memory.document(Kind.VAULT, declared.id) for declared in tx.memory.all(Kind.VAULT))
        if (secrets := _part(old.spec, "secrets"))
    ]
    for old, secrets in sealed:  # all of them could be opened
        spec: Document = {**old.spec, "secrets": secrets}
        tx.put(replace(old, spec=spec, version=old.version + 1, updated_at=tx.now))
        tx.note(Kind.VAULT, old.id, "sealed with the newest key", name=old.name, after={"secrets": list(secrets)})
    counts = (len(sealed), sum(len(secrets) for _, secrets in sealed))
    return lambda: counts


def follow_team(tx: Transaction, team: str, new: str | None) -> None:
    """The vault of a team gets the team's new name, or goes with it."""
    found = tx.memory.named(Kind.VAULT, team)
    if found is None:
        return
    if new is None:
        delete(tx, found.id)
        return
    old = tx.memory.document(Kind.VAULT, found.id)
    changed(tx, old, old.spec, name=new, before={"name": team}, after={"name": new})


def of_request(memory: Memory, record: RequestRecord) -> VaultRecord | None:
    """The vault whose settings the steps of a granted request get: that of the team whose policy granted it, else of
    the only team that it was made for."""
    grant = record.state.grant
    if grant is None or record.status.is_final:
        return None
    prefix = f"{SubjectKind.TEAM.value}:"
    team = grant.subject.removeprefix(prefix) if grant.subject.startswith(prefix) else _only_team(record)
    vault = memory.named(Kind.VAULT, team) if team else None
    return memory.document(Kind.VAULT, vault.id) if vault is not None else None


def read(tx: Transaction, ref: str, sealer: Sealer, *, caller: Principal = OWNER) -> Callable[[], Environment]:
    """What a granted request's vault gives to its step, values and all; written down in the history without them.

    Raises NotFound; NotAllowed for whoever did not make the request, or is not in the team whose vault it is; Conflict
    while it holds nothing; CannotOpen.
    """
    reach = EVERYTHING if caller.subject is None else Reach(principal=caller, right=Right.OWN)
    record = get_request(tx.memory, tx.reader, ref, reach)
    if record.submission.created_by != tx.actor:
        raise NotAllowed(f"request {record.id} is not yours: its environment is told to whoever made it")
    if record.state.grant is None or record.status.is_final:
        raise Conflict(f"request {record.id} is {record.status}: its environment is told while it holds something")
    vault = of_request(tx.memory, record)
    if vault is None:
        return lambda: Environment(request=record.id)
    if not _may_open(tx.memory, vault.name, caller):
        raise NotAllowed(f"request {record.id} gets the vault of team {vault.name!r}, and you are not in that team")
    variables = _opened(vault, sealer)
    tx.note(Kind.VAULT, vault.id, "read", name=vault.name, cause=f"for request {record.id}", after=_names(vault.spec))
    return lambda: Environment(request=record.id, vault=vault.name, variables=variables)


def _may_open(memory: Memory, team: str, caller: Principal) -> bool:
    """Whether a vault's values are for the caller: whoever runs things may make requests as any team, and does not
    read its secrets by that."""
    return caller.subject is None or caller.role is Role.ADMIN or team in memory.teams_of(caller.subject)


def shown(spec: Document) -> dict[str, Json]:
    """A vault as history and views show it: of secrets only the names and whether they are locked."""
    secrets = {name: {"locked": kept["locked"]} for name, kept in _part(spec, "secrets").items()}
    return {**{key: value for key, value in spec.items() if value}, **({"secrets": secrets} if secrets else {})}


def _only_team(record: RequestRecord) -> str:
    teams = {subject.name for subject in record.request.subjects if subject.kind is SubjectKind.TEAM}
    return teams.pop() if len(teams) == 1 else ""


def _opened(vault: VaultRecord, sealer: Sealer) -> dict[str, Variable]:
    spec = vault.spec
    found = {
        name: Variable(value=str(kept["value"]), locked=bool(kept["locked"]))
        for name, kept in _part(spec, "environment").items()
    }
    for key, name in SINGLE.items():
        one = _single(spec, key)
        if one:
            found[name] = Variable(value=str(one["value"]), locked=bool(one["locked"]))
    for name, kept in _part(spec, "secrets").items():
        value = _open(vault.id, name, str(kept["sealed"]), sealer)
        found[name] = Variable(value=value, locked=bool(kept["locked"]), secret=True)
    return dict(sorted(found.items()))


def _names(spec: Document) -> Document:
    single = [name for key, name in SINGLE.items() if _single(spec, key)]
    return {"secrets": sorted(_part(spec, "secrets")), "environment": sorted([*_part(spec, "environment"), *single])}


# ---- changing --------------------------------------------------------------------------------------------------------


def _applied(old: VaultRecord, change: VaultChange, sealer: Sealer) -> Document:
    """The vault's document after the change. A name is a variable or a secret, never both."""
    before = old.spec
    environment = {} if change.whole else dict(_part(before, "environment"))
    secrets = {} if change.whole else dict(_part(before, "secrets"))
    for name, given in change.environment.items():
        _check(f"environment.{name}", name, given)
        environment.pop(name, None)
        if given is not None:
            environment[name] = _plain(f"environment.{name}", given)
            secrets.pop(name, None)
    for name, given in change.secrets.items():
        _check(f"secrets.{name}", name, given)
        secrets.pop(name, None)
        if given is not None:
            kept = _part(before, "secrets").get(name)
            secrets[name] = _sealed(old.id, name, given, kept, sealer)
            environment.pop(name, None)
    if len(environment) + len(secrets) > MAX_NAMES:
        raise InvalidRules(
            f"vault {old.name!r} would have {len(environment) + len(secrets)} names",
            field="environment",
            possible=f"at most {MAX_NAMES}",
        )
    spec: dict[str, Json] = {"environment": environment, "secrets": secrets}
    for key in SINGLE:
        single: Json = None if change.whole else _single(before, key) or None
        if key in change.single:
            one = change.single[key]
            single = None if one is None else _plain(key, one)
        spec[key] = single
    return {key: value for key, value in spec.items() if value}


def _check(place: str, name: str, given: Setting | None) -> None:
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"{name[:60]!r} cannot name a variable",
            field=place,
            value=name,
            possible="letters, digits and _, up to 128 of them, a digit not first",
        )
    if given is not None and _KEPT.fullmatch(name):
        raise InvalidRules(
            f"{name} tells a step what it was granted", field=place, value=name, possible="any other name"
        )


def _plain(place: str, given: Setting) -> dict[str, Json]:
    if given.value is None:
        raise InvalidInput("missing", field=f"{place}.value", possible="text")
    return {"value": _text(place, given.value), "locked": given.locked}


def _sealed(
    vault_id: str, name: str, given: Setting, kept: Mapping[str, Json] | None, sealer: Sealer
) -> dict[str, Json]:
    if given.value is None:
        if kept is None:
            raise InvalidRules(
                f"secret {name} has no value yet", field=f"secrets.{name}.value", possible="the value, once"
            )
        return {"sealed": kept["sealed"], "locked": given.locked}
    text = json.dumps([vault_id, name, _text(f"secrets.{name}", given.value)])
    return {"sealed": sealer.seal(text), "locked": given.locked}


def _open(vault_id: str, name: str, sealed: str, sealer: Sealer) -> str:
    """The secret; what was sealed under another name or for another vault is refused, whoever moved it."""
    found = json.loads(sealer.open(sealed))
    if found[:2] != [vault_id, name]:
        raise Conflict(f"secret {name} was sealed for something else: set it again")
    return str(found[2])


def _text(place: str, value: str) -> str:
    """A value that a process's environment can hold; the refusal does not repeat it."""
    if "\0" in value or len(value.encode(errors="surrogatepass")) > MAX_VALUE_BYTES:
        raise InvalidInput(
            "the value cannot be in a process's environment",
            field=f"{place}.value",
            possible=f"up to {MAX_VALUE_BYTES // 1024} KiB of text without NUL",
        )
    return value


def _part(spec: Document, key: str) -> dict[str, dict[str, Json]]:
    part = spec.get(key)
    return dict(part) if isinstance(part, dict) else {}


def _single(spec: Document, key: str) -> dict[str, Json]:
    one = spec.get(key)
    return dict(one) if isinstance(one, dict) else {}

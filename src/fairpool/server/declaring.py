"""The kinds of documents on the server: what there is of each, and the use cases that make, change and delete it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, cast

from pydantic import BaseModel

from fairpool.app.authz import Role
from fairpool.app.manifests.carrying_out import Uses
from fairpool.app.manifests.values import MANAGED, Known, Wanted
from fairpool.app.memory import Memory
from fairpool.app.ports import Sealer
from fairpool.app.records import AnyDeclared, Declared, Document, Kind
from fairpool.app.transaction import Transaction
from fairpool.app.use_cases import components, policies, pools, profiles, service_accounts, stacks, teams, users
from fairpool.core.errors import InvalidInput
from fairpool.core.policies import Policy
from fairpool.core.pools import Pool
from fairpool.server import bodies, incoming
from fairpool.server.declaring_sealed import CheckUrl, Vaults, Webhooks, shown_url
from fairpool.wire.manifests.kinds import KINDS as DOCUMENT_KINDS
from fairpool.wire.manifests.kinds import Document as Read
from fairpool.wire.manifests.kinds import name_of, subject_of
from fairpool.wire.people import ServiceAccountCreate, TeamCreate, UserCreate
from fairpool.wire.policies import PolicyCreate, ProfileCreate
from fairpool.wire.pools import PoolCreate
from fairpool.wire.stacks import ComponentCreate, StackCreate


class _Pools:
    """Pools as documents. on_work: what deleting one does about the work there (S10)."""

    def __init__(self, on_work: str) -> None:
        self._on_work = on_work

    def create(self, tx: Transaction, body: Document) -> str:
        said = PoolCreate.model_validate(body)
        return pools.create(tx, bodies.pool_of(said), description=said.description)().id

    def change(self, tx: Transaction, object_id: str, body: Document) -> None:
        said, old = PoolCreate.model_validate(body), tx.memory.pool(object_id)
        pool = bodies.pool_of(said)
        gone = {key: 0 for key, _ in old.spec.capacity}
        change = pools.PoolChange(
            capacity=tuple(sorted({**gone, **dict(pool.capacity)}.items())),
            nodes=pool.nodes,
            ordering=pool.ordering,
            backfill=pool.backfill,
            placement=pool.placement,
            max_bypass_s=pool.max_bypass_s,
            components=pool.components,
            description=said.description,
        )
        pools.update(tx, object_id, change)

    def delete(self, tx: Transaction, object_id: str) -> None:
        pools.delete(tx, object_id, on_work=self._on_work)


class _Policies:
    """Policies as documents."""

    def create(self, tx: Transaction, body: Document) -> str:
        said = PolicyCreate.model_validate(body)
        return policies.attach(
            tx,
            _pool_named(tx, said.pool),
            bodies.policy_of(said),
            also=[_pool_named(tx, pool) for pool in said.also],
            schedule=bodies.schedule_of(said.schedule),
        )().id

    def change(self, tx: Transaction, object_id: str, body: Document) -> None:
        said = PolicyCreate.model_validate(body)
        policy = bodies.policy_of(said)
        change = policies.PolicyChange(
            also=tuple(_pool_named(tx, pool) for pool in said.also),
            priority=policy.priority,
            reserved=policy.reserved,
            limit=policy.limit,
            weight=policy.weight,
            dedicated=policy.dedicated,
            grace_s=policy.grace_s,
            min_runtime_s=policy.min_runtime_s,
            profiles=policy.profiles,
            all_profiles=policy.profiles is None,
            schedule=bodies.schedule_of(said.schedule),
        )
        policies.update(tx, object_id, change)

    def delete(self, tx: Transaction, object_id: str) -> None:
        policies.detach(tx, object_id)


class _Profiles:
    """Profiles as documents."""

    def create(self, tx: Transaction, body: Document) -> str:
        said = ProfileCreate.model_validate(body)
        profile, defaults = bodies.profile_of(said), bodies.defaults_of(said.defaults)
        return profiles.create(tx, profile, defaults=defaults, description=said.description)().id

    def change(self, tx: Transaction, object_id: str, body: Document) -> None:
        said = ProfileCreate.model_validate(body)
        profile = bodies.profile_of(said)
        change = profiles.ProfileChange(
            demand=profile.demand,
            pools=profile.pools,
            defaults=bodies.defaults_of(said.defaults),
            description=said.description,
        )
        profiles.update(tx, object_id, change)

    def delete(self, tx: Transaction, object_id: str) -> None:
        profiles.delete(tx, object_id)


class _Components:
    """Components as documents."""

    def create(self, tx: Transaction, body: Document) -> str:
        said = ComponentCreate.model_validate(body)
        name = incoming.name("name", said.name, what="component")
        made = components.create(
            tx, name, kind=said.kind, flavor=said.flavor, config=said.config, description=said.description
        )
        return made().id

    def change(self, tx: Transaction, object_id: str, body: Document) -> None:
        said, old = ComponentCreate.model_validate(body), tx.memory.document(Kind.COMPONENT, object_id)
        if said.kind != old.spec.get("kind"):
            raise InvalidInput(
                f"component {old.name!r} is {_a(str(old.spec.get('kind')))}, which does not change",
                field="type",
                value=said.kind,
                possible="another name for what is another thing",
            )
        change = components.ComponentChange(flavor=said.flavor, config=said.config, description=said.description)
        components.update(tx, object_id, change)

    def delete(self, tx: Transaction, object_id: str) -> None:
        components.delete(tx, object_id)


def _a(word: str) -> str:
    return f"{'an' if word[:1] in 'aeiou' else 'a'} {word}"


class _Stacks:
    """Stacks as documents."""

    def create(self, tx: Transaction, body: Document) -> str:
        said = StackCreate.model_validate(body)
        made = stacks.create(
            tx,
            incoming.name("name", said.name, what="stack"),
            orchestrator=said.orchestrator,
            step_operators=said.step_operators,
            artifact_store=said.artifact_store,
            description=said.description,
        )
        return made().id

    def change(self, tx: Transaction, object_id: str, body: Document) -> None:
        said = StackCreate.model_validate(body)
        change = stacks.StackChange(
            orchestrator=said.orchestrator,
            step_operators=tuple(said.step_operators),
            artifact_store=said.artifact_store or "",
            description=said.description,
        )
        stacks.update(tx, object_id, change)

    def delete(self, tx: Transaction, object_id: str) -> None:
        stacks.delete(tx, object_id)


class _Users:
    """Users as documents."""

    def create(self, tx: Transaction, body: Document) -> str:
        said = UserCreate.model_validate(body)
        made = users.create(
            tx,
            incoming.name("name", said.name, what="user"),
            role=Role(said.role),
            display_name=said.display_name,
            email=said.email,
            description=said.description,
        )
        return made().id

    def change(self, tx: Transaction, object_id: str, body: Document) -> None:
        said = UserCreate.model_validate(body)
        change = users.UserChange(
            role=Role(said.role), display_name=said.display_name, email=said.email, description=said.description
        )
        users.update(tx, object_id, change)

    def delete(self, tx: Transaction, object_id: str) -> None:
        users.delete(tx, object_id)


class _Teams:
    """Teams as documents."""

    def create(self, tx: Transaction, body: Document) -> str:
        said = TeamCreate.model_validate(body)
        name = incoming.name("name", said.name, what="team")
        made = teams.create(tx, name, members=said.members, group=said.group, description=said.description)
        return made().id

    def change(self, tx: Transaction, object_id: str, body: Document) -> None:
        said = TeamCreate.model_validate(body)
        members = None if said.group else tuple(said.members)  # the provider's group decides: no file does
        change = teams.TeamChange(members=members, group=said.group, description=said.description)
        teams.update(tx, object_id, change)

    def delete(self, tx: Transaction, object_id: str) -> None:
        teams.delete(tx, object_id)


class _ServiceAccounts:
    """Service accounts as documents."""

    def create(self, tx: Transaction, body: Document) -> str:
        said = ServiceAccountCreate.model_validate(body)
        name = incoming.name("name", said.name, what="service account")
        made = service_accounts.create(tx, name, role=Role(said.role), teams=said.teams, description=said.description)
        return made().id

    def change(self, tx: Transaction, object_id: str, body: Document) -> None:
        said = ServiceAccountCreate.model_validate(body)
        change = service_accounts.AccountChange(
            role=Role(said.role), teams=tuple(said.teams), description=said.description
        )
        service_accounts.update(tx, object_id, change)

    def delete(self, tx: Transaction, object_id: str) -> None:
        service_accounts.delete(tx, object_id)


KINDS: Final = tuple(Kind(kind) for kind in DOCUMENT_KINDS)
"""Of what documents can speak."""


def uses(sealer: Sealer, check_url: CheckUrl, on_work: str = "refuse") -> Mapping[Kind, Uses]:
    """What can be done with the objects of each kind. on_work: what deleting a pool does about the work there."""
    return MappingProxyType(
        {
            Kind.COMPONENT: _Components(),
            Kind.USER: _Users(),
            Kind.TEAM: _Teams(),
            Kind.SERVICE_ACCOUNT: _ServiceAccounts(),
            Kind.POOL: _Pools(on_work),
            Kind.VAULT: Vaults(sealer),
            Kind.PROFILE: _Profiles(),
            Kind.POLICY: _Policies(),
            Kind.STACK: _Stacks(),
            Kind.WEBHOOK: Webhooks(sealer, check_url),
        }
    )


def _pool_named(tx: Transaction, name: str) -> str:
    """A document names a pool by its name alone: what is new in the same files has no id yet."""
    found = tx.memory.named(Kind.POOL, name)
    return found.id if found is not None else tx.memory.pool(name).id


# ---- what there is, and what is wanted -------------------------------------------------------------------------------


def known(memory: Memory) -> list[Known]:
    """All objects that documents can speak of."""
    return [_known(memory, declared) for kind in KINDS for declared in memory.all(kind)]


def _known(memory: Memory, declared: AnyDeclared) -> Known:
    body = _body_of(memory, declared)
    return Known(
        kind=declared.kind,
        name=name_of(declared.kind.value, body),
        id=declared.id,
        version=declared.version,
        body=_whole(declared.kind, body),
        managed=str(declared.note.get(MANAGED, "")),
    )


def _body_of(memory: Memory, declared: AnyDeclared) -> BaseModel:
    if declared.kind is Kind.POLICY:
        policy = cast("Declared[Policy]", declared)
        also = map(memory.pool_name, policy.spec.also)
        return bodies.body_of_policy(policy, memory.pool_name(policy.spec.pool), also)
    return _BODIES[declared.kind](declared)


_BODIES: Final[Mapping[Kind, Callable[[Any], BaseModel]]] = MappingProxyType(
    {
        Kind.COMPONENT: bodies.body_of_component,
        Kind.USER: bodies.body_of_user,
        Kind.TEAM: bodies.body_of_team,
        Kind.SERVICE_ACCOUNT: bodies.body_of_service_account,
        Kind.VAULT: bodies.body_of_vault,
        Kind.POOL: bodies.body_of_pool,
        Kind.PROFILE: bodies.body_of_profile,
        Kind.STACK: bodies.body_of_stack,
        Kind.WEBHOOK: bodies.body_of_webhook,
    }
)


def wanted(memory: Memory, read: list[Read]) -> list[Wanted]:
    """What documents want, in the one form in which it can be compared with what there is."""
    return [_wanted(memory, document, index) for index, document in enumerate(read)]


def _wanted(memory: Memory, document: Read, index: int) -> Wanted:
    kind, body = Kind(document.kind), document.body
    if isinstance(body, PoolCreate):
        body = _with_states(memory, body)
    if isinstance(body, PolicyCreate):
        body = body.model_copy(update={"subject": subject_of(body.subject)})
    said = body.model_dump(mode="json", exclude_defaults=True)
    return Wanted(kind=kind, name=name_of(kind.value, body), body=_whole(kind, body), said=said, index=index)


def _with_states(memory: Memory, body: PoolCreate) -> PoolCreate:
    """Whether a machine works is no rule: what a document does not say of its nodes' states and labels stays."""
    declared = memory.named(Kind.POOL, body.name)
    nodes = {node.name: node for node in cast("Declared[Pool]", declared).spec.nodes} if declared is not None else {}
    filled = []
    for said in body.nodes:
        old = nodes.get(said.name)
        update: dict[str, object] = {}
        if old is not None and "state" not in said.model_fields_set:
            update["state"] = old.state.value
        if old is not None and "labels" not in said.model_fields_set:
            update["labels"] = dict(old.labels)
        filled.append(said.model_copy(update=update))
    return body.model_copy(update={"nodes": filled})


def _whole(kind: Kind, body: BaseModel) -> Document:
    """Every field, with what means the same written the same way."""
    document = body.model_dump(mode="json")
    for name in ("capacity", "reserved", "demand"):
        if isinstance(document.get(name), dict):
            document[name] = {key: value for key, value in sorted(document[name].items()) if value}
    if kind is Kind.POOL:
        document["components"] = sorted(set(document["components"]))
        for node in document["nodes"]:
            node["capacity"] = {key: value for key, value in sorted(node["capacity"].items()) if value}
    for name in ("pools", "members", "teams"):
        if isinstance(document.get(name), list):
            document[name] = list(dict.fromkeys(document[name]))
    if kind is Kind.WEBHOOK:
        document["events"] = sorted(set(document["events"]))
    return document


def as_document(kind: Kind, body: Document) -> Document:
    """A body as somebody would write the whole document; of a webhook's address only what everybody may read."""
    if kind is Kind.COMPONENT:
        return {"kind": kind.value, "type": body["kind"], **{key: body[key] for key in body if key != "kind"}}
    if kind is Kind.WEBHOOK:
        body = {**body, "url": shown_url(str(body["url"]))}
    return {"kind": kind.value, **body}

"""Declared objects between what people write and what the application keeps, both ways, side by side.

A field that is new in a `…Create` goes through both functions of its kind: what is written comes back the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fairpool.app.records import Declared, Document
from fairpool.app.schedules import Window, Windows, windows_in
from fairpool.app.use_cases.profiles import Defaults, defaults_in
from fairpool.app.use_cases.vaults import SINGLE, Setting, VaultChange
from fairpool.app.use_cases.vaults import shown as shown_vault
from fairpool.app.use_cases.webhooks import WebhookChange
from fairpool.core.amounts import amount
from fairpool.core.ids import PolicyId, PoolId, ProfileId
from fairpool.core.policies import Policy, Profile, Subject
from fairpool.core.pools import Node, Ordering, Placement, Pool
from fairpool.server import incoming
from fairpool.server.outgoing import units, vector
from fairpool.wire.people import ServiceAccountCreate, TeamCreate, UserCreate
from fairpool.wire.policies import PolicyCreate, ProfileCreate, ProfileDefaults, WindowSpec
from fairpool.wire.pools import NodeSpec, PoolCreate
from fairpool.wire.stacks import ComponentCreate, StackCreate
from fairpool.wire.vaults import VaultDocument
from fairpool.wire.webhooks import WebhookCreate

# ---- pools -----------------------------------------------------------------------------------------------------------


def pool_of(body: PoolCreate) -> Pool:
    """The pool that a body describes, without an id. Raises InvalidInput."""
    return Pool(
        id=PoolId(""),
        name=incoming.name("name", body.name, what="pool"),
        capacity=incoming.vector("capacity", body.capacity),
        nodes=incoming.nodes("nodes", body.nodes),
        ordering=Ordering(body.ordering),
        backfill=body.backfill,
        placement=Placement(body.placement),
        max_bypass_s=body.max_bypass_s,
        components=frozenset(body.components),
    )


def body_of_pool(record: Declared[Pool]) -> PoolCreate:
    """How somebody would have written this pool."""
    pool = record.spec
    return PoolCreate(
        name=record.name,
        capacity=vector(pool.capacity),
        nodes=[_body_of_node(node) for node in pool.nodes],
        ordering=pool.ordering.value,
        backfill=pool.backfill,
        placement=pool.placement.value,
        max_bypass_s=pool.max_bypass_s,
        components=sorted(pool.components),
        description=description_of(record.note),
    )


def _body_of_node(node: Node) -> NodeSpec:
    return NodeSpec(
        name=node.name,
        capacity=vector(node.capacity),
        state=node.state.value,
        gpu_type=node.gpu_type,
        labels=dict(node.labels),
    )


# ---- policies --------------------------------------------------------------------------------------------------------


def policy_of(body: PolicyCreate) -> Policy:
    """The policy that a body describes, without an id and not on any pool yet. Raises InvalidInput."""
    return Policy(
        id=PolicyId(""),
        pool=PoolId(""),
        subject=incoming.at("subject", Subject.parse, body.subject),
        priority=body.priority,
        reserved=incoming.vector("reserved", body.reserved),
        limit=incoming.vector_with_zeros("limit", body.limit),
        weight=amount(body.weight),
        dedicated=body.dedicated,
        grace_s=body.grace_s,
        min_runtime_s=body.min_runtime_s,
        profiles=None if body.profiles is None else tuple(body.profiles),
    )


def schedule_of(specs: Iterable[WindowSpec]) -> Windows:
    """The windows that a body describes. Raises InvalidInput."""
    return tuple(incoming.at(f"schedule.{place}", _window_of, spec) for place, spec in enumerate(specs))


def _window_of(spec: WindowSpec) -> Window:
    return Window(
        start=spec.start,
        duration_s=spec.duration_s,
        timezone=spec.timezone,
        reserved=None if spec.reserved is None else incoming.vector("reserved", spec.reserved),
        limit=None if spec.limit is None else incoming.vector_with_zeros("limit", spec.limit),
        priority=spec.priority,
        weight=None if spec.weight is None else amount(spec.weight),
        grace_s=spec.grace_s,
    )


def body_of_window(window: Window) -> WindowSpec:
    """How somebody would have written this window."""
    return WindowSpec(
        start=window.start,
        duration_s=window.duration_s,
        timezone=window.timezone,
        reserved=None if window.reserved is None else vector(window.reserved),
        limit=None if window.limit is None else vector(window.limit),
        priority=window.priority,
        weight=None if window.weight is None else units(window.weight),
        grace_s=window.grace_s,
    )


def body_of_policy(record: Declared[Policy], pool: str, also: Iterable[str] = ()) -> PolicyCreate:
    """How somebody would have written this policy. pool, also: the names of its pools."""
    policy = record.spec
    return PolicyCreate(
        pool=pool,
        also=list(also),
        subject=str(policy.subject),
        priority=policy.priority,
        reserved=vector(policy.reserved),
        limit=vector(policy.limit),
        weight=units(policy.weight),
        dedicated=policy.dedicated,
        grace_s=policy.grace_s,
        min_runtime_s=policy.min_runtime_s,
        profiles=None if policy.profiles is None else list(policy.profiles),
        schedule=[body_of_window(window) for window in windows_in(record.note)],
    )


# ---- profiles --------------------------------------------------------------------------------------------------------


def profile_of(body: ProfileCreate) -> Profile:
    """The profile that a body describes, without an id. Raises InvalidInput."""
    return Profile(
        id=ProfileId(""),
        name=incoming.name("name", body.name, what="profile"),
        demand=incoming.vector("demand", body.demand),
        pools=tuple(body.pools),
    )


def defaults_of(body: ProfileDefaults) -> Defaults:
    """The defaults that a body describes."""
    return Defaults(preemptible=body.preemptible, max_runtime_s=body.max_runtime_s, labels=body.labels)


def body_of_profile(record: Declared[Profile]) -> ProfileCreate:
    """How somebody would have written this profile."""
    defaults = defaults_in(record.note)
    return ProfileCreate(
        name=record.name,
        demand=vector(record.spec.demand),
        pools=list(record.spec.pools),
        defaults=ProfileDefaults(
            preemptible=defaults.preemptible, max_runtime_s=defaults.max_runtime_s, labels=dict(defaults.labels)
        ),
        description=description_of(record.note),
    )


# ---- components, stacks ----------------------------------------------------------------------------------------------


def body_of_component(record: Declared[Document]) -> ComponentCreate:
    """How somebody would have written this component."""
    return ComponentCreate.model_validate({**record.spec, "name": record.name})


def body_of_stack(record: Declared[Document]) -> StackCreate:
    """How somebody would have written this stack."""
    return StackCreate.model_validate({**record.spec, "name": record.name})


# ---- people ----------------------------------------------------------------------------------------------------------


def body_of_user(record: Declared[Document]) -> UserCreate:
    """How somebody would have written this user."""
    said = {**record.spec, "name": record.name, "description": description_of(record.note)}
    return UserCreate.model_validate(said)


def body_of_team(record: Declared[Document]) -> TeamCreate:
    """How somebody would have written this team: of one that a group of the provider decides on, not who is in it."""
    said = {**record.spec, "name": record.name, "description": description_of(record.note)}
    if said.get("group"):
        said["members"] = []
    return TeamCreate.model_validate(said)


def body_of_service_account(record: Declared[Document]) -> ServiceAccountCreate:
    """How somebody would have written this service account."""
    said = {**record.spec, "name": record.name, "description": description_of(record.note)}
    return ServiceAccountCreate.model_validate(said)


# ---- vaults ----------------------------------------------------------------------------------------------------------


def body_of_vault(record: Declared[Document]) -> VaultDocument:
    """How somebody would have written this vault: of secrets their names."""
    said = {**shown_vault(record.spec), "name": record.name, "description": description_of(record.note)}
    return VaultDocument.model_validate(said)


def change_of_vault(body: VaultDocument) -> VaultChange:
    """The whole vault as a change: what is not said goes, secrets that are said stay as they are kept."""
    single = {name: given for name in SINGLE if (given := getattr(body, name)) is not None}
    return VaultChange(
        environment={name: Setting(value=one.value, locked=one.locked) for name, one in body.environment.items()},
        secrets={name: Setting(value=None, locked=one.locked) for name, one in body.secrets.items()},
        single={name: Setting(value=one.value, locked=one.locked) for name, one in single.items()},
        description=body.description,
        whole=True,
    )


# ---- webhooks --------------------------------------------------------------------------------------------------------


def change_of_webhook(body: WebhookCreate) -> WebhookChange:
    """The whole webhook as a change."""
    return WebhookChange(
        url=body.url,
        events=tuple(body.events),
        waiting_longer_than_s=body.waiting_longer_than_s,
        pool=body.pool,
        team=body.team,
        enabled=body.enabled,
        description=body.description,
    )


def body_of_webhook(record: Declared[Document]) -> WebhookCreate:
    """How somebody would have written this webhook: nobody writes its secret."""
    said = {key: value for key, value in record.spec.items() if key != "secret"}
    return WebhookCreate.model_validate({**said, "name": record.name, "description": description_of(record.note)})


def description_of(note: Mapping[str, object]) -> str:
    """What is said about an object for people."""
    return str(note.get("description", ""))

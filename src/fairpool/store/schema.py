"""The tables, portable between SQLite and PostgreSQL, with the invariants that a database can carry.

Every constraint has a name; what each one means to a caller is in `constraints.py`. Every row belongs to a workspace.
Amounts are thousandths, times microseconds since 1970 UTC. JSON is kept as compact text: nothing queries inside it.

A request and what it holds are one row: that makes "exactly one allocation per holding request" (INV-8) a CHECK.
Lists come in order of `seq`: their tables have no index that begins with the workspace, which SQLite would prefer to
walking the table backwards, and sort everything.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

LIVE: Final = "status IN ('queued', 'allocated', 'preempting')"
HOLDING: Final = "status IN ('allocated', 'preempting')"
"""As literals: SQLite uses a partial index only for a query that repeats its condition word by word."""

MAX_THOUSANDTHS: Final = 10**18

metadata = MetaData()

# SQLite gives a rowid of its own only to this type; on PostgreSQL it is a plain bigint.
Sequence = BigInteger().with_variant(Integer(), "sqlite")


def _key(table: str, *columns: str) -> PrimaryKeyConstraint:
    return PrimaryKeyConstraint(*columns, name=f"pk_{table}")


def _check(name: str, condition: str) -> CheckConstraint:
    return CheckConstraint(condition, name=f"ck_{name}")


def _text(name: str) -> Column[str]:
    return Column(name, String, nullable=False)


def _number(name: str, *, null: bool = False) -> Column[int]:
    return Column(name, BigInteger, nullable=null)


def _json(name: str) -> Column[str]:
    return Column(name, Text, nullable=True)  # NULL stands for what is empty


def _added_text(name: str) -> Column[str]:
    """A text that came with a later schema: code of the schema before leaves it out when it writes."""
    return Column(name, String, nullable=False, server_default="")


def _declared(table: str) -> list[Column[str] | Column[int]]:
    return [
        _text("workspace"),
        _text("id"),
        _text("name"),
        _number("version"),
        _number("created_at"),
        _number("updated_at"),
        _json("note"),
    ]


leaders = Table(
    "leaders",
    metadata,
    _text("name"),
    _text("holder"),
    _number("token"),
    _number("until"),
    _added_text("address"),
    _key("leaders", "name"),
    _check("leaders_token", "token > 0"),
)

workspaces = Table(
    "workspaces",
    metadata,
    _text("name"),
    _number("grant_sequence"),
    _key("workspaces", "name"),
    _check("workspaces_grant_sequence", "grant_sequence >= 0"),
)

pools = Table(
    "pools",
    metadata,
    *_declared("pools"),
    _text("state"),
    _text("ordering"),
    Column("backfill", Boolean(create_constraint=False), nullable=False),
    _text("placement"),
    _number("max_bypass_s"),
    _json("components"),
    _key("pools", "workspace", "id"),
    UniqueConstraint("workspace", "name", name="uq_pools_name"),
    _check("pools_version", "version > 0"),
    _check("pools_max_bypass", "max_bypass_s >= 0"),
    _check("pools_state", "state IN ('active', 'draining')"),
    _check("pools_ordering", "ordering IN ('fair', 'fifo')"),
    _check("pools_placement", "placement IN ('pack', 'spread')"),
)

pool_nodes = Table(
    "pool_nodes",
    metadata,
    _text("workspace"),
    _text("name"),
    _text("pool_id"),
    _number("position"),
    _text("state"),
    _text("gpu_type"),
    _json("labels"),
    _key("pool_nodes", "workspace", "name"),  # a node belongs to one pool at most (S6)
    ForeignKeyConstraint(
        ["workspace", "pool_id"], ["pools.workspace", "pools.id"], name="fk_pool_nodes_pool", ondelete="CASCADE"
    ),
    _check("pool_nodes_state", "state IN ('ready', 'cordoned', 'down', 'unknown')"),
    Index("ix_pool_nodes_pool", "workspace", "pool_id"),
)

# node: '' for what the pool has as a whole
pool_amounts = Table(
    "pool_amounts",
    metadata,
    _text("workspace"),
    _text("pool_id"),
    _text("node"),
    _text("key"),
    _number("amount"),
    _key("pool_amounts", "workspace", "pool_id", "node", "key"),
    ForeignKeyConstraint(
        ["workspace", "pool_id"], ["pools.workspace", "pools.id"], name="fk_pool_amounts_pool", ondelete="CASCADE"
    ),
    _check("pool_amounts_amount", f"amount >= 0 AND amount <= {MAX_THOUSANDTHS}"),
)

policies = Table(
    "policies",
    metadata,
    *_declared("policies"),
    _text("pool_id"),
    _text("subject"),
    _number("priority"),
    _number("weight"),
    Column("dedicated", Boolean(create_constraint=False), nullable=False),
    _number("grace_s"),
    _number("min_runtime_s"),
    _json("profiles"),
    _json("schedule"),
    _key("policies", "workspace", "id"),
    UniqueConstraint("workspace", "pool_id", "subject", name="uq_policies_subject"),  # S13
    ForeignKeyConstraint(["workspace", "pool_id"], ["pools.workspace", "pools.id"], name="fk_policies_pool"),
    _check("policies_version", "version > 0"),
    _check("policies_weight", "weight > 0"),
    _check("policies_times", "grace_s >= 0 AND min_runtime_s >= 0"),
)

# The pools that a policy spans besides the one in its own row, in its order.
policy_pools = Table(
    "policy_pools",
    metadata,
    _text("workspace"),
    _text("policy_id"),
    _text("pool_id"),
    _number("position"),
    _key("policy_pools", "workspace", "policy_id", "pool_id"),
    ForeignKeyConstraint(
        ["workspace", "policy_id"],
        ["policies.workspace", "policies.id"],
        name="fk_policy_pools_policy",
        ondelete="CASCADE",
    ),
    ForeignKeyConstraint(["workspace", "pool_id"], ["pools.workspace", "pools.id"], name="fk_policy_pools_pool"),
    Index("ix_policy_pools_pool", "workspace", "pool_id"),
)

# NULL: the policy does not say anything of this key
policy_amounts = Table(
    "policy_amounts",
    metadata,
    _text("workspace"),
    _text("policy_id"),
    _text("key"),
    _number("reserved", null=True),
    _number("most", null=True),
    _key("policy_amounts", "workspace", "policy_id", "key"),
    ForeignKeyConstraint(
        ["workspace", "policy_id"],
        ["policies.workspace", "policies.id"],
        name="fk_policy_amounts_policy",
        ondelete="CASCADE",
    ),
    _check("policy_amounts_reserved", f"reserved >= 0 AND reserved <= {MAX_THOUSANDTHS}"),
    _check("policy_amounts_limit", f"most >= 0 AND most <= {MAX_THOUSANDTHS}"),
    _check("policy_amounts_reserved_within_limit", "reserved <= most"),  # S11; NULLs pass
)

profiles = Table(
    "profiles",
    metadata,
    *_declared("profiles"),
    Column("demand", Text, nullable=False),
    Column("pools", Text, nullable=False),
    _key("profiles", "workspace", "id"),
    UniqueConstraint("workspace", "name", name="uq_profiles_name"),
    _check("profiles_version", "version > 0"),
)

documents = Table(
    "documents",
    metadata,
    _text("kind"),
    *_declared("documents"),
    Column("spec", Text, nullable=False),
    _key("documents", "workspace", "kind", "id"),
    UniqueConstraint("workspace", "kind", "name", name="uq_documents_name"),
    _check("documents_version", "version > 0"),
    _check(
        "documents_kind",
        "kind IN ('component', 'stack', 'settings', 'user', 'team', 'service-account', 'vault', 'webhook')",
    ),
)

# What lets people and services in. Of the secret only a hash is kept; the id is part of what they send, and finds it.
tokens = Table(
    "tokens",
    metadata,
    _text("id"),
    _text("workspace"),
    _text("name"),
    _text("owner"),
    _text("hash"),
    _number("created_at"),
    _text("created_by"),
    _number("expires_at", null=True),
    _number("revoked_at", null=True),
    _number("last_used_at", null=True),
    _key("tokens", "id"),
    Index("ix_tokens_owner", "workspace", "owner"),
)

# Up to which history entry a webhook's receiver has been told, and how its last delivery went.
webhook_cursors = Table(
    "webhook_cursors",
    metadata,
    _text("workspace"),
    _text("webhook_id"),
    _number("seq"),
    _number("failures"),
    _number("next_try_at", null=True),
    _text("last_error"),
    _key("webhook_cursors", "workspace", "webhook_id"),
    _check("webhook_cursors_failures", "failures >= 0"),
)

requests = Table(
    "requests",
    metadata,
    Column("seq", Sequence, nullable=False, autoincrement=False),
    _text("workspace"),
    _text("id"),
    _text("status"),
    _number("version"),
    # what decides on it
    _text("subjects"),
    Column("demand", Text, nullable=False),
    _number("queued_at"),
    Column("preemptible", Boolean(create_constraint=False), nullable=False),
    _number("priority"),
    _text("profile"),
    _text("wanted_pool"),
    _number("max_runtime_s", null=True),
    _number("wait_timeout_s", null=True),
    # what was said besides
    _number("created_at"),
    _text("created_by"),
    _text("name"),
    Column("run", String, nullable=True),
    _text("step"),
    _text("retry_of"),
    _text("idempotency_key"),
    _json("labels"),
    _json("details"),
    # its lease
    _number("lease_until", null=True),
    _number("lease_length_s", null=True),
    # what it holds, or held
    _number("grant_sequence", null=True),
    _number("granted_at", null=True),
    Column("pool_id", String, nullable=True),
    Column("policy_id", String, nullable=True),
    _json("parts"),
    _text("pool_name"),
    _text("policy_subject"),
    Column("evicted_because", String, nullable=True),
    Column("evicted_for", String, nullable=True),
    _number("evicted_until", null=True),
    # what is kept for it while it waits
    _json("claim"),
    # its end
    _number("ended_at", null=True),
    _text("ended_by"),
    _json("reasons"),
    _key("requests", "seq"),
    UniqueConstraint("id", "workspace", name="uq_requests_id"),
    _check(
        "requests_status",
        "status IN ('queued', 'allocated', 'preempting', 'released', 'preempted', 'rejected', 'cancelled', 'expired')",
    ),
    _check("requests_version", "version > 0"),
    _check("requests_grant_whole", "(grant_sequence IS NULL) = (granted_at IS NULL)"),
    _check("requests_pool_and_policy", "(pool_id IS NULL) = (policy_id IS NULL)"),
    _check("requests_held", f"NOT ({HOLDING}) OR grant_sequence IS NOT NULL"),  # INV-8
    _check("requests_was_held", "status NOT IN ('released', 'preempted') OR grant_sequence IS NOT NULL"),
    _check("requests_not_held", "status NOT IN ('queued', 'rejected') OR grant_sequence IS NULL"),  # INV-8
    _check("requests_evicted", "status NOT IN ('preempting', 'preempted') OR evicted_because IS NOT NULL"),
    _check("requests_not_evicted", "status NOT IN ('queued', 'allocated', 'released') OR evicted_because IS NULL"),
    _check("requests_claim", "claim IS NULL OR status = 'queued'"),
    _check("requests_ended", f"(ended_at IS NULL) = ({LIVE})"),
    _check("requests_lease", "(lease_until IS NULL) = (lease_length_s IS NULL)"),
)
Index("ix_requests_live", requests.c.workspace, requests.c.seq, sqlite_where=text(LIVE), postgresql_where=text(LIVE))
Index(
    "uq_requests_grant_sequence",
    requests.c.workspace,
    requests.c.grant_sequence,
    unique=True,
    sqlite_where=text(HOLDING),
    postgresql_where=text(HOLDING),
)
for _column in ("pool_id", "run"):
    Index(
        f"ix_requests_{_column}",
        requests.c.workspace,
        requests.c[_column],
        requests.c.seq,
        sqlite_where=text(f"{_column} IS NOT NULL"),
        postgresql_where=text(f"{_column} IS NOT NULL"),
    )

# Requests name their subjects as one text ("component:k8s team:red"), of which there are few: here is what is in each.
subject_sets = Table(
    "subject_sets",
    metadata,
    _text("workspace"),
    _text("subject"),
    _text("subjects"),
    _key("subject_sets", "workspace", "subject", "subjects"),
)

# The GPU devices of live grants in pools: whole ones are nobody else's, fractions add up to one at most (INV-4).
held_devices = Table(
    "held_devices",
    metadata,
    _text("workspace"),
    _text("request_id"),
    Column("part", SmallInteger, nullable=False),
    _text("pool_id"),
    _text("node"),
    Column("device", Integer, nullable=False),
    Column("share", SmallInteger, nullable=False),
    # In this order it serves the trigger that adds the shares up, which runs for every device that is granted.
    _key("held_devices", "pool_id", "node", "device", "workspace", "request_id", "part"),
    ForeignKeyConstraint(
        ["workspace", "request_id"], ["requests.workspace", "requests.id"], name="fk_held_devices_request"
    ),
    _check("held_devices_share", "share >= 1 AND share <= 1000"),
    _check("held_devices_device", "device >= 0"),
    Index("ix_held_devices_request", "request_id", "workspace"),
    Index(
        "uq_held_devices_whole",
        "workspace",
        "pool_id",
        "node",
        "device",
        unique=True,
        sqlite_where=text("share = 1000"),
        postgresql_where=text("share = 1000"),
    ),
)

labels = Table(
    "labels",
    metadata,
    _text("workspace"),
    _text("kind"),
    _text("key"),
    _text("value"),
    _text("object_id"),
    _key("labels", "workspace", "kind", "key", "value", "object_id"),
    _check("labels_kind", "kind IN ('request', 'run')"),
)

runs = Table(
    "runs",
    metadata,
    Column("seq", Sequence, nullable=False, autoincrement=False),
    _text("workspace"),
    _text("id"),
    _text("name"),
    _text("kind"),
    _text("status"),
    _number("version"),
    _text("stack"),
    _text("user_name"),
    _json("labels"),
    _text("error"),
    _number("created_at"),
    _number("started_at", null=True),
    _number("ended_at", null=True),
    _json("details"),
    _key("runs", "seq"),
    UniqueConstraint("id", "workspace", name="uq_runs_id"),
    Index("ix_runs_name", "name", "seq"),
    _check("runs_status", "status IN ('pending', 'running', 'completed', 'failed', 'cancelled')"),
    _check("runs_version", "version > 0"),
)

steps = Table(
    "steps",
    metadata,
    Column("seq", Sequence, nullable=False, autoincrement=False),
    _text("workspace"),
    _text("id"),
    _text("run_id"),
    _text("name"),
    _number("step_index"),
    _text("status"),
    _number("version"),
    _text("component"),
    _number("attempt"),
    _text("request_id"),
    _text("log"),
    _text("error"),
    _text("checkpoint"),
    _number("created_at"),
    _number("started_at", null=True),
    _number("ended_at", null=True),
    _json("details"),
    _key("steps", "seq"),
    UniqueConstraint("id", "workspace", name="uq_steps_id"),
    ForeignKeyConstraint(["workspace", "run_id"], ["runs.workspace", "runs.id"], name="fk_steps_run"),
    Index("ix_steps_run", "run_id", "seq"),
    _check("steps_status", "status IN ('pending', 'running', 'completed', 'failed', 'cancelled')"),
    _check("steps_version", "version > 0"),
    _check("steps_attempt", "attempt >= 0 AND step_index >= 0"),
)

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    _text("workspace"),
    _text("kind"),
    _text("key"),
    _text("object_id"),
    _text("fingerprint"),
    _number("at"),
    _key("idempotency_keys", "workspace", "kind", "key"),
)

history = Table(
    "history",
    metadata,
    Column("seq", Sequence, nullable=False, autoincrement=False),
    _text("workspace"),
    _number("at"),
    _text("kind"),
    _text("object_id"),
    _text("name"),
    _text("what"),
    _text("actor"),
    _text("cause"),
    _json("before"),
    _json("after"),
    Column("run", String, nullable=True),
    _added_text("source"),
    _key("history", "seq"),
    Index("ix_history_object", "object_id", "seq"),
    Index(
        "ix_history_run", "run", "seq", sqlite_where=text("run IS NOT NULL"), postgresql_where=text("run IS NOT NULL")
    ),
)

# Found by their key alone and small: on SQLite they live inside the index.
for _table in (subject_sets, held_devices, labels, idempotency_keys, pool_amounts, policy_amounts, policy_pools):
    _table.dialect_options["sqlite"]["with_rowid"] = False

"""The tables of what people declare, of who they are, and of who leads. See `schema`, which has them all."""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    Boolean,
    Column,
    ForeignKeyConstraint,
    Index,
    Table,
    Text,
    UniqueConstraint,
)

from fairpool.store.columns import (
    added_flag_column,
    added_text_column,
    check,
    declared_columns,
    json_column,
    key,
    metadata,
    number_column,
    text_column,
)

MAX_THOUSANDTHS: Final = 10**18

leaders = Table(
    "leaders",
    metadata,
    text_column("name"),
    text_column("holder"),
    number_column("token"),
    number_column("until"),
    added_text_column("address"),
    key("leaders", "name"),
    check("leaders_token", "token > 0"),
)

workspaces = Table(
    "workspaces",
    metadata,
    text_column("name"),
    number_column("grant_sequence"),
    key("workspaces", "name"),
    check("workspaces_grant_sequence", "grant_sequence >= 0"),
)

pools = Table(
    "pools",
    metadata,
    *declared_columns(),
    text_column("state"),
    text_column("ordering"),
    Column("backfill", Boolean(create_constraint=False), nullable=False),
    text_column("placement"),
    number_column("max_bypass_s"),
    json_column("components"),
    key("pools", "workspace", "id"),
    UniqueConstraint("workspace", "name", name="uq_pools_name"),
    check("pools_version", "version > 0"),
    check("pools_max_bypass", "max_bypass_s >= 0"),
    check("pools_state", "state IN ('active', 'draining')"),
    check("pools_ordering", "ordering IN ('fair', 'fifo')"),
    check("pools_placement", "placement IN ('pack', 'spread')"),
    added_flag_column("defragments"),  # then `placement` says `pack`, which is what code of schema 0001 knows
)

pool_nodes = Table(
    "pool_nodes",
    metadata,
    text_column("workspace"),
    text_column("name"),
    text_column("pool_id"),
    number_column("position"),
    text_column("state"),
    text_column("gpu_type"),
    json_column("labels"),
    key("pool_nodes", "workspace", "name"),  # a node belongs to one pool at most (S6)
    ForeignKeyConstraint(
        ["workspace", "pool_id"], ["pools.workspace", "pools.id"], name="fk_pool_nodes_pool", ondelete="CASCADE"
    ),
    check("pool_nodes_state", "state IN ('ready', 'cordoned', 'down', 'unknown')"),
    Index("ix_pool_nodes_pool", "workspace", "pool_id"),
)

# node: '' for what the pool has as a whole
pool_amounts = Table(
    "pool_amounts",
    metadata,
    text_column("workspace"),
    text_column("pool_id"),
    text_column("node"),
    text_column("key"),
    number_column("amount"),
    key("pool_amounts", "workspace", "pool_id", "node", "key"),
    ForeignKeyConstraint(
        ["workspace", "pool_id"], ["pools.workspace", "pools.id"], name="fk_pool_amounts_pool", ondelete="CASCADE"
    ),
    check("pool_amounts_amount", f"amount >= 0 AND amount <= {MAX_THOUSANDTHS}"),
)

policies = Table(
    "policies",
    metadata,
    *declared_columns(),
    text_column("pool_id"),
    text_column("subject"),
    number_column("priority"),
    number_column("weight"),
    Column("dedicated", Boolean(create_constraint=False), nullable=False),
    number_column("grace_s"),
    number_column("min_runtime_s"),
    json_column("profiles"),
    key("policies", "workspace", "id"),
    UniqueConstraint("workspace", "pool_id", "subject", name="uq_policies_subject"),  # S13
    ForeignKeyConstraint(["workspace", "pool_id"], ["pools.workspace", "pools.id"], name="fk_policies_pool"),
    check("policies_version", "version > 0"),
    check("policies_weight", "weight > 0"),
    check("policies_times", "grace_s >= 0 AND min_runtime_s >= 0"),
)

# The pools that a policy spans besides the one in its own row, in its order.
policy_pools = Table(
    "policy_pools",
    metadata,
    text_column("workspace"),
    text_column("policy_id"),
    text_column("pool_id"),
    number_column("position"),
    key("policy_pools", "workspace", "policy_id", "pool_id"),
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
    text_column("workspace"),
    text_column("policy_id"),
    text_column("key"),
    number_column("reserved", null=True),
    number_column("most", null=True),
    key("policy_amounts", "workspace", "policy_id", "key"),
    ForeignKeyConstraint(
        ["workspace", "policy_id"],
        ["policies.workspace", "policies.id"],
        name="fk_policy_amounts_policy",
        ondelete="CASCADE",
    ),
    check("policy_amounts_reserved", f"reserved >= 0 AND reserved <= {MAX_THOUSANDTHS}"),
    check("policy_amounts_limit", f"most >= 0 AND most <= {MAX_THOUSANDTHS}"),
    check("policy_amounts_reserved_within_limit", "reserved <= most"),  # S11; NULLs pass
)

profiles = Table(
    "profiles",
    metadata,
    *declared_columns(),
    Column("demand", Text, nullable=False),
    Column("pools", Text, nullable=False),
    key("profiles", "workspace", "id"),
    UniqueConstraint("workspace", "name", name="uq_profiles_name"),
    check("profiles_version", "version > 0"),
)

documents = Table(
    "documents",
    metadata,
    text_column("kind"),
    *declared_columns(),
    Column("spec", Text, nullable=False),
    key("documents", "workspace", "kind", "id"),
    UniqueConstraint("workspace", "kind", "name", name="uq_documents_name"),
    check("documents_version", "version > 0"),
    check(
        "documents_kind",
        "kind IN ('component', 'stack', 'settings', 'user', 'team', 'service-account', 'vault', 'webhook', "
        "'workspace')",
    ),
)

# What lets people and services in. Of the secret only a hash is kept; the id is part of what they send, and finds it.
tokens = Table(
    "tokens",
    metadata,
    text_column("id"),
    text_column("workspace"),
    text_column("name"),
    text_column("owner"),
    text_column("hash"),
    number_column("created_at"),
    text_column("created_by"),
    number_column("expires_at", null=True),
    number_column("revoked_at", null=True),
    number_column("last_used_at", null=True),
    key("tokens", "id"),
    Index("ix_tokens_owner", "workspace", "owner"),
)

# Up to which history entry a webhook's receiver has been told, and how its last delivery went.
webhook_cursors = Table(
    "webhook_cursors",
    metadata,
    text_column("workspace"),
    text_column("webhook_id"),
    number_column("seq"),
    number_column("failures"),
    number_column("next_try_at", null=True),
    text_column("last_error"),
    key("webhook_cursors", "workspace", "webhook_id"),
    check("webhook_cursors_failures", "failures >= 0"),
)

"""The first schema."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# Letter by letter, where PostgreSQL would sort by the rules of some language.
_WORD = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    """Make everything."""
    _leaders()
    _pools()
    _policies()
    _profiles_and_documents()
    _requests()
    _request_indexes()
    _beside_requests()
    _runs()
    _history()
    if op.get_bind().dialect.name == "sqlite":
        _sqlite_triggers()
    else:
        _postgres_triggers()


def _partial_index(name: str, table: str, columns: list[str], where: str, *, unique: bool = False) -> None:
    condition = sa.text(where)
    op.create_index(name, table, columns, unique=unique, sqlite_where=condition, postgresql_where=condition)


def _leaders() -> None:
    """Who writes, and what it counts."""
    op.create_table(
        "leaders",
        sa.Column("name", _WORD, nullable=False),
        sa.Column("holder", _WORD, nullable=False),
        sa.Column("token", sa.BigInteger(), nullable=False),
        sa.Column("until", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("token > 0", name="ck_leaders_token"),
        sa.PrimaryKeyConstraint("name", name="pk_leaders"),
    )
    op.create_table(
        "workspaces",
        sa.Column("name", _WORD, nullable=False),
        sa.Column("grant_sequence", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("grant_sequence >= 0", name="ck_workspaces_grant_sequence"),
        sa.PrimaryKeyConstraint("name", name="pk_workspaces"),
    )


def _pools() -> None:
    """Supply."""
    op.create_table(
        "pools",
        sa.Column("workspace", _WORD, nullable=False),
        sa.Column("id", _WORD, nullable=False),
        sa.Column("name", _WORD, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("state", _WORD, nullable=False),
        sa.Column("ordering", _WORD, nullable=False),
        sa.Column("backfill", sa.Boolean(), nullable=False),
        sa.Column("placement", _WORD, nullable=False),
        sa.Column("max_bypass_s", sa.BigInteger(), nullable=False),
        sa.Column("components", sa.Text(), nullable=True),
        sa.CheckConstraint("ordering IN ('fair', 'fifo')", name="ck_pools_ordering"),
        sa.CheckConstraint("placement IN ('pack', 'spread')", name="ck_pools_placement"),
        sa.CheckConstraint("state IN ('active', 'draining')", name="ck_pools_state"),
        sa.CheckConstraint("max_bypass_s >= 0", name="ck_pools_max_bypass"),
        sa.CheckConstraint("version > 0", name="ck_pools_version"),
        sa.PrimaryKeyConstraint("workspace", "id", name="pk_pools"),
        sa.UniqueConstraint("workspace", "name", name="uq_pools_name"),
    )
    op.create_table(
        "pool_nodes",
        sa.Column("workspace", _WORD, nullable=False),
        sa.Column("name", _WORD, nullable=False),
        sa.Column("pool_id", _WORD, nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("state", _WORD, nullable=False),
        sa.Column("gpu_type", _WORD, nullable=False),
        sa.Column("labels", sa.Text(), nullable=True),
        sa.CheckConstraint("state IN ('ready', 'cordoned', 'down', 'unknown')", name="ck_pool_nodes_state"),
        sa.ForeignKeyConstraint(
            ["workspace", "pool_id"], ["pools.workspace", "pools.id"], name="fk_pool_nodes_pool", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("workspace", "name", name="pk_pool_nodes"),
    )
    op.create_index("ix_pool_nodes_pool", "pool_nodes", ["workspace", "pool_id"], unique=False)
    op.create_table(
        "pool_amounts",
        sa.Column("workspace", _WORD, nullable=False),
        sa.Column("pool_id", _WORD, nullable=False),
        sa.Column("node", _WORD, nullable=False),
        sa.Column("key", _WORD, nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("amount >= 0 AND amount <= 1000000000000000000", name="ck_pool_amounts_amount"),
        sa.ForeignKeyConstraint(
            ["workspace", "pool_id"], ["pools.workspace", "pools.id"], name="fk_pool_amounts_pool", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("workspace", "pool_id", "node", "key", name="pk_pool_amounts"),
        sqlite_with_rowid=False,
    )


def _policies() -> None:
    """Rights."""
    op.create_table(
        "policies",
        sa.Column("workspace", _WORD, nullable=False),
        sa.Column("id", _WORD, nullable=False),
        sa.Column("name", _WORD, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("pool_id", _WORD, nullable=False),
        sa.Column("subject", _WORD, nullable=False),
        sa.Column("priority", sa.BigInteger(), nullable=False),
        sa.Column("weight", sa.BigInteger(), nullable=False),
        sa.Column("dedicated", sa.Boolean(), nullable=False),
        sa.Column("grace_s", sa.BigInteger(), nullable=False),
        sa.Column("min_runtime_s", sa.BigInteger(), nullable=False),
        sa.Column("profiles", sa.Text(), nullable=True),
        sa.CheckConstraint("grace_s >= 0 AND min_runtime_s >= 0", name="ck_policies_times"),
        sa.CheckConstraint("version > 0", name="ck_policies_version"),
        sa.CheckConstraint("weight > 0", name="ck_policies_weight"),
        sa.ForeignKeyConstraint(["workspace", "pool_id"], ["pools.workspace", "pools.id"], name="fk_policies_pool"),
        sa.PrimaryKeyConstraint("workspace", "id", name="pk_policies"),
        sa.UniqueConstraint("workspace", "pool_id", "subject", name="uq_policies_subject"),
    )
    op.create_table(
        "policy_amounts",
        sa.Column("workspace", _WORD, nullable=False),
        sa.Column("policy_id", _WORD, nullable=False),
        sa.Column("key", _WORD, nullable=False),
        sa.Column("reserved", sa.BigInteger(), nullable=True),
        sa.Column("most", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("most >= 0 AND most <= 1000000000000000000", name="ck_policy_amounts_limit"),
        sa.CheckConstraint("reserved <= most", name="ck_policy_amounts_reserved_within_limit"),
        sa.CheckConstraint("reserved >= 0 AND reserved <= 1000000000000000000", name="ck_policy_amounts_reserved"),
        sa.ForeignKeyConstraint(
            ["workspace", "policy_id"],
            ["policies.workspace", "policies.id"],
            name="fk_policy_amounts_policy",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("workspace", "policy_id", "key", name="pk_policy_amounts"),
        sqlite_with_rowid=False,
    )


def _profiles_and_documents() -> None:
    """Named demands, and what only people read."""
    op.create_table(
        "profiles",
        sa.Column("workspace", _WORD, nullable=False),
        sa.Column("id", _WORD, nullable=False),
        sa.Column("name", _WORD, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("demand", sa.Text(), nullable=False),
        sa.Column("pools", sa.Text(), nullable=False),
        sa.CheckConstraint("version > 0", name="ck_profiles_version"),
        sa.PrimaryKeyConstraint("workspace", "id", name="pk_profiles"),
        sa.UniqueConstraint("workspace", "name", name="uq_profiles_name"),
    )
    op.create_table(
        "documents",
        sa.Column("kind", _WORD, nullable=False),
        sa.Column("workspace", _WORD, nullable=False),
        sa.Column("id", _WORD, nullable=False),
        sa.Column("name", _WORD, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("spec", sa.Text(), nullable=False),
        sa.CheckConstraint("kind IN ('component', 'stack', 'settings')", name="ck_documents_kind"),
        sa.CheckConstraint("version > 0", name="ck_documents_version"),
        sa.PrimaryKeyConstraint("workspace", "kind", "id", name="pk_documents"),
        sa.UniqueConstraint("workspace", "kind", "name", name="uq_documents_name"),
    )


def _requests() -> None:
    """Demand, and what it holds."""
    op.create_table(
        "requests",
        *_request_columns(),
        *_request_checks(),
        sa.PrimaryKeyConstraint("seq", name="pk_requests"),
        sa.UniqueConstraint("id", "workspace", name="uq_requests_id"),
    )


def _request_columns() -> list[sa.Column[Any]]:
    return [
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("workspace", _WORD, nullable=False),
        sa.Column("id", _WORD, nullable=False),
        sa.Column("status", _WORD, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("subjects", _WORD, nullable=False),
        sa.Column("demand", sa.Text(), nullable=False),
        sa.Column("queued_at", sa.BigInteger(), nullable=False),
        sa.Column("preemptible", sa.Boolean(), nullable=False),
        sa.Column("priority", sa.BigInteger(), nullable=False),
        sa.Column("profile", _WORD, nullable=False),
        sa.Column("wanted_pool", _WORD, nullable=False),
        sa.Column("max_runtime_s", sa.BigInteger(), nullable=True),
        sa.Column("wait_timeout_s", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("created_by", _WORD, nullable=False),
        sa.Column("name", _WORD, nullable=False),
        sa.Column("run", _WORD, nullable=True),
        sa.Column("step", _WORD, nullable=False),
        sa.Column("retry_of", _WORD, nullable=False),
        sa.Column("idempotency_key", _WORD, nullable=False),
        sa.Column("labels", sa.Text(), nullable=True),
        sa.Column("details", sa.Text(), nullable=True),
        sa.Column("lease_until", sa.BigInteger(), nullable=True),
        sa.Column("lease_length_s", sa.BigInteger(), nullable=True),
        sa.Column("grant_sequence", sa.BigInteger(), nullable=True),
        sa.Column("granted_at", sa.BigInteger(), nullable=True),
        sa.Column("pool_id", _WORD, nullable=True),
        sa.Column("policy_id", _WORD, nullable=True),
        sa.Column("parts", sa.Text(), nullable=True),
        sa.Column("pool_name", _WORD, nullable=False),
        sa.Column("policy_subject", _WORD, nullable=False),
        sa.Column("evicted_because", _WORD, nullable=True),
        sa.Column("evicted_for", _WORD, nullable=True),
        sa.Column("evicted_until", sa.BigInteger(), nullable=True),
        sa.Column("claim", sa.Text(), nullable=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("ended_by", _WORD, nullable=False),
        sa.Column("reasons", sa.Text(), nullable=True),
    ]


def _request_checks() -> list[sa.CheckConstraint]:
    return [
        sa.CheckConstraint(
            "(ended_at IS NULL) = (status IN ('queued', 'allocated', 'preempting'))", name="ck_requests_ended"
        ),
        sa.CheckConstraint(
            "NOT (status IN ('allocated', 'preempting')) OR grant_sequence IS NOT NULL", name="ck_requests_held"
        ),
        sa.CheckConstraint("claim IS NULL OR status = 'queued'", name="ck_requests_claim"),
        sa.CheckConstraint(
            "status IN ('queued', 'allocated', 'preempting', 'released', 'preempted', "
            "'rejected', 'cancelled', 'expired')",
            name="ck_requests_status",
        ),
        sa.CheckConstraint(
            "status NOT IN ('preempting', 'preempted') OR evicted_because IS NOT NULL", name="ck_requests_evicted"
        ),
        sa.CheckConstraint(
            "status NOT IN ('queued', 'allocated', 'released') OR evicted_because IS NULL",
            name="ck_requests_not_evicted",
        ),
        sa.CheckConstraint(
            "status NOT IN ('queued', 'rejected') OR grant_sequence IS NULL", name="ck_requests_not_held"
        ),
        sa.CheckConstraint(
            "status NOT IN ('released', 'preempted') OR grant_sequence IS NOT NULL", name="ck_requests_was_held"
        ),
        sa.CheckConstraint("(grant_sequence IS NULL) = (granted_at IS NULL)", name="ck_requests_grant_whole"),
        sa.CheckConstraint("(lease_until IS NULL) = (lease_length_s IS NULL)", name="ck_requests_lease"),
        sa.CheckConstraint("(pool_id IS NULL) = (policy_id IS NULL)", name="ck_requests_pool_and_policy"),
        sa.CheckConstraint("version > 0", name="ck_requests_version"),
    ]


def _request_indexes() -> None:
    """What requests are found by."""
    _partial_index(
        "ix_requests_live", "requests", ["workspace", "seq"], "status IN ('queued', 'allocated', 'preempting')"
    )
    _partial_index("ix_requests_pool_id", "requests", ["workspace", "pool_id", "seq"], "pool_id IS NOT NULL")
    _partial_index("ix_requests_run", "requests", ["workspace", "run", "seq"], "run IS NOT NULL")
    _partial_index(
        "uq_requests_grant_sequence",
        "requests",
        ["workspace", "grant_sequence"],
        "status IN ('allocated', 'preempting')",
        unique=True,
    )


def _beside_requests() -> None:
    """What is looked for in requests, and what no two of them may have."""
    op.create_table(
        "subject_sets",
        sa.Column("workspace", _WORD, nullable=False),
        sa.Column("subject", _WORD, nullable=False),
        sa.Column("subjects", _WORD, nullable=False),
        sa.PrimaryKeyConstraint("workspace", "subject", "subjects", name="pk_subject_sets"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "held_devices",
        sa.Column("workspace", _WORD, nullable=False),
        sa.Column("request_id", _WORD, nullable=False),
        sa.Column("part", sa.SmallInteger(), nullable=False),
        sa.Column("pool_id", _WORD, nullable=False),
        sa.Column("node", _WORD, nullable=False),
        sa.Column("device", sa.Integer(), nullable=False),
        sa.Column("share", sa.SmallInteger(), nullable=False),
        sa.CheckConstraint("device >= 0", name="ck_held_devices_device"),
        sa.CheckConstraint("share >= 1 AND share <= 1000", name="ck_held_devices_share"),
        sa.ForeignKeyConstraint(
            ["workspace", "request_id"], ["requests.workspace", "requests.id"], name="fk_held_devices_request"
        ),
        sa.PrimaryKeyConstraint("pool_id", "node", "device", "workspace", "request_id", "part", name="pk_held_devices"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_held_devices_request", "held_devices", ["request_id", "workspace"], unique=False)
    _partial_index(
        "uq_held_devices_whole", "held_devices", ["workspace", "pool_id", "node", "device"], "share = 1000", unique=True
    )
    op.create_table(
        "labels",
        sa.Column("workspace", _WORD, nullable=False),
        sa.Column("kind", _WORD, nullable=False),
        sa.Column("key", _WORD, nullable=False),
        sa.Column("value", _WORD, nullable=False),
        sa.Column("object_id", _WORD, nullable=False),
        sa.CheckConstraint("kind IN ('request', 'run')", name="ck_labels_kind"),
        sa.PrimaryKeyConstraint("workspace", "kind", "key", "value", "object_id", name="pk_labels"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "idempotency_keys",
        sa.Column("workspace", _WORD, nullable=False),
        sa.Column("kind", _WORD, nullable=False),
        sa.Column("key", _WORD, nullable=False),
        sa.Column("object_id", _WORD, nullable=False),
        sa.Column("fingerprint", _WORD, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("workspace", "kind", "key", name="pk_idempotency_keys"),
        sqlite_with_rowid=False,
    )


def _runs() -> None:
    """What drivers report."""
    op.create_table(
        "runs",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("workspace", _WORD, nullable=False),
        sa.Column("id", _WORD, nullable=False),
        sa.Column("name", _WORD, nullable=False),
        sa.Column("kind", _WORD, nullable=False),
        sa.Column("status", _WORD, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("stack", _WORD, nullable=False),
        sa.Column("user_name", _WORD, nullable=False),
        sa.Column("labels", sa.Text(), nullable=True),
        sa.Column("error", _WORD, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("details", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "status IN ('pending', 'running', 'completed', 'failed', 'cancelled')", name="ck_runs_status"
        ),
        sa.CheckConstraint("version > 0", name="ck_runs_version"),
        sa.PrimaryKeyConstraint("seq", name="pk_runs"),
        sa.UniqueConstraint("id", "workspace", name="uq_runs_id"),
    )
    op.create_index("ix_runs_name", "runs", ["name", "seq"], unique=False)
    op.create_table(
        "steps",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("workspace", _WORD, nullable=False),
        sa.Column("id", _WORD, nullable=False),
        sa.Column("run_id", _WORD, nullable=False),
        sa.Column("name", _WORD, nullable=False),
        sa.Column("step_index", sa.BigInteger(), nullable=False),
        sa.Column("status", _WORD, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("component", _WORD, nullable=False),
        sa.Column("attempt", sa.BigInteger(), nullable=False),
        sa.Column("request_id", _WORD, nullable=False),
        sa.Column("log", _WORD, nullable=False),
        sa.Column("error", _WORD, nullable=False),
        sa.Column("checkpoint", _WORD, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("details", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "status IN ('pending', 'running', 'completed', 'failed', 'cancelled')", name="ck_steps_status"
        ),
        sa.CheckConstraint("attempt >= 0 AND step_index >= 0", name="ck_steps_attempt"),
        sa.CheckConstraint("version > 0", name="ck_steps_version"),
        sa.ForeignKeyConstraint(["workspace", "run_id"], ["runs.workspace", "runs.id"], name="fk_steps_run"),
        sa.PrimaryKeyConstraint("seq", name="pk_steps"),
        sa.UniqueConstraint("id", "workspace", name="uq_steps_id"),
    )
    op.create_index("ix_steps_run", "steps", ["run_id", "seq"], unique=False)


def _history() -> None:
    """What happened."""
    op.create_table(
        "history",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("workspace", _WORD, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("kind", _WORD, nullable=False),
        sa.Column("object_id", _WORD, nullable=False),
        sa.Column("name", _WORD, nullable=False),
        sa.Column("what", _WORD, nullable=False),
        sa.Column("actor", _WORD, nullable=False),
        sa.Column("cause", _WORD, nullable=False),
        sa.Column("before", sa.Text(), nullable=True),
        sa.Column("after", sa.Text(), nullable=True),
        sa.Column("run", _WORD, nullable=True),
        sa.PrimaryKeyConstraint("seq", name="pk_history"),
    )
    op.create_index("ix_history_object", "history", ["object_id", "seq"], unique=False)
    _partial_index("ix_history_run", "history", ["run", "seq"], "run IS NOT NULL")


# What final means, and which way is forward (section 9 of the semantics); several steps may share a commit.
_BACKWARDS = """
    NEW.status <> OLD.status AND (
        OLD.status NOT IN ('queued', 'allocated', 'preempting')
        OR NEW.status = 'queued'
        OR (OLD.status = 'preempting' AND NEW.status <> 'preempted')
    )
"""
# INV-4. Fractions of a device add up to the whole at most; which is more than a unique index can say.
_TOO_MANY_SHARES = """
    NEW.share + COALESCE((
        SELECT SUM(share) FROM held_devices
        WHERE workspace = NEW.workspace AND pool_id = NEW.pool_id AND node = NEW.node AND device = NEW.device
    ), 0) > 1000
"""


def _sqlite_triggers() -> None:
    """What no constraint can say."""
    for name, when, wrong in (
        ("tr_held_devices_shares", "INSERT ON held_devices", _TOO_MANY_SHARES),
        ("tr_requests_forward", "UPDATE OF status ON requests", _BACKWARDS),
        ("tr_leaders_token", "UPDATE OF token ON leaders", "NEW.token < OLD.token"),
    ):
        op.execute(f"CREATE TRIGGER {name} BEFORE {when} WHEN {wrong} BEGIN SELECT RAISE(ABORT, '{name}'); END")


def _postgres_triggers() -> None:
    """The same; there a trigger calls a function, and its condition cannot look into tables."""
    refuse = "RAISE EXCEPTION '%', TG_NAME USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = TG_NAME;"
    for function, body in (
        ("fairpool_refuse", refuse),
        ("fairpool_check_shares", f"IF {_TOO_MANY_SHARES} THEN {refuse} END IF; RETURN NEW;"),
    ):
        op.execute(f"CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} END $$")
    for name, event, condition, function in (
        ("tr_held_devices_shares", "INSERT ON held_devices", "", "fairpool_check_shares"),
        ("tr_requests_forward", "UPDATE OF status ON requests", f"WHEN ({_BACKWARDS})", "fairpool_refuse"),
        ("tr_leaders_token", "UPDATE OF token ON leaders", "WHEN (NEW.token < OLD.token)", "fairpool_refuse"),
    ):
        op.execute(f"CREATE TRIGGER {name} BEFORE {event} FOR EACH ROW {condition} EXECUTE FUNCTION {function}()")

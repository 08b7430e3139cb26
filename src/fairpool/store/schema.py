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
    Boolean,
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from fairpool.store.columns import (
    Sequence,
    Word,
    added_number_column,
    added_text_column,
    check,
    json_column,
    key,
    metadata,
    number_column,
    text_column,
)
from fairpool.store.schema_declared import (
    documents,
    leaders,
    policies,
    policy_amounts,
    policy_pools,
    pool_amounts,
    pool_nodes,
    pools,
    profiles,
    tokens,
    webhook_cursors,
    workspaces,
)

__all__ = [
    "HOLDING",
    "LIVE",
    "RULES",
    "documents",
    "held_devices",
    "history",
    "idempotency_keys",
    "labels",
    "leaders",
    "metadata",
    "policies",
    "policy_amounts",
    "policy_pools",
    "pool_amounts",
    "pool_nodes",
    "pools",
    "profiles",
    "requests",
    "runs",
    "steps",
    "subject_sets",
    "tokens",
    "webhook_cursors",
    "workspaces",
]

LIVE: Final = "status IN ('queued', 'allocated', 'preempting')"
HOLDING: Final = "status IN ('allocated', 'preempting')"
RULES: Final = "kind NOT IN ('request', 'run', 'step')"
"""As literals: SQLite uses a partial index only for a query that repeats its condition word by word."""

requests = Table(
    "requests",
    metadata,
    Column("seq", Sequence, nullable=False, autoincrement=False),
    text_column("workspace"),
    text_column("id"),
    text_column("status"),
    number_column("version"),
    # what decides on it
    text_column("subjects"),
    Column("demand", Text, nullable=False),
    number_column("queued_at"),
    Column("preemptible", Boolean(create_constraint=False), nullable=False),
    number_column("priority"),
    text_column("profile"),
    text_column("wanted_pool"),
    number_column("max_runtime_s", null=True),
    number_column("wait_timeout_s", null=True),
    # what was said besides
    number_column("created_at"),
    text_column("created_by"),
    text_column("name"),
    Column("run", Word, nullable=True),
    text_column("step"),
    text_column("retry_of"),
    text_column("idempotency_key"),
    json_column("labels"),
    json_column("details"),
    # its lease
    number_column("lease_until", null=True),
    number_column("lease_length_s", null=True),
    # what it holds, or held
    number_column("grant_sequence", null=True),
    number_column("granted_at", null=True),
    Column("pool_id", Word, nullable=True),
    Column("policy_id", Word, nullable=True),
    json_column("parts"),
    text_column("pool_name"),
    text_column("policy_subject"),
    Column("evicted_because", Word, nullable=True),
    Column("evicted_for", Word, nullable=True),
    number_column("evicted_until", null=True),
    # what is kept for it while it waits
    json_column("claim"),
    # its end
    number_column("ended_at", null=True),
    text_column("ended_by"),
    json_column("reasons"),
    key("requests", "seq"),
    UniqueConstraint("id", "workspace", name="uq_requests_id"),
    check(
        "requests_status",
        "status IN ('queued', 'allocated', 'preempting', 'released', 'preempted', 'rejected', 'cancelled', 'expired')",
    ),
    check("requests_version", "version > 0"),
    check("requests_grant_whole", "(grant_sequence IS NULL) = (granted_at IS NULL)"),
    check("requests_pool_and_policy", "(pool_id IS NULL) = (policy_id IS NULL)"),
    check("requests_held", f"NOT ({HOLDING}) OR grant_sequence IS NOT NULL"),  # INV-8
    check("requests_was_held", "status NOT IN ('released', 'preempted') OR grant_sequence IS NOT NULL"),
    check("requests_not_held", "status NOT IN ('queued', 'rejected') OR grant_sequence IS NULL"),  # INV-8
    check("requests_evicted", "status NOT IN ('preempting', 'preempted') OR evicted_because IS NOT NULL"),
    check("requests_not_evicted", "status NOT IN ('queued', 'allocated', 'released') OR evicted_because IS NULL"),
    check("requests_claim", "claim IS NULL OR status = 'queued'"),
    check("requests_ended", f"(ended_at IS NULL) = ({LIVE})"),
    check("requests_lease", "(lease_until IS NULL) = (lease_length_s IS NULL)"),
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
    text_column("workspace"),
    text_column("subject"),
    text_column("subjects"),
    key("subject_sets", "workspace", "subject", "subjects"),
)

# The GPU devices of live grants in pools: whole ones are nobody else's, fractions add up to one at most (INV-4).
held_devices = Table(
    "held_devices",
    metadata,
    text_column("workspace"),
    text_column("request_id"),
    Column("part", SmallInteger, nullable=False),
    text_column("pool_id"),
    text_column("node"),
    Column("device", Integer, nullable=False),
    Column("share", SmallInteger, nullable=False),
    # In this order it serves the trigger that adds the shares up, which runs for every device that is granted.
    key("held_devices", "pool_id", "node", "device", "workspace", "request_id", "part"),
    ForeignKeyConstraint(
        ["workspace", "request_id"], ["requests.workspace", "requests.id"], name="fk_held_devices_request"
    ),
    check("held_devices_share", "share >= 1 AND share <= 1000"),
    check("held_devices_device", "device >= 0"),
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

# seq: that of the object. On PostgreSQL, where lists by a label are found by it, a trigger fills it in for those who do
# not know it; on SQLite it may be missing (0).
labels = Table(
    "labels",
    metadata,
    text_column("workspace"),
    text_column("kind"),
    text_column("key"),
    text_column("value"),
    text_column("object_id"),
    added_number_column("seq"),
    key("labels", "workspace", "kind", "key", "value", "object_id"),
    check("labels_kind", "kind IN ('request', 'run')"),
)

runs = Table(
    "runs",
    metadata,
    Column("seq", Sequence, nullable=False, autoincrement=False),
    text_column("workspace"),
    text_column("id"),
    text_column("name"),
    text_column("kind"),
    text_column("status"),
    number_column("version"),
    text_column("stack"),
    text_column("user_name"),
    json_column("labels"),
    text_column("error"),
    number_column("created_at"),
    number_column("started_at", null=True),
    number_column("ended_at", null=True),
    json_column("details"),
    added_text_column("created_by"),
    added_text_column("subjects"),
    key("runs", "seq"),
    UniqueConstraint("id", "workspace", name="uq_runs_id"),
    Index("ix_runs_name", "name", "seq"),
    check("runs_status", "status IN ('pending', 'running', 'completed', 'failed', 'cancelled')"),
    check("runs_version", "version > 0"),
)

steps = Table(
    "steps",
    metadata,
    Column("seq", Sequence, nullable=False, autoincrement=False),
    text_column("workspace"),
    text_column("id"),
    text_column("run_id"),
    text_column("name"),
    number_column("step_index"),
    text_column("status"),
    number_column("version"),
    text_column("component"),
    number_column("attempt"),
    text_column("request_id"),
    text_column("log"),
    text_column("error"),
    text_column("checkpoint"),
    number_column("created_at"),
    number_column("started_at", null=True),
    number_column("ended_at", null=True),
    json_column("details"),
    key("steps", "seq"),
    UniqueConstraint("id", "workspace", name="uq_steps_id"),
    ForeignKeyConstraint(["workspace", "run_id"], ["runs.workspace", "runs.id"], name="fk_steps_run"),
    Index("ix_steps_run", "run_id", "seq"),
    check("steps_status", "status IN ('pending', 'running', 'completed', 'failed', 'cancelled')"),
    check("steps_version", "version > 0"),
    check("steps_attempt", "attempt >= 0 AND step_index >= 0"),
)

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    text_column("workspace"),
    text_column("kind"),
    text_column("key"),
    text_column("object_id"),
    text_column("fingerprint"),
    number_column("at"),
    key("idempotency_keys", "workspace", "kind", "key"),
)

history = Table(
    "history",
    metadata,
    Column("seq", Sequence, nullable=False, autoincrement=False),
    text_column("workspace"),
    number_column("at"),
    text_column("kind"),
    text_column("object_id"),
    text_column("name"),
    text_column("what"),
    text_column("actor"),
    text_column("cause"),
    json_column("before"),
    json_column("after"),
    Column("run", Word, nullable=True),
    added_text_column("source"),
    key("history", "seq"),
    Index("ix_history_object", "object_id", "seq"),
    Index(
        "ix_history_run", "run", "seq", sqlite_where=text("run IS NOT NULL"), postgresql_where=text("run IS NOT NULL")
    ),
    Index("ix_history_rules", "seq", sqlite_where=text(RULES), postgresql_where=text(RULES)),
)

# On PostgreSQL alone, which teams use, with lists of millions: a page by any condition is found without walking them.
# (SQLite would take some of these in place of a better way, and sort.) Texts that are mostly empty are left out where
# they are.
_OFTEN_EMPTY: Final = ("profile", "name", "step", "retry_of")
_LISTED_BY: Final = (
    (requests, ("status", "subjects", "policy_id", "created_by", "created_at", "ended_at"), _OFTEN_EMPTY),
    (history, ("kind", "at", "actor"), ()),
    (runs, ("status", "created_by", "subjects"), ()),
)
for _table, _full, _sparse in _LISTED_BY:
    _seq = (_table.c.workspace, _table.c.seq)
    Index(f"ix_{_table.name}_listed", *_seq).ddl_if(dialect="postgresql")
    for _name in _full:
        Index(f"ix_{_table.name}_by_{_name}", _seq[0], _table.c[_name], _seq[1]).ddl_if(dialect="postgresql")
    for _name in _sparse:
        _given = text(f"{_name} <> ''")
        _index = Index(f"ix_{_table.name}_by_{_name}", _seq[0], _table.c[_name], _seq[1], postgresql_where=_given)
        _index.ddl_if(dialect="postgresql")
_carried = (labels.c.workspace, labels.c.kind, labels.c.key, labels.c.value, labels.c.seq)
Index("ix_labels_listed", *_carried).ddl_if(dialect="postgresql")
# Into a copy it goes after what carries it, where the trigger looks for that.
labels.add_is_dependent_on(requests)
labels.add_is_dependent_on(runs)

# Found by their key alone and small: on SQLite they live inside the index.
for _table in (subject_sets, held_devices, labels, idempotency_keys, pool_amounts, policy_amounts, policy_pools):
    _table.dialect_options["sqlite"]["with_rowid"] = False

"""For teams: people and their tokens, policies over several pools, who led from where, and the history of rules and
rights found without reading that of all work.

Expands only: what the schema before reads and writes stays, with its meaning; code of that schema leaves the new
columns out when it writes, and they then have their defaults.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

# Letter by letter, where PostgreSQL would sort by the rules of some language.
_WORD = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    """Add what is new."""
    op.add_column("leaders", sa.Column("address", _WORD, nullable=False, server_default=""))
    op.add_column("history", sa.Column("source", _WORD, nullable=False, server_default=""))
    for name in ("created_by", "subjects"):
        op.add_column("runs", sa.Column(name, _WORD, nullable=False, server_default=""))
    op.add_column("pools", sa.Column("defragments", sa.Boolean(), nullable=False, server_default=sa.false()))
    rules = sa.text("kind NOT IN ('request', 'run', 'step')")
    op.create_index("ix_history_rules", "history", ["seq"], sqlite_where=rules, postgresql_where=rules)
    _policy_pools()
    _more_documents()
    _tokens()
    _webhook_cursors()
    _numbered_labels()
    if op.get_bind().dialect.name == "postgresql":
        _lists_of_millions()


def _policy_pools() -> None:
    op.create_table(
        "policy_pools",
        sa.Column("workspace", _WORD, nullable=False),
        sa.Column("policy_id", _WORD, nullable=False),
        sa.Column("pool_id", _WORD, nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["workspace", "policy_id"],
            ["policies.workspace", "policies.id"],
            name="fk_policy_pools_policy",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(["workspace", "pool_id"], ["pools.workspace", "pools.id"], name="fk_policy_pools_pool"),
        sa.PrimaryKeyConstraint("workspace", "policy_id", "pool_id", name="pk_policy_pools"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_policy_pools_pool", "policy_pools", ["workspace", "pool_id"])


def _more_documents() -> None:
    kinds = (
        "kind IN ('component', 'stack', 'settings', 'user', 'team', 'service-account', 'vault', 'webhook', 'workspace')"
    )
    # SQLite cannot change a condition in place: the table is made anew and filled from the old one.
    with op.batch_alter_table("documents") as table:
        table.drop_constraint("ck_documents_kind", type_="check")
        table.create_check_constraint("ck_documents_kind", kinds)


def _tokens() -> None:
    op.create_table(
        "tokens",
        sa.Column("id", _WORD, nullable=False),
        sa.Column("workspace", _WORD, nullable=False),
        sa.Column("name", _WORD, nullable=False),
        sa.Column("owner", _WORD, nullable=False),
        sa.Column("hash", _WORD, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("created_by", _WORD, nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.Column("last_used_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_tokens"),
    )
    op.create_index("ix_tokens_owner", "tokens", ["workspace", "owner"])


def _webhook_cursors() -> None:
    op.create_table(
        "webhook_cursors",
        sa.Column("workspace", _WORD, nullable=False),
        sa.Column("webhook_id", _WORD, nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("failures", sa.BigInteger(), nullable=False),
        sa.Column("next_try_at", sa.BigInteger(), nullable=True),
        sa.Column("last_error", _WORD, nullable=False),
        sa.CheckConstraint("failures >= 0", name="ck_webhook_cursors_failures"),
        sa.PrimaryKeyConstraint("workspace", "webhook_id", name="pk_webhook_cursors"),
    )


def _numbered_labels() -> None:
    op.add_column("labels", sa.Column("seq", sa.BigInteger(), nullable=False, server_default="0"))
    op.execute(_NUMBER_REQUESTS)
    op.execute(_NUMBER_RUNS)


_NUMBER_REQUESTS = """
    UPDATE labels SET seq = COALESCE((
        SELECT seq FROM requests WHERE requests.workspace = labels.workspace AND requests.id = object_id
    ), 0) WHERE kind = 'request'
"""
_NUMBER_RUNS = """
    UPDATE labels SET seq = COALESCE((
        SELECT seq FROM runs WHERE runs.workspace = labels.workspace AND runs.id = object_id
    ), 0) WHERE kind = 'run'
"""

# Where lists are found by it, code of the schema before gets it filled in.
_NUMBER_LABEL = """
CREATE FUNCTION fairpool_number_label() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    NEW.seq := COALESCE(
        CASE NEW.kind
        WHEN 'request' THEN (SELECT seq FROM requests WHERE workspace = NEW.workspace AND id = NEW.object_id)
        ELSE (SELECT seq FROM runs WHERE workspace = NEW.workspace AND id = NEW.object_id)
        END, 0);
    RETURN NEW;
END $$
"""


def _lists_of_millions() -> None:
    op.create_index("ix_labels_listed", "labels", ["workspace", "kind", "key", "value", "seq"])
    # Which values are common differs from key to key, and decides how a page is best found.
    op.execute("CREATE STATISTICS st_labels (mcv) ON kind, key, value FROM labels")
    op.execute(_NUMBER_LABEL)
    op.execute(
        "CREATE TRIGGER tr_labels_seq BEFORE INSERT ON labels FOR EACH ROW WHEN (NEW.seq = 0) "
        "EXECUTE FUNCTION fairpool_number_label()"
    )
    for table in ("requests", "history", "runs"):
        op.create_index(f"ix_{table}_listed", table, ["workspace", "seq"])
    for table, column in (
        ("requests", "status"),
        ("requests", "subjects"),
        ("requests", "policy_id"),
        ("requests", "created_by"),
        ("requests", "created_at"),
        ("requests", "ended_at"),
        ("history", "kind"),
        ("history", "at"),
        ("history", "actor"),
        ("runs", "status"),
        ("runs", "created_by"),
        ("runs", "subjects"),
    ):
        op.create_index(f"ix_{table}_by_{column}", table, ["workspace", column, "seq"])
    for column in ("profile", "name", "step", "retry_of"):
        given = sa.text(f"{column} <> ''")
        op.create_index(f"ix_requests_by_{column}", "requests", ["workspace", column, "seq"], postgresql_where=given)

"""One table from the names of constraints to the errors that callers see."""

from __future__ import annotations

from sqlalchemy import CheckConstraint

from fairpool.app.store_errors import ConstraintViolated, InvariantBroken, NameTaken
from fairpool.store import schema
from fairpool.store.constraints import MEANINGS, violated

TABLES = schema.metadata.tables.values()
# What is checked by a trigger, or by counting the rows that changed.
NOT_IN_TABLES = {"tr_held_devices_shares", "tr_requests_forward", "tr_leaders_token", "known_request", "known_object"}


def names() -> list[str]:
    constraints = [str(rule.name) for table in TABLES for rule in table.constraints]
    return constraints + [str(index.name) for table in TABLES for index in table.indexes]


def test_every_constraint_has_a_name_of_its_own() -> None:
    assert "None" not in names()
    assert len(set(names())) == len(names())


def test_every_name_in_the_table_is_of_something_that_exists() -> None:
    assert set(MEANINGS) - NOT_IN_TABLES <= set(names())


def test_every_unique_or_referring_constraint_of_a_callers_value_has_a_meaning() -> None:
    """The rest can be violated only by a bug, and is said to be one."""
    internal = {"leaders", "workspaces", "pool_amounts", "policy_amounts", "subject_sets", "labels"}
    wanted = {
        str(rule.name)
        for table in TABLES
        if table.name not in internal
        for rule in table.constraints
        if not isinstance(rule, CheckConstraint) and str(rule.name).startswith(("uq_", "fk_"))
    }
    # written together with what they belong to
    assert wanted - set(MEANINGS) == {"fk_pool_nodes_pool", "fk_policy_pools_policy"}


def test_an_unknown_constraint_is_a_broken_invariant_that_keeps_its_name() -> None:
    error = violated("ck_something_new", "CHECK constraint failed: ck_something_new")
    assert isinstance(error, InvariantBroken)
    assert (error.constraint, "ck_something_new" in error.message) == ("ck_something_new", True)


def test_a_known_constraint_is_its_error_and_says_what_to_do() -> None:
    error = violated("uq_pools_name")
    assert isinstance(error, NameTaken)
    assert isinstance(error, ConstraintViolated)
    assert error.message == "a pool with that name exists"

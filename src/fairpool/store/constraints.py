"""What each constraint of the schema means to a caller: one table from names to errors."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from fairpool.app.store_errors import (
    ConstraintViolated,
    InvariantBroken,
    KeyUsed,
    MissingReference,
    NameTaken,
    NodeTaken,
    PolicyExists,
)


@dataclass(frozen=True, slots=True)
class Meaning:
    """The error that a violated constraint is, and what it says."""

    error: type[ConstraintViolated]
    message: str


MEANINGS: Final = MappingProxyType(
    {
        "pk_pools": Meaning(NameTaken, "a pool with that id exists"),
        "uq_pools_name": Meaning(NameTaken, "a pool with that name exists"),
        "pk_policies": Meaning(NameTaken, "a policy with that id exists"),
        "uq_policies_subject": Meaning(PolicyExists, "the subject has a policy on that pool already: update that one"),
        "pk_profiles": Meaning(NameTaken, "a profile with that id exists"),
        "uq_profiles_name": Meaning(NameTaken, "a profile with that name exists"),
        "pk_documents": Meaning(NameTaken, "a component, stack or setting with that id exists"),
        "uq_documents_name": Meaning(NameTaken, "a component, stack or setting with that name exists"),
        "pk_pool_nodes": Meaning(NodeTaken, "a node belongs to one pool at most: take it out of the other one first"),
        "uq_requests_id": Meaning(NameTaken, "a request with that id exists"),
        "uq_runs_id": Meaning(NameTaken, "a run with that id exists"),
        "uq_steps_id": Meaning(NameTaken, "a step with that id exists"),
        "pk_idempotency_keys": Meaning(KeyUsed, "the idempotency key was used before"),
        "fk_policies_pool": Meaning(MissingReference, "a policy needs its pool: the pool is not there, or still used"),
        "fk_policy_pools_pool": Meaning(
            MissingReference, "a policy needs its pools: one of them is not there, or still used"
        ),
        "fk_steps_run": Meaning(MissingReference, "a step needs its run, and the run is not there"),
        "fk_held_devices_request": Meaning(MissingReference, "devices are held by a request that is not there"),
        "known_request": Meaning(MissingReference, "a request that should change is not there"),
        "known_object": Meaning(MissingReference, "an object that should go is not there"),
        "uq_requests_grant_sequence": Meaning(InvariantBroken, "two grants have the same place in the order (S20)"),
        "uq_held_devices_whole": Meaning(InvariantBroken, "two requests would hold one whole device (INV-4)"),
        "pk_held_devices": Meaning(InvariantBroken, "one part would hold a device twice (INV-4)"),
        "tr_held_devices_shares": Meaning(InvariantBroken, "shares of a device would exceed the whole (INV-4)"),
        "tr_requests_forward": Meaning(InvariantBroken, "a request's status would go backwards (section 9)"),
        "tr_leaders_token": Meaning(InvariantBroken, "the fencing token would not grow"),
    }
)
"""By name. CHECK constraints that are not here, and anything else, are `InvariantBroken`."""


def violated(constraint: str, detail: str = "") -> ConstraintViolated:
    """The error that a violation of the constraint is. detail: what the database said, for bugs."""
    meaning = MEANINGS.get(constraint)
    if meaning is None:
        return InvariantBroken(f"the database refuses this ({constraint}) {detail}".rstrip(), constraint=constraint)
    return meaning.error(meaning.message, constraint=constraint)

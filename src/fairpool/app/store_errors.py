"""What can go wrong with a store, split by who must act.

StoreError
├── StoreUnavailable      it cannot be reached or is busy: try again
│   ├── StoreFull         no room on its disk: nothing was changed; goes on by itself once there is room
│   └── StoreReadOnly     its file or disk cannot be written: an operator must mend permissions
├── StoreUnusable         it cannot be opened, and waiting will not help: an operator must act
│   ├── StoreCorrupt      its file is damaged; it is left as it is
│   ├── StoreForeign      its file is something else's; it is left as it is
│   └── StoreTooNew       a newer version of Fairpool wrote it
├── StaleLeader           another process is the scheduler now: throw memory away and stand by
└── ConstraintViolated    the database refused what the batch says; nothing was changed
    ├── NameTaken         an object of that kind has that name or id already
    ├── PolicyExists      the subject has a policy on that pool already (S13)
    ├── NodeTaken         the node belongs to another pool (S6)
    ├── MissingReference  what the batch points to is not there, or what it drops is still pointed to
    ├── KeyUsed           the idempotency key was used before (S36)
    └── InvariantBroken   what no decision should ever say (S11, INV-4, INV-8): a bug of the caller
"""

from __future__ import annotations


class StoreError(Exception):
    """Base of everything that a store raises. `message` says what, what is possible, and what to do next."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class StoreUnavailable(StoreError):
    """The store cannot be reached or is busy. Nothing was changed; the same call may succeed later."""


class StoreFull(StoreUnavailable):
    """There is no room on the store's disk. Nothing was changed; the same call succeeds once there is room."""


class StoreReadOnly(StoreUnavailable):
    """The store's file or disk cannot be written. Nothing was changed."""


class StoreUnusable(StoreError):
    """The store cannot be used, and waiting will not help. Its file is left exactly as it is."""


class StoreCorrupt(StoreUnusable):
    """The store's file is damaged."""


class StoreForeign(StoreUnusable):
    """The store's file is a database of something else."""


class StoreTooNew(StoreUnusable):
    """The store was written by a newer version of Fairpool.

    found, known: schema revisions.
    """

    def __init__(self, message: str, *, found: str, known: str) -> None:
        super().__init__(message)
        self.found = found
        self.known = known


class StaleLeader(StoreError):
    """Another process has become the scheduler. token: the one that was used; current: the store's."""

    def __init__(self, *, token: int, current: int) -> None:
        super().__init__(f"leadership {token} is over: the store's is {current}; nothing was changed")
        self.token = token
        self.current = current


class ConstraintViolated(StoreError):
    """The database refused the batch. constraint: the name of what was violated; nothing was changed."""

    def __init__(self, message: str, *, constraint: str) -> None:
        super().__init__(message)
        self.constraint = constraint


class NameTaken(ConstraintViolated):
    """An object of that kind with that name or id exists."""


class PolicyExists(ConstraintViolated):
    """The subject has a policy on that pool already (S13)."""


class NodeTaken(ConstraintViolated):
    """The node belongs to another pool (S6)."""


class MissingReference(ConstraintViolated):
    """Something that the batch points to is not there, or something that it drops is still pointed to."""


class KeyUsed(ConstraintViolated):
    """The idempotency key was used before (S36)."""


class InvariantBroken(ConstraintViolated):
    """The batch says what no decision should ever say."""

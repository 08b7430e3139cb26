"""What the application needs of the world around it: Protocols of one to six methods, each with a conformance suite.

    Store       one transaction per batch, guarded by the leader's token; everything back after a restart
    Leases      who is the one scheduler
    Reader      what people ask: five small readers, each on its own connection and never in the scheduler's way
    Clock, IdSource     time and ids, so that tests hold both in their hand
    Sealer      keeps secrets
    Notifier    tells those who wait what was committed
    Backend     starts and stops what the server launches itself

Values are in `records.py`, errors in `store_errors.py`. All methods may be called from any thread.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from fairpool.app.records import (
    AnyDeclared,
    Batch,
    Document,
    HistoryEntry,
    HistoryQuery,
    KeyUse,
    Kind,
    Leadership,
    Owner,
    Page,
    RequestQuery,
    RequestRecord,
    RunQuery,
    RunRecord,
    StepRecord,
    TokenRecord,
    WebhookCursor,
)
from fairpool.core.ids import Instant, RequestId
from fairpool.core.pools import Node
from fairpool.core.requests import Allocation, Status
from fairpool.core.world import Snapshot

ERASED: Final = "erased"
"""What the history of ``default`` says of a workspace just before everything that it has is removed: from then on
numbers of the history are missing (`Store.erase`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """All that a scheduler needs to go on exactly as before.

    snapshot: for `World.restore`. live: records of all requests that wait or hold something, by id; their `request`
    objects are those of the snapshot. declared: all objects, the core's among them. history_seq: the last entry's.
    """

    snapshot: Snapshot
    live: Mapping[RequestId, RequestRecord]
    declared: tuple[AnyDeclared, ...]
    history_seq: int


class Store(Protocol):
    """The memory that survives. Only the scheduler writes; everyone may read."""

    @property
    def leases(self) -> Leases:
        """Who may write."""

    @property
    def reader(self) -> Reader:
        """What is there to read."""

    def commit(self, batch: Batch, token: int) -> int:
        """Make the whole batch durable, or change nothing. Returns the seq of the history's last entry; the batch's
        `changes` have the seqs up to it, in their order, without a gap.

        Raises StaleLeader when `token` is not the current one; StoreFull, StoreReadOnly, StoreUnavailable,
        StoreCorrupt; ConstraintViolated.
        """

    def erase(self, token: int) -> bool:
        """Remove some of everything that the workspace has; whether there may be more. What stays is who led it last,
        so that tokens go on growing. Raises as `commit`."""

    def load(self) -> Stored:
        """What there is, at one moment. Raises StoreUnavailable, StoreCorrupt."""

    def close(self) -> None:
        """Let go of the database. The store cannot be used afterwards."""


class Leases(Protocol):
    """The leader lease: at most one holder at a time, and a fencing token that grows each time it is taken."""

    def acquire(self, holder: str, now: Instant, ttl_s: float, address: str = "") -> Leadership:
        """Take the lease if it is free, lapsed or held by the same holder (which fences off that holder's earlier
        life). Returns the leadership as it then is: the caller's if its `holder` is the caller."""

    def renew(self, token: int, now: Instant, ttl_s: float) -> Leadership:
        """Keep the lease. Raises StaleLeader when the token is not the current one."""

    def release(self, token: int) -> None:
        """Give the lease back, so that another can take it at once. Does nothing with a token that is not current."""

    def current(self) -> Leadership | None:
        """Who held it last; None before the first."""


class Reader(Protocol):
    """What people ask a store. Answers show committed things only, and may be a commit behind."""

    @property
    def declared(self) -> DeclaredReader:
        """Pools, policies, profiles, and everything else that people declare."""

    @property
    def requests(self) -> RequestReader:
        """Requests, live and finished."""

    @property
    def runs(self) -> RunReader:
        """Runs and steps."""

    @property
    def history(self) -> HistoryReader:
        """What happened."""

    @property
    def tokens(self) -> TokenReader:
        """What lets people and services in."""

    @property
    def cursors(self) -> CursorReader:
        """How far webhooks' receivers have been told."""


class DeclaredReader(Protocol):
    """Declared objects. There are few (thousands at most), so lists come whole, sorted by name."""

    def get(self, kind: Kind, object_id: str) -> AnyDeclared | None:
        """The object with that id."""

    def all(self, kind: Kind) -> tuple[AnyDeclared, ...]:
        """All objects of a kind, by name."""

    def match(self, kind: Kind, ref: str) -> tuple[AnyDeclared, ...]:
        """What `ref` may mean: the one with that id, else the one with that name, else those whose id begins so
        (at most 10, by id). Empty for nothing, more than one for an ambiguous prefix."""


class RequestReader(Protocol):
    """Requests. Lists are by time of arrival, newest first unless asked otherwise."""

    def get(self, ids: Collection[str]) -> dict[RequestId, RequestRecord]:
        """Those of these requests that exist."""

    def match(self, ref: str) -> tuple[RequestId, ...]:
        """What `ref` may mean: the request with that id, else those whose id begins so (at most 10, by id)."""

    def page(
        self, query: RequestQuery, *, cursor: int | None = None, limit: int = 100, oldest_first: bool = False
    ) -> Page[RequestRecord]:
        """Part of the list that the query asks for."""

    def count(self, query: RequestQuery) -> dict[Status, int]:
        """How many there are, by status; statuses with none are left out."""

    def key(self, kind: Kind, key: str) -> KeyUse | None:
        """What an idempotency key was used for (of requests, and of runs)."""


class RunReader(Protocol):
    """Runs and their steps. Runs come newest first."""

    def match(self, ref: str, owner: Owner | None = None) -> tuple[RunRecord, ...]:
        """What `ref` may mean: the run with that id, else the newest with that name, else those whose id begins so
        (at most 10, by id). Of one owner's where one is named."""

    def page(self, query: RunQuery, *, cursor: int | None = None, limit: int = 100) -> Page[RunRecord]:
        """Part of the list that the query asks for."""

    def match_step(self, ref: str) -> tuple[StepRecord, ...]:
        """What `ref` may mean: the step with that id, else those whose id begins so (at most 10, by id)."""

    def steps(self, run: str) -> tuple[StepRecord, ...]:
        """All steps of a run, in the order in which they were first reported."""

    def step_counts(self, runs: Collection[str]) -> dict[str, dict[str, int]]:
        """By run id: how many of its steps are in which status; runs without steps are left out."""


class HistoryReader(Protocol):
    """What happened, in order."""

    def page(
        self, query: HistoryQuery, *, cursor: int | None = None, limit: int = 100, newest_first: bool = False
    ) -> Page[HistoryEntry]:
        """Part of the history. `cursor` is the seq after which (newest first: before which) to begin, so an event
        stream goes on with the last seq it saw."""

    def last_seq(self) -> int:
        """The seq of the last entry; 0 before the first."""


class TokenReader(Protocol):
    """Tokens, expired and revoked ones too."""

    def get(self, token_id: str) -> TokenRecord | None:
        """The token with that id, of whatever workspace."""

    def all(self, owner: str = "") -> tuple[TokenRecord, ...]:
        """The workspace's tokens, of one owner where one is named, oldest first."""


class CursorReader(Protocol):
    """How far webhooks' receivers have been told."""

    def all(self) -> dict[str, WebhookCursor]:
        """Every cursor of the workspace, by its name."""


class Clock(Protocol):
    """Tells the time. UTC; never goes backwards within a process."""

    def now(self) -> Instant:
        """Now."""


class IdSource(Protocol):
    """Draws ids that were never used and cannot be guessed."""

    def new(self, kind: Kind) -> str:
        """A new id: letters and digits; ids drawn later sort later, so that they are appended to a store's indexes."""


class Sealer(Protocol):
    """Keeps secrets: what it seals, only who has the installation's keys can open."""

    def seal(self, text: str) -> str:
        """The text, sealed with the newest key. Raises NoVaultKey where there is none."""

    def open(self, sealed: str) -> str:
        """The text that was sealed. Raises CannotOpen where none of the keys opens it."""

    def seal_anew(self, sealed: str) -> str:
        """What was sealed, sealed with the newest key. Raises NoVaultKey, CannotOpen."""


class Notifier(Protocol):
    """Tells those who wait."""

    def publish(self, entries: Sequence[HistoryEntry]) -> None:
        """These changes are committed. Called in order, from the scheduler's thread; must return at once."""

    def elsewhere(self, leader: str) -> None:
        """Something happened that this process did not commit: another server leads now (the one that takes calls at
        `leader`; "" for none), or has committed something. As `publish`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What a backend sees of something that it launched.

    running: False once it has ended; then `exit_code` says how, where it is known.
    """

    request: RequestId
    running: bool
    exit_code: int | None = None
    detail: str = ""


class Backend(Protocol):
    """Runs what the server launches itself: Kubernetes, Slurm, Ray, or processes of this machine."""

    def launch(self, allocation: Allocation, launch: Document) -> None:
        """Start what the request's launch description says on the nodes and devices of its grant. Launching the same
        request twice starts it once."""

    def stop(self, request: RequestId, grace_s: float) -> None:
        """Ask it to stop, and make it stop after `grace_s`. Does nothing where it is not running."""

    def observe(self) -> tuple[Observed, ...]:
        """Everything launched that the backend still knows of."""

    def nodes(self) -> tuple[Node, ...]:
        """The machines there are, with their state."""

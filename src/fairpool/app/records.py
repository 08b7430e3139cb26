"""What a store keeps, as values: declared objects, requests, runs and steps, history.

What the decisions look at is the core's (`Pool`, `Request`, …); a record adds what people want to know besides: names,
versions, times, owners. Times are `Instant` (microseconds, UTC). A `Document` is plain JSON: dicts with text keys,
lists (no tuples), text, numbers, booleans, None.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeAlias, TypeVar

from fairpool.core.ids import Instant, PolicyId, PoolId, RequestId
from fairpool.core.plan import Claim
from fairpool.core.policies import Policy, Profile, Subject
from fairpool.core.pools import Pool
from fairpool.core.reasons import Reason
from fairpool.core.requests import Allocation, Eviction, PartPlacement, Request, Status

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
Document: TypeAlias = Mapping[str, Json]
"""Plain JSON, to be treated as frozen."""

DEFAULT_WORKSPACE = "default"
SETTINGS_ID = "settings"
"""Id and name of the one `Kind.SETTINGS` object of a workspace; its spec may say `require_policy` (S15)."""


class Kind(StrEnum):
    """The kinds of things that have a history. Those in `DECLARED` people write down and change."""

    POOL = "pool"
    POLICY = "policy"
    PROFILE = "profile"
    COMPONENT = "component"
    STACK = "stack"
    SETTINGS = "settings"
    USER = "user"
    TEAM = "team"
    SERVICE_ACCOUNT = "service-account"
    VAULT = "vault"
    WEBHOOK = "webhook"
    REQUEST = "request"
    RUN = "run"
    STEP = "step"
    TOKEN = "token"  # noqa: S105 (the name of a kind)
    WORKSPACE = "workspace"


DOCUMENTS = (
    Kind.COMPONENT,
    Kind.STACK,
    Kind.SETTINGS,
    Kind.USER,
    Kind.TEAM,
    Kind.SERVICE_ACCOUNT,
    Kind.VAULT,
    Kind.WEBHOOK,
    Kind.WORKSPACE,
)
"""Declared kinds whose spec is a document."""

WORK = (Kind.REQUEST, Kind.RUN, Kind.STEP)
"""Kinds of what is done, many times a second; what happens to all others is the history of rules and rights."""

DECLARED = (Kind.POOL, Kind.POLICY, Kind.PROFILE, *DOCUMENTS)

Spec = Pool | Policy | Profile | Document
SpecT_co = TypeVar("SpecT_co", bound=Spec, covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared(Generic[SpecT_co]):
    """An object that people declare: a pool, policy or profile with its core value, a component, stack or the
    workspace's settings as a document.

    name: unique per kind and workspace; of a policy, ``pool-name/subject`` (informative: what is unique is the pair).
    version: counts the changes from 1; it is the ETag.
    note: what is said about it besides (description, …) and does not concern any decision.
    """

    kind: Kind
    id: str
    name: str
    spec: SpecT_co
    version: int = 1
    created_at: Instant
    updated_at: Instant
    note: Document = field(default_factory=dict)


AnyDeclared = Declared[Spec]
"""A declared object of whatever kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What was said when a request was made, besides what decides on it. Never changes.

    created_at: when it arrived (`Request.queued_at` may be earlier: a retry keeps its place, S24).
    created_by: the principal that made it. name: for people ("train", the command's first word).
    run, step: ids of the run and the step that it is an attempt of. retry_of: the preempted request that it repeats.
    details: anything else worth showing (command text, host, launch description).
    """

    created_at: Instant
    created_by: str = ""
    name: str = ""
    run: str = ""
    step: str = ""
    retry_of: str = ""
    idempotency_key: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    details: Document = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What a request holds or, once it has ended, held: the core's Allocation without the request.

    pool_name, subject: as they were at the time, for when the pool or policy is gone.
    eviction: that it must let go, or had to; kept after the end.
    """

    pool: PoolId | None
    policy: PolicyId | None
    parts: tuple[PartPlacement, ...]
    granted_at: Instant
    sequence: int
    eviction: Eviction | None = None
    pool_name: str = ""
    subject: str = ""

    @classmethod
    def of(cls, allocation: Allocation, *, pool_name: str = "", subject: str = "") -> Grant:
        """The grant that an allocation is."""
        return cls(
            pool=allocation.pool,
            policy=allocation.policy,
            parts=allocation.parts,
            granted_at=allocation.granted_at,
            sequence=allocation.sequence,
            eviction=allocation.eviction,
            pool_name=pool_name,
            subject=subject,
        )

    def allocation(self, request: Request) -> Allocation:
        """The allocation of the core that this is."""
        return Allocation(
            request=request,
            pool=self.pool,
            policy=self.policy,
            parts=self.parts,
            granted_at=self.granted_at,
            sequence=self.sequence,
            eviction=self.eviction,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Where a request is in its life: everything about it that changes, but for its lease.

    version: counts the changes from 1; it is the ETag.
    grant: None until it is granted, and for one that ended without a grant; kept when it ends.
    claim: what evictions under way are freeing for it (only while it is queued).
    reasons: why it was rejected, or what went that it waited for. ended_by: who or what ended it ("owner", "alice",
        "lease lapsed", a request id).
    """

    status: Status
    version: int = 1
    grant: Grant | None = None
    claim: Claim | None = None
    ended_at: Instant | None = None
    ended_by: str = ""
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """Until when a live request is believed to have a living owner, and for how long a renewal lasts (S35)."""

    until: Instant
    length_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRecord:
    """A request with everything that a user sees of it. lease: None for one that needs no renewing."""

    request: Request
    submission: Submission
    state: State
    lease: Lease | None = None

    @property
    def id(self) -> RequestId:
        """The request's id."""
        return self.request.id

    @property
    def status(self) -> Status:
        """Where it is in its life."""
        return self.state.status

    @property
    def allocation(self) -> Allocation | None:
        """What it holds now; None while it waits and after its end."""
        grant = self.state.grant
        return None if grant is None or self.state.status.is_final else grant.allocation(self.request)


class RunStatus(StrEnum):
    """Where a run or a step is, as its driver reports it."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """Whether it is over."""
        return self not in (RunStatus.PENDING, RunStatus.RUNNING)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """A run of a pipeline or a command, as its driver reports it. Names need not be unique.

    kind: ``pipeline`` or ``command``. stack: its name. user: whose it is, for people. created_by: the principal that
    reported it. subjects: as whom it was, and so whose besides. details: anything else worth showing.
    """

    id: str
    name: str
    kind: str
    status: RunStatus
    created_at: Instant
    version: int = 1
    stack: str = ""
    user: str = ""
    created_by: str = ""
    subjects: tuple[Subject, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    error: str = ""
    started_at: Instant | None = None
    ended_at: Instant | None = None
    details: Document = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """A step of a run, as its driver reports it.

    index: its place among the steps of that name. request: the request of its current attempt; all of its attempts are
    the requests whose `Submission.step` is its id. attempt: from 1; 0 before the first. log: where its output is kept.
    """

    id: str
    run: str
    name: str
    status: RunStatus
    created_at: Instant
    index: int = 0
    version: int = 1
    component: str = ""
    attempt: int = 0
    request: str = ""
    log: str = ""
    error: str = ""
    checkpoint: str = ""
    started_at: Instant | None = None
    ended_at: Instant | None = None
    details: Document = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One line of the history, as it goes into a commit (S34).

    what: what happened ("queued", "allocated", "created", "capacity changed"); of a request, its new status.
    actor: who did it ("user:alice", "scheduler"). source: from where ("10.0.0.7, token laptop"), "" for the server.
    cause: why ("submitted", "reclaim for request r-7", "lease lapsed").
    before, after: only what changed, and short: this is written for every change of every request.
    run: the run that it concerns, so that a run's events can be followed.
    """

    at: Instant
    kind: Kind
    object: str
    what: str
    name: str = ""
    actor: str = ""
    source: str = ""
    cause: str = ""
    before: Document = field(default_factory=dict)
    after: Document = field(default_factory=dict)
    run: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """A change with its place in the history. seq counts all changes of a store; readers go on after the last seen."""

    seq: int
    change: Change


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyUse:
    """What an idempotency key was used for (S36).

    fingerprint: of what was sent with it, so that the same key with another body can be refused.
    """

    key: str
    kind: Kind
    object: str
    fingerprint: str
    at: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRecord:
    """What lets somebody in. The secret itself is never kept.

    id: the part of the token that finds it; unique over all workspaces. owner: a subject ("user:alice",
    "service-account:ci"). hash: of the whole token, SHA-256, hexadecimal. last_used_at: to the minute.
    """

    id: str
    workspace: str
    name: str
    owner: str
    hash: str
    created_at: Instant
    created_by: str = ""
    expires_at: Instant | None = None
    revoked_at: Instant | None = None
    last_used_at: Instant | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookCursor:
    """How far a webhook's receiver has been told.

    name: the webhook's id, or with ``:waiting`` after it how far those who wait have been looked at. seq: the last
    history entry that is dealt with. failures: tries in a row that failed, of the entry that comes next.
    """

    name: str
    seq: int
    failures: int = 0
    next_try_at: Instant | None = None
    last_error: str = ""


WAITING_CURSOR = ":waiting"
"""After a webhook's id: the name of its cursor over those who wait."""


def cursors_of(webhook: str) -> tuple[str, str]:
    """The names of a webhook's cursors."""
    return webhook, webhook + WAITING_CURSOR


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Everything that one commit changes: all of it or nothing.

    put: declared objects that appear or take the place of those with the same id. drop: kind and id; a pool goes with
        its policies only where the batch drops them too.
    inserted: new requests. updated: new states of known ones. renewed: leases, which leave no history.
    redirected: requests that are from now on made as others, or for another profile or pool; nothing else of them
        differs from before. tokens: appear, or take the place of those with the same id.
    runs, steps: appear, or take the place of those with the same id.
    cursors: appear, or take the place of those with the same name; those of a webhook that is dropped go with it.
    sequence: `World.sequence` after the batch; None where it did not change.
    """

    put: tuple[AnyDeclared, ...] = ()
    drop: tuple[tuple[Kind, str], ...] = ()
    inserted: tuple[RequestRecord, ...] = ()
    updated: tuple[tuple[RequestId, State], ...] = ()
    renewed: tuple[tuple[RequestId, Lease], ...] = ()
    redirected: tuple[Request, ...] = ()
    tokens: tuple[TokenRecord, ...] = ()
    runs: tuple[RunRecord, ...] = ()
    steps: tuple[StepRecord, ...] = ()
    keys: tuple[KeyUse, ...] = ()
    changes: tuple[Change, ...] = ()
    cursors: tuple[WebhookCursor, ...] = ()
    sequence: int | None = None

    @property
    def is_empty(self) -> bool:
        """Whether it changes nothing."""
        return not (
            self.put or self.drop or self.inserted or self.updated or self.renewed
            or self.redirected or self.tokens or self.runs or self.steps or self.keys or self.changes
            or self.cursors or self.sequence is not None
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Leadership:
    """Who is the one scheduler of a store.

    token: grows with every change of hands, so that a late writer is known. address: where it takes the calls that
    others forward; "" for nowhere.
    """

    holder: str
    token: int
    until: Instant
    address: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Whose: of who made it (a principal), and of who it is made as, one of these subjects (``team:vision``)."""

    made_by: str
    subjects: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestQuery:
    """Which requests; conditions that are given must all hold.

    pool: an id: those granted there and, of those never granted, those that pool, policies and profiles let go there.
    subject: ``team:vision``. labels: all of these. name: exactly. since, until: by `Submission.created_at`, until
    exclusive. owner: only theirs, and with `or_live` those of others that wait or hold something.
    """

    statuses: frozenset[Status] = frozenset()
    pool: str = ""
    policy: str = ""
    subject: str = ""
    profile: str = ""
    run: str = ""
    step: str = ""
    name: str = ""
    retry_of: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    since: Instant | None = None
    until: Instant | None = None
    live_at: Instant | None = None
    owner: Owner | None = None
    or_live: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunQuery:
    """Which runs; conditions that are given must all hold. owner: only theirs."""

    statuses: frozenset[RunStatus] = frozenset()
    name: str = ""
    user: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    since: Instant | None = None
    until: Instant | None = None
    owner: Owner | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryQuery:
    """Which history entries; conditions that are given must all hold.

    rules: only of rules and rights, not of requests, runs and steps. name: of whatever has ever gone by that name,
    under its other names too. actor: exactly. without: none of these kinds.
    """

    kind: Kind | None = None
    rules: bool = False
    object: str = ""
    name: str = ""
    actor: str = ""
    without: frozenset[Kind] = frozenset()
    run: str = ""
    since: Instant | None = None
    until: Instant | None = None


Item = TypeVar("Item")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[Item]):
    """Part of a list. next: what to pass as `cursor` for what follows; None at the end."""

    items: tuple[Item, ...]
    next: int | None = None

"""Values that stores are tried with, and the two stores that are tried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from fairpool.app.ports import Store
from fairpool.app.records import (
    DEFAULT_WORKSPACE,
    Batch,
    Change,
    Declared,
    Document,
    Grant,
    Kind,
    Lease,
    RequestRecord,
    RunRecord,
    RunStatus,
    State,
    StepRecord,
    Submission,
)
from fairpool.core.amounts import vector
from fairpool.core.ids import SECOND, Instant, PolicyId, PoolId, ProfileId, RequestId
from fairpool.core.policies import Policy, Profile, Subject
from fairpool.core.pools import Node, NodeState, Pool
from fairpool.core.requests import Because, Demand, Eviction, PartPlacement, Request, Status
from fairpool.store.memory import MemoryStore
from fairpool.store.opening import open_store

Thing = TypeVar("Thing", Pool, Policy)

RED = Subject.parse("team:red")
BLUE = Subject.parse("team:blue")
K8S = Subject.parse("component:k8s")
NOW = Instant(1_700_000_000 * SECOND)


class Trial:
    """A store with its leader's token; `reopened` is what the next process would find."""

    def __init__(self, open_it: Callable[[], Store], url: str = "") -> None:
        self._open = open_it
        self.url = url
        self.store = open_it()
        self.token = self.store.leases.acquire("first", NOW, 60).token

    def commit(self, *, token: int | None = None, **parts: object) -> int:
        """Commit a batch of these parts."""
        return self.store.commit(Batch(**parts), self.token if token is None else token)  # type: ignore[arg-type]

    def reopened(self) -> Store:
        """The store after closing and opening it."""
        self.store.close()
        self.store = self._open()
        return self.store


@dataclass
class OneMemory:
    """Opening the store in memory again finds it as it was."""

    store: Store | None = None

    def __call__(self) -> Store:
        self.store = self.store or MemoryStore()
        return self.store


def trial(kind: str, folder: Path) -> Trial:
    """A new store of that kind: in memory, or in a SQLite file of the folder."""
    if kind == "memory":
        return Trial(OneMemory())
    return trial_of(f"sqlite:///{folder / 'fairpool.db'}")


def trial_of(url: str, workspace: str = DEFAULT_WORKSPACE) -> Trial:
    """A store in the database of that URL."""
    return Trial(lambda: open_store(url, workspace=workspace), url)


def pool(name: str = "shared", *, object_id: str = "", gpus: int = 8, nodes: tuple[Node, ...] = ()) -> Declared[Pool]:
    pool_id = object_id or f"pool-{name}"
    spec = Pool(id=PoolId(pool_id), name=name, capacity=vector({} if nodes else {"gpu": gpus}), nodes=nodes)
    return Declared(kind=Kind.POOL, id=pool_id, name=name, spec=spec, created_at=NOW, updated_at=NOW)


def node(name: str, gpus: int = 4, state: NodeState = NodeState.READY) -> Node:
    return Node(name=name, capacity=vector({"gpu": gpus}), state=state)


def policy(
    subject: Subject = RED, *, of: str = "pool-shared", object_id: str = "", **fields: object
) -> Declared[Policy]:
    policy_id = object_id or f"policy-{subject.name}-{of}"
    spec = Policy(id=PolicyId(policy_id), pool=PoolId(of), subject=subject, **fields)  # type: ignore[arg-type]
    return Declared(kind=Kind.POLICY, id=policy_id, name=f"{of}/{subject}", spec=spec, created_at=NOW, updated_at=NOW)


def profile(name: str = "half", pools: tuple[str, ...] = ("shared",)) -> Declared[Profile]:
    spec = Profile(id=ProfileId(f"profile-{name}"), name=name, demand=vector({"gpu": "0.5"}), pools=pools)
    return Declared(kind=Kind.PROFILE, id=spec.id, name=name, spec=spec, created_at=NOW, updated_at=NOW)


def document(kind: Kind, name: str, spec: Document) -> Declared[Document]:
    return Declared(kind=kind, id=f"{kind.value}-{name}", name=name, spec=spec, created_at=NOW, updated_at=NOW)


def changed(declared: Declared[Thing], **fields: object) -> Declared[Thing]:
    """The next version of a declared object, with these fields of its spec changed."""
    spec: Thing = replace(declared.spec, **fields)  # type: ignore[arg-type]  # which they are is the test's business
    return replace(declared, spec=spec, version=declared.version + 1, updated_at=Instant(declared.updated_at + 1))


def request(request_id: str, *, subjects: tuple[Subject, ...] = (RED,), at: int = 0, **fields: object) -> RequestRecord:
    """A queued request. Fields of the core's request and of the submission may be given."""
    said = {name: fields.pop(name) for name in list(fields) if name in Submission.__slots__}
    demand = fields.pop("demand", Demand.of(vector({"gpu": 1})))
    asked = Request(
        id=RequestId(request_id),
        subjects=subjects,
        demand=demand,  # type: ignore[arg-type]
        queued_at=Instant(NOW + at),
        **fields,  # type: ignore[arg-type]
    )
    submission = Submission(created_at=Instant(NOW + at), **said)  # type: ignore[arg-type]
    lease = Lease(until=Instant(NOW + 60 * SECOND), length_s=60)
    return RequestRecord(request=asked, submission=submission, state=State(status=Status.QUEUED), lease=lease)


def grant(*devices: tuple[int, int], sequence: int = 1, node: str = "", pool: str | None = "pool-shared") -> Grant:
    """A grant of one part with these devices (index, thousandths)."""
    return Grant(
        pool=None if pool is None else PoolId(pool),
        policy=None if pool is None else PolicyId(f"policy-red-{pool}"),
        parts=(PartPlacement(node, devices),),
        granted_at=Instant(NOW + 5),
        sequence=sequence,
        pool_name="shared",
        subject="team:red",
    )


def allocated(held: Grant, *, version: int = 2) -> State:
    return State(status=Status.ALLOCATED, version=version, grant=held)


def preempting(held: Grant, cause: str | None = "r9", *, version: int = 3) -> State:
    because = Because.CAPACITY if cause is None else Because.RECLAIM
    eviction = Eviction(
        cause=None if cause is None else RequestId(cause), because=because, deadline_at=Instant(NOW + 30 * SECOND)
    )
    return State(status=Status.PREEMPTING, version=version, grant=replace(held, eviction=eviction))


def ended(before: State, status: Status, by: str = "owner") -> State:
    return replace(
        before, status=status, version=before.version + 1, claim=None, ended_at=Instant(NOW + 99), ended_by=by
    )


def run(run_id: str, *, name: str = "sweep", status: RunStatus = RunStatus.RUNNING, **fields: object) -> RunRecord:
    return RunRecord(id=run_id, name=name, kind="pipeline", status=status, created_at=NOW, **fields)  # type: ignore[arg-type]


def step(
    step_id: str, of: str, *, name: str = "train", status: RunStatus = RunStatus.PENDING, **fields: object
) -> StepRecord:
    return StepRecord(id=step_id, run=of, name=name, status=status, created_at=NOW, **fields)  # type: ignore[arg-type]


def change(about: str, what: str = "queued", kind: Kind = Kind.REQUEST, **fields: object) -> Change:
    return Change(at=NOW, kind=kind, object=about, what=what, **fields)  # type: ignore[arg-type]

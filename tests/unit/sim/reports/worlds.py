"""Small worlds for reports: pools and policies in one line, jobs in another, and what became of them."""

from fairpool.app.ports import Stored
from fairpool.core.amounts import vector
from fairpool.core.ids import SECOND, Instant, PolicyId, PoolId
from fairpool.core.policies import Policy, Subject
from fairpool.core.pools import Pool
from fairpool.core.requests import Demand
from fairpool.sim.jobs import Job
from fairpool.sim.owners import Owners
from fairpool.sim.replay import Replay
from fairpool.sim.reports.outcome import About, Outcome
from fairpool.sim.rulebook import rulebook
from fairpool.store.memory import MemoryStore

KEPT = Owners()
BEGIN_S = 1_700_000_000
ABOUT = About(
    title="A small world", trace="small.csv", command="fairpool simulate small.csv --rules a/", version="1.2.3"
)


def at(after_s: float) -> Instant:
    """A moment of these worlds."""
    return Instant(round((BEGIN_S + after_s) * SECOND))


def rules(gpus: float, pool: str = "p", **reserved: float) -> Stored:
    """One pool, and a team for each name with what is reserved for it."""
    return rulebook([a_pool(gpus, pool)], [a_policy(team, gpu, pool) for team, gpu in reserved.items()])


def a_pool(gpus: float, name: str = "p") -> Pool:
    return Pool(id=PoolId(name), name=name, capacity=vector({"gpu": gpus}), max_bypass_s=10**9)


def a_policy(team: str, gpus: float, pool: str = "p", **more: object) -> Policy:
    given = {"id": PolicyId(f"{pool}-{team}"), "pool": PoolId(pool), "subject": Subject.parse(f"team:{team}")}
    return Policy(**{**given, "reserved": vector({"gpu": gpus}), "grace_s": 0, **more})  # type: ignore[arg-type]


def job(name: str, team: str, submitted_s: float, run_s: float, gpus: float = 1, **more: object) -> Job:
    given = {
        "name": name,
        "submitted_at": at(submitted_s),
        "run_us": round(run_s * SECOND),
        "subjects": (Subject.parse(f"team:{team}"),),
        "demand": Demand.of(vector({"gpu": gpus})),
    }
    return Job(**{**given, **more})  # type: ignore[arg-type]


def outcome(
    stored: Stored, *jobs: Job, name: str = "a", owners: Owners | None = None, until_s: float | None = None
) -> Outcome:
    """What became of the jobs under these rules."""
    owners = owners or Owners()
    replay = Replay(stored, jobs, owners=owners, reader=MemoryStore().reader)
    ledger = replay.run(None if until_s is None else at(until_s))
    return Outcome(name=name, rules=stored, ledger=ledger, owners=owners)

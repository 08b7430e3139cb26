"""The published experiment on the Philly trace: its jobs, its teams' nodes, and the worlds that it is played in.

What is published is for October and November 2017, each team alone on a quarter of its nodes (at least one).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from fairpool.app.ports import Stored
from fairpool.core.amounts import GPU, WHOLE, get, vector
from fairpool.core.ids import SECOND, Instant, PolicyId, PoolId
from fairpool.core.policies import Policy, Subject
from fairpool.core.pools import DEFAULT_MAX_BYPASS_S, Node, Ordering, Pool
from fairpool.sim.jobs import Job, Order, in_order
from fairpool.sim.ledger import Ledger
from fairpool.sim.owners import Owners, Progress
from fairpool.sim.replay import Replay
from fairpool.sim.rulebook import rulebook
from fairpool.sim.traces import philly
from fairpool.store.memory import MemoryStore

TRACES = Path(__file__).resolve().parents[2] / "shared" / "traces" / "philly"
"""Beside the checkout; the package never needs it."""

FIRST = datetime(2017, 10, 1, tzinfo=UTC)
LAST = datetime(2017, 11, 30, 23, 59, tzinfo=UTC)
SHARE_OF_NODES = 4

PUBLISHED_MEAN_WAIT_S = {"6214e9": "6100.59", "e13805": "3288.24"}
JOBS = 68_503


@cache
def nodes() -> Mapping[str, int]:
    """How many nodes each team has in the experiment."""
    return {
        team: max(1, round(count / SHARE_OF_NODES))
        for team, count in philly.read_nodes(TRACES / "philly_vc_nodes.csv").items()
    }


@cache
def jobs() -> tuple[Job, ...]:
    """The jobs of the two months that fit their team's nodes, by time of arrival."""
    first, last = (Instant(int(at.timestamp()) * SECOND) for at in (FIRST, LAST))
    found = (job for job in philly.read(TRACES / "philly.csv.gz") if first <= job.submitted_at <= last)
    return tuple(in_order((job for job in found if _fits(job)), Order.TRACE))


def team_of(job: Job) -> str:
    """Whose job it is."""
    return job.subjects[0].name


def gpus_of(team: str) -> int:
    """How many GPUs a team has in the experiment."""
    return nodes()[team] * philly.GPUS_OF_A_NODE


def _fits(job: Job) -> bool:
    assert job.demand is not None
    return team_of(job) in nodes() and get(job.demand.total, GPU) <= gpus_of(team_of(job)) * WHOLE


def of_team(team: str) -> list[Job]:
    """One team's jobs."""
    return [job for job in jobs() if team_of(job) == team]


def played(rules: Stored, played_jobs: Iterable[Job], progress: Progress = Progress.KEPT) -> Ledger:
    """A replay, to its end."""
    return Replay(rules, played_jobs, owners=Owners(progress=progress), reader=MemoryStore().reader).run()


def mean_wait_s(ledger: Ledger) -> float:
    """How long jobs neither ran nor were done, on average."""
    return sum(map(ledger.wait_us, range(len(ledger.jobs)))) / len(ledger.jobs) / SECOND


# ---- the worlds -----------------------------------------------------------------------------------------------------


def on_nodes(team: str) -> Stored:
    """A team alone on its nodes, in strict order."""
    machines = tuple(
        Node(name=f"n{at:03}", capacity=vector({GPU: philly.GPUS_OF_A_NODE})) for at in range(nodes()[team])
    )
    return rulebook([Pool(id=PoolId(team), name=team, nodes=machines, backfill=False)], [_policy(team, team, 0)])


def on_a_count(team: str) -> Stored:
    """A team alone on as many GPUs, whatever node they are on, in strict order."""
    pool = Pool(id=PoolId(team), name=team, capacity=vector({GPU: gpus_of(team)}), backfill=False)
    return rulebook([pool], [_policy(team, team, 0)])


def shared(max_bypass_s: int = DEFAULT_MAX_BYPASS_S) -> Stored:
    """All teams on all GPUs together, each with what was its own reserved, without limits."""
    pool = _all(max_bypass_s=max_bypass_s)
    return rulebook([pool], [_policy(pool.name, team, gpus_of(team)) for team in nodes()])


def one_queue() -> Stored:
    """All teams on all GPUs together, first come, first served."""
    pool = _all(ordering=Ordering.FIFO, backfill=False)
    return rulebook([pool], [_policy(pool.name, team, 0) for team in nodes()])


def _all(
    *, max_bypass_s: int = DEFAULT_MAX_BYPASS_S, ordering: Ordering = Ordering.FAIR, backfill: bool = True
) -> Pool:
    return Pool(
        id=PoolId("philly"),
        name="philly",
        capacity=vector({GPU: sum(map(gpus_of, nodes()))}),
        max_bypass_s=max_bypass_s,
        ordering=ordering,
        backfill=backfill,
    )


def _policy(pool: str, team: str, reserved: int) -> Policy:
    return Policy(
        id=PolicyId(f"{pool}/{team}"),
        pool=PoolId(pool),
        subject=Subject.parse(f"team:{team}"),
        reserved=vector({GPU: reserved}),
    )


# ---- each team alone ------------------------------------------------------------------------------------------------


@cache
def alone() -> Mapping[str, int]:
    """When each job ends with its team alone on as many GPUs as it has, first come, first served; by name."""
    return {name: at for team in nodes() for name, at in _ends(played(on_a_count(team), of_team(team)))}


def _ends(ledger: Ledger) -> Iterator[tuple[str, int]]:
    return ((job.name, ended) for job, ended in zip(ledger.jobs, ledger.ended, strict=True))


def later_than_alone(ledger: Ledger) -> int:
    """How many jobs end later than with their team alone."""
    return sum(ended > alone()[name] for name, ended in _ends(ledger))


def oldest_first() -> Sequence[Job]:
    """The jobs, each before younger ones of its team whatever runs already: as alone, first come, first served."""
    return in_order(jobs(), Order.OLDEST)
